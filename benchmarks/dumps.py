"""Lays out the dumps to measure on as XLA writes them: folders of plain files."""

import gzip
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from process import memhouse

import memhouse as library

_ARCHIVE = ".tar.zst"


@dataclass(frozen=True)
class Module:
    """A module's files, the number of bytes that memhouse reads, and its instructions."""

    module_name: str
    files: tuple[Path, ...]
    bytes: int
    instructions: int


@dataclass(frozen=True)
class Dumps:
    """The dumps after `lay_out`.

    `runs` are folders to ingest, one a run. `large` is the folder of the large module, by
    default the largest module. `warehouse` has all modules, `large_warehouse` the large one.
    """

    runs: list[Path]
    large: Path
    modules: list[Module]
    warehouse: Path
    large_warehouse: Path


def lay_out(source: Path, target: Path) -> Dumps:
    """Copy the runs of `source` to `target`, unpacked, and ingest all of them.

    Each folder in `source` is a run, except that each folder in `nightly` is a run. The folder
    `large` holds the large module, possibly in an archive; texts in `fragments` are not whole.
    """
    runs = []
    folders = (path for path in source.iterdir() if path.is_dir() and path.name != "fragments")
    for folder in sorted(folders):
        copy = target / folder.name
        _copy(folder, copy)
        if folder.name == "nightly":
            runs += sorted(copy.iterdir())
        elif folder.name != "large":
            runs.append(copy)
    warehouse = target / "all.duckdb"
    large = target / "large"
    memhouse("ingest", "--db", warehouse, *runs, *([large] if large.exists() else []))
    modules = _modules(warehouse)
    if not large.exists():
        large.mkdir()
        link(modules[0], large)
    large_warehouse = target / "large.duckdb"
    memhouse("ingest", "--db", large_warehouse, large)
    return Dumps(runs, large, modules, warehouse, large_warehouse)


def link(module: Module, folder: Path, name: str | None = None) -> None:
    """Link the module's files into a folder; another `name` makes another module."""
    for file in module.files:
        called = file.name
        if name is not None:
            called = called.replace(f".{module.module_name}.", f".{name}.", 1)
        try:
            # A symbolic link would lead out of the folder, and is not followed.
            (folder / called).hardlink_to(file.resolve())
        except OSError:
            shutil.copyfile(file, folder / called)


def lay_copies(folder: Path, modules: list[Module], copies: int) -> Path:
    """A folder with copies of modules, named differently so that their ids differ."""
    for number, module in enumerate(modules):
        for copy in range(copies):
            workload = folder / f"{copy}-{number}"
            workload.mkdir(parents=True)
            link(module, workload, f"{module.module_name}_{copy}")
    return folder


def read_files(warehouse: Path, runs: list[Path]) -> list[Path]:
    """The files that memhouse read of these runs, each once.

    A file of several modules, such as a session of XProf, is one file here.
    """
    with library.open(warehouse, read_only=True) as opened:
        found = opened.sql(_FILES).arrow().to_pylist()
    sources = set(map(str, runs))
    read = (Path(row["source"], row["path"]) for row in found if row["source"] in sources)
    return list(dict.fromkeys(map(_on_disk, read)))


def _on_disk(path: Path) -> Path:
    """The file that holds what memhouse calls `path`: the path itself, or a file above it."""
    return next(file for file in (path, *path.parents) if file.is_file())


_FILES = """
SELECT runs.source, dump_files.path, dump_files.bytes, dumps.dump_id, dumps.module_name,
    dumps.module_id
FROM dump_files
INNER JOIN dumps ON dumps.dump_id = dump_files.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
WHERE dump_files.bytes IS NOT NULL
ORDER BY runs.run_at, dumps.dump_id, dump_files.path
"""

_INSTRUCTIONS = "SELECT module_id, COUNT(*) AS instructions FROM instructions GROUP BY module_id"


def _modules(warehouse: Path) -> list[Module]:
    """Each distinct module of plain files once, the largest first."""
    with library.open(warehouse, read_only=True) as opened:
        rows = opened.sql(_FILES).arrow().to_pylist()
        counts = {
            row["module_id"]: row["instructions"]
            for row in opened.sql(_INSTRUCTIONS).arrow().to_pylist()
        }
    dumps: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        dumps.setdefault(row["dump_id"], []).append(row)
    once = {files[0]["module_id"]: files for files in dumps.values()}
    modules = [
        Module(
            files[0]["module_name"],
            tuple(Path(file["source"], file["path"]) for file in files),
            sum(file["bytes"] for file in files),
            counts.get(files[0]["module_id"], 0),
        )
        for files in once.values()
        # The modules of a session have no files of their own, which copies could link to.
        if all(Path(file["source"], file["path"]).is_file() for file in files)
    ]
    return sorted(modules, key=lambda module: module.bytes, reverse=True)


def _copy(folder: Path, target: Path) -> None:
    """Copy a folder, and unpack its archives and compressed files."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        copy = target / file.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.name.endswith(_ARCHIVE):
            with file.open("rb") as raw:
                stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
                with tarfile.open(fileobj=stream, mode="r|") as tar:
                    tar.extractall(copy.parent, filter="data")
        elif file.suffix == ".gz":
            copy.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copyfile(file, copy)
