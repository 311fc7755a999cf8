"""The files under a path: a folder, a single file, an archive, compressed or not."""

import gzip
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import zstandard

from .lines import DumpError

# `zstd --long` asks for as much memory to unpack; more is refused.
_MAX_WINDOW_BYTES = 1 << 27
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")


@dataclass(frozen=True)
class SourceFile:
    """A file that can be read: its name within the ingested path, and where it lies."""

    path: PurePosixPath
    location: Path
    modified: float
    size: int  # as it lies there, compressed or not

    def read(self, limit: int | None = None) -> bytes:
        """Its bytes, uncompressed; the first `limit` if one is given. Raises DumpError."""
        try:
            with self.location.open("rb") as raw:
                if self.path.suffix == ".gz":
                    with gzip.open(raw) as stream:
                        return stream.read(-1 if limit is None else limit)
                if self.path.suffix == ".zst":
                    with zstandard.ZstdDecompressor(
                        max_window_size=_MAX_WINDOW_BYTES
                    ).stream_reader(raw) as stream:
                        return stream.read(-1 if limit is None else limit)
                return raw.read(-1 if limit is None else limit)
        except (OSError, EOFError, zstandard.ZstdError) as error:
            raise DumpError(f"the file cannot be read: {error}") from None


def source_name(path: Path) -> str:
    """What a path is called: a folder's name, a file's without its endings."""
    name = path.resolve().name
    if path.is_dir():
        return name
    return _stem(name)


def open_source(
    path: Path,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
) -> Iterator[SourceFile]:
    """The files under `path` whose name is `wanted`, in order of their paths.

    Archives within a folder count as folders named after them. They are unpacked to a
    temporary folder that `cleanup` removes: only wanted files, under names of our own.
    Of an archive that cannot be read nothing is taken, and `refuse` is told why.
    """
    if not path.exists():
        refuse(f"{path}: there is no such file or folder")
        return
    if path.is_dir():
        for found in _walk(path):
            relative = _readable(PurePosixPath(found.relative_to(path).as_posix()))
            if not (_is_archive(found.name) or wanted(found.name)):
                continue
            if not found.is_file():
                # A pipe would be waited for; a link may lead nowhere.
                refuse(f"{path / relative}: this is no file that can be read")
            elif _is_archive(found.name):
                folder = relative.parent / _stem(found.name)
                yield from _unpacked(found, folder, wanted, cleanup, refuse)
            else:
                yield _plain(relative, found)
    elif _is_archive(path.name):
        yield from _unpacked(path, PurePosixPath(), wanted, cleanup, refuse)
    else:
        yield _plain(_readable(PurePosixPath(path.name)), path)


def _readable(path: PurePosixPath) -> PurePosixPath:
    """The path as text: a file's name need be no UTF-8."""
    return PurePosixPath(os.fsencode(path).decode(errors="replace"))


def _plain(path: PurePosixPath, location: Path) -> SourceFile:
    stat = location.stat()
    return SourceFile(path, location, stat.st_mtime, stat.st_size)


def _walk(folder: Path) -> Iterator[Path]:
    """All files below, by path; links to folders are followed, but each folder only once."""
    seen: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        stat = Path(parent).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders.sort()
        for name in sorted(names):
            yield Path(parent, name)


def _is_archive(name: str) -> bool:
    return name.endswith(_ARCHIVES)


def _stem(name: str) -> str:
    for ending in (*_ARCHIVES, ".gz", ".zst"):
        name = name.removesuffix(ending)
    return name.removesuffix(".txt")


def _unpacked(
    archive: Path,
    folder: PurePosixPath,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
) -> Iterator[SourceFile]:
    """The wanted files of an archive, as if it were a folder.

    An archive's only top folder is the archive itself if it has its name, as in
    `llama7b-32layers-v5e-4x4.tar.zst`.
    """
    target = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="memhouse-")))
    top = _stem(archive.name)
    files: list[SourceFile] = []
    try:
        with archive.open("rb") as raw, ExitStack() as stack:
            if archive.name.endswith((".zst", ".tzst")):
                stream = stack.enter_context(
                    zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).stream_reader(raw)
                )
                tar = stack.enter_context(tarfile.open(fileobj=stream, mode="r|"))
            else:
                tar = stack.enter_context(tarfile.open(fileobj=raw, mode="r|*"))
            for member in tar:
                name = PurePosixPath(member.name.lstrip("/"))
                if not member.isfile() or ".." in name.parts or not wanted(name.name):
                    continue
                content = tar.extractfile(member)
                assert content is not None, "a regular file has content"
                location = target / str(len(files))
                location.write_bytes(content.read())
                is_top = len(name.parts) > 1 and name.parts[0] == top
                inner = name.relative_to(top) if is_top else name
                files.append(SourceFile(folder / inner, location, member.mtime, member.size))
    except (OSError, EOFError, tarfile.TarError, zstandard.ZstdError) as error:
        refuse(f"{archive}: the archive cannot be read, nothing was taken from it: {error}")
        return
    yield from sorted(files, key=lambda file: file.path)
