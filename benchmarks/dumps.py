"""Lays out the dumps to measure on: folders of plain files, as XLA writes them."""

import gzip
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard
from process import memhouse

import memhouse as library

_ARCHIVE = ".tar.zst"
_FIRST_RUN = datetime(2025, 1, 1, 5, tzinfo=UTC)
# Programs of a run in the history, and how often each of them changes in a year.
_RUN_PROGRAMS = 8
_RUN_CHANGES = 5
# Larger programs would make a long history take hours.
_MAX_RUN_INSTRUCTIONS = 5000


@dataclass(frozen=True)
class Module:
    """A program's files, their size, and its number of instructions."""

    name: str
    files: tuple[Path, ...]
    bytes: int
    instructions: int


@dataclass(frozen=True)
class Dumps:
    """The dumps after `lay_out`.

    Attributes:
        runs: folders to ingest, one per run.
        large: folder of the large module.
        modules: each distinct module that has files of its own, the largest first.
        warehouse: all runs and the large module, ingested.
        large_warehouse: the large module, ingested.
    """

    runs: list[Path]
    large: Path
    modules: list[Module]
    warehouse: Path
    large_warehouse: Path

    def nearest(self, instructions: int) -> Module:
        """The module whose number of instructions is nearest."""
        return min(self.modules, key=lambda module: abs(module.instructions - instructions))


def lay_out(source: Path, target: Path) -> Dumps:
    """Copy the runs of `source` to `target`, unpacked, and ingest them.

    Each folder in `source` is a run, except that each folder in `nightly` is a run. The folder
    `large` holds the large module, possibly in an archive; without it, the largest module is the
    large one. The folder `fragments`, of incomplete texts, is skipped.
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
    warehouse, large = target / "all.duckdb", target / "large"
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
    folder.mkdir(parents=True, exist_ok=True)
    for file in module.files:
        file_name = file.name
        if name is not None:
            file_name = file_name.replace(f".{module.name}.", f".{name}.", 1)
        try:
            # Not a symbolic link: that would lead out of the folder, so ingest would skip it.
            (folder / file_name).hardlink_to(file.resolve())
        except OSError:
            shutil.copyfile(file, folder / file_name)


def lay_copies(folder: Path, module: Module, copies: int) -> Path:
    """A folder with copies of a module, named differently so that their ids differ."""
    for copy in range(copies):
        link(module, folder / str(copy), f"{module.name}_{copy}")
    return folder


def ingest_history(dumps: Dumps, folder: Path, runs: int) -> Path:
    """A warehouse of this many daily runs of eight programs.

    A program's versions are the modules of one name, in turn; no two programs change on one day.
    """
    families: dict[str, list[Module]] = defaultdict(list)
    for module in dumps.modules:
        if module.instructions <= _MAX_RUN_INSTRUCTIONS:
            families[module.name].append(module)
    largest = sorted(families.values(), key=len, reverse=True)
    several = [family for family in largest if len(family) > 1] or largest
    programs = [several[number % len(several)] for number in range(_RUN_PROGRAMS)]
    warehouse = folder / "history.duckdb"
    with library.open(warehouse) as opened:
        laid_out: list[int] = []
        for run in range(runs):
            changes = _RUN_CHANGES * run / 365
            versions = [int(changes + number / _RUN_PROGRAMS) for number in range(_RUN_PROGRAMS)]
            if versions != laid_out:
                laid_out, dump = versions, folder / f"from-{run}"
                for number, family in enumerate(programs):
                    module = family[versions[number] % len(family)]
                    link(module, dump, f"{module.name}_{number}")
            opened.ingest(dump, run=f"run-{run:04}", at=_FIRST_RUN + timedelta(days=run))
    return warehouse


def read_texts(warehouse: Path, folders: Iterable[Path]) -> set[bytes]:
    """The distinct contents of the files that memhouse read of these folders."""
    sources = set(map(str, folders))
    with library.open(warehouse, read_only=True) as opened:
        rows = opened.sql(_FILES).arrow().to_pylist()
    paths = [Path(row["source"], row["path"]) for row in rows if row["source"] in sources]
    # A file of several modules is a file above the path that memhouse gives to each of them.
    files = {next(file for file in (path, *path.parents) if file.is_file()) for path in paths}
    return {file.read_bytes() for file in files}


_FILES = """
SELECT runs.source, dump_files.path, dump_files.bytes, dumps.dump_id, dumps.module_name,
    dumps.module_id
FROM dump_files
INNER JOIN dumps ON dumps.dump_id = dump_files.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
WHERE dump_files.bytes IS NOT NULL AND dumps.module_id IS NOT NULL
ORDER BY runs.run_at, dumps.dump_id, dump_files.path
"""
_INSTRUCTIONS = "SELECT module_id, COUNT(*) AS count FROM instructions GROUP BY module_id"


def _modules(warehouse: Path) -> list[Module]:
    """Each distinct module of plain files once, the largest first."""
    with library.open(warehouse, read_only=True) as opened:
        rows = opened.sql(_FILES).arrow().to_pylist()
        counts = opened.sql(_INSTRUCTIONS).arrow().to_pylist()
    instructions = {row["module_id"]: row["count"] for row in counts}
    dumps = defaultdict(list)
    for row in rows:
        dumps[row["dump_id"]].append(row)
    modules = {}
    for files in dumps.values():
        paths = tuple(Path(file["source"], file["path"]) for file in files)
        # The modules of an XProf session have no files of their own, which copies could link to.
        if all(path.is_file() for path in paths):
            module_id, name = files[0]["module_id"], files[0]["module_name"]
            size = sum(file["bytes"] for file in files)
            modules[module_id] = Module(name, paths, size, instructions.get(module_id, 0))
    return sorted(modules.values(), key=lambda module: module.bytes, reverse=True)


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
