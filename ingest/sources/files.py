"""The files under a path: a folder, a single file, an archive, compressed or not."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import DumpError
from .archives import unpack
from .compression import DAMAGED, MAX_TEXT_BYTES, PIECE, allowance, pieces
from .names import readable

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
# A time stamp beyond the year 9999 is none.
_LAST_TIME = 253402300799.0


@dataclass(frozen=True)
class SourceFile:
    """A file that can be read: its name within the ingested path, and where it lies."""

    path: PurePosixPath
    location: Path
    modified: float
    size: int  # as it lies there, compressed or not

    def read(self, limit: int | None = None) -> bytes:
        """Its bytes, uncompressed; the first `limit` if one is given. Raises DumpError."""
        packed = self.path.suffix in (".gz", ".zst")
        most = min(MAX_TEXT_BYTES, allowance(self.size)) if packed else MAX_TEXT_BYTES
        # Before reading: what lies there may be a hole of many gigabytes.
        length = self.size if limit is None and self.size > most else 0
        found: list[bytes] = []
        try:
            with self.location.open("rb") as raw:
                # A plain file in one go: its pieces would be copied once more to join them.
                size = PIECE if packed or self.size > most else max(PIECE, self.size + 1)
                for piece in pieces(raw, self.path.name, limit or size):
                    length += len(piece)
                    if limit is None and length > most:
                        raise DumpError(
                            f"the file holds more than {most} bytes: no dump's text is so long"
                        )
                    found.append(piece)
                    if limit is not None and length >= limit:
                        break
        except DumpError:
            raise
        except DAMAGED as error:
            # The path stands before it already.
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise DumpError(f"the file cannot be read: {why}") from None
        return b"".join(found)[:limit]


def source_name(path: Path) -> str:
    """What a path is called: a folder's name, a file's without its endings."""
    name = readable(PurePosixPath(os.path.realpath(path))).name
    return name if is_folder(path) else _stem(name)


# Unlike Path's own, os.path's functions take whatever is wrong with a path for a no.
def exists(path: Path) -> bool:
    """Whether there is anything."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: Path) -> bool:
    """Whether there is a regular file."""
    return os.path.isfile(path)  # noqa: PTH113


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
    if not exists(path):
        refuse(f"{path}: there is no such file or folder")
    elif is_folder(path):
        for found in _walk(path, refuse):
            relative = readable(PurePosixPath(found.relative_to(path)))
            if _is_archive(relative.name) or wanted(relative.name):
                folder = relative.parent / _stem(relative.name)
                yield from _opened(found, relative, folder, wanted, cleanup, refuse)
    else:
        name = readable(PurePosixPath(path.name))
        yield from _opened(path, name, PurePosixPath(), wanted, cleanup, refuse)


def _walk(folder: Path, refuse: Callable[[str], None]) -> Iterator[Path]:
    """All files below, by path; links to folders are followed, but each folder only once."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        try:
            stat = parent.stat()
            with os.scandir(parent) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            refuse(f"{parent}: the folder cannot be read: {error.strerror}")
            continue
        if (stat.st_dev, stat.st_ino) in seen:
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders = {entry.name for entry in entries if _is_folder(entry)}
        waiting += [parent / name for name in sorted(folders, reverse=True)]
        yield from (parent / entry.name for entry in entries if entry.name not in folders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or a link to one; a link in a circle is neither."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _opened(
    location: Path,
    path: PurePosixPath,
    folder: PurePosixPath,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
) -> Iterator[SourceFile]:
    """A file as `path`, or an archive's files as if it were the `folder`."""
    # A pipe would be waited for; a link may lead nowhere, and a file be gone by now.
    if not is_file(location):
        refuse(f"{readable(PurePosixPath(location))}: this is no file that can be read")
    elif _is_archive(location.name):
        yield from _unpacked(location, folder, wanted, cleanup, refuse)
    else:
        try:
            stat = location.stat()
        except OSError as error:
            refuse(f"{location}: the file cannot be read: {error.strerror}")
            return
        yield SourceFile(path, location, _time(stat.st_mtime), stat.st_size)


def _time(modified: float) -> float:
    """The time stamp, or the nearest that is one: an archive may claim anything."""
    return min(max(modified, 0.0), _LAST_TIME) if modified == modified else 0.0


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
    top = _stem(archive.name)
    files: list[SourceFile] = []
    with ExitStack() as undo:
        try:
            target = undo.enter_context(tempfile.TemporaryDirectory(prefix="memhouse-"))
            for name, member, location in unpack(archive, Path(target), wanted, refuse):
                is_top = len(name.parts) > 1 and name.parts[0] == top
                inner = name.relative_to(top) if is_top else name
                files.append(SourceFile(folder / inner, location, _time(member.mtime), member.size))
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                refuse(
                    f"{archive}: there is no room to unpack it in {tempfile.gettempdir()}: "
                    "make room there, or name another folder by TMPDIR"
                )
            else:
                refuse(f"{archive}: the archive cannot be read, nothing was taken from it: {error}")
            return
        # All is well: the files are needed until the caller's own cleanup.
        cleanup.push(undo.pop_all())
    yield from sorted(files, key=lambda file: file.path)
