"""The files under a path: a folder, a single file or an archive, compressed or not."""

import errno
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from ...schema.errors import UsageError
from ...schema.private_folder import private_folder
from ..errors import DumpError
from ..what_to_tell import some_of
from .archives import unpack
from .compression import DAMAGED, MAX_TEXT_BYTES, MAX_TEXT_RATIO, PIECE, allowance, pieces
from .names import readable
from .remote_paths import Location, RemotePath

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
# The last second of the year 9999; Python has no later times.
_LAST_TIME = 253402300799.0
# The bytes of a plain file that are read at once, and those that are never all zeros.
_ONE_PIECE, _HEAD = 64 << 20, 64


@dataclass(frozen=True)
class SourceFile:
    """A readable file: its path within the source, and where it is.

    head: its first bytes, uncompressed, if they are known already.
    """

    path: PurePosixPath
    location: Location
    modified: float
    size: int  # as it is stored, compressed or not
    head: bytes | None = None

    def read(self, limit: int | None = None) -> bytes:
        """The uncompressed bytes, or the first `limit` bytes. Raises DumpError."""
        if self.head is not None and limit is not None and limit <= len(self.head):
            return self.head[:limit]
        packed = self.path.suffix in (".gz", ".zst")
        allowed = allowance(self.size, MAX_TEXT_RATIO) if packed else MAX_TEXT_BYTES
        most = min(MAX_TEXT_BYTES, allowed)
        # Checked before reading, because a sparse file may claim many gigabytes.
        length = self.size if limit is None and self.size > most else 0
        # Its bytes are handed over without a copy.
        content = io.BytesIO()
        try:
            with self.location.open("rb") as raw:
                # A plain file is one piece, because to join pieces takes time.
                size = PIECE if packed or self.size > _ONE_PIECE else max(PIECE, self.size + 1)
                for piece in pieces(raw, self.path.name, limit or size):
                    if (
                        piece
                        and limit is None
                        and not content.tell()
                        and not piece[:_HEAD].strip(b"\0")
                    ):
                        raise DumpError(
                            "the file begins with zeros, it was never written: "
                            "dump the program again",
                            line=1,
                        )
                    length += len(piece)
                    if limit is None and length > most:
                        raise DumpError(
                            f"the file holds more than {most} bytes: no dump's text is so long"
                            + (", unpack it if it is one" if packed else "")
                        )
                    content.write(piece)
                    if limit is not None and length >= limit:
                        break
        except DumpError:
            raise
        except DAMAGED as error:
            # The message already begins with the path.
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise DumpError(f"the file cannot be read: {why}") from None
        return content.getvalue()[:limit]


# A folder, a file or an archive that a user gives.
Given = Path | RemotePath


def source_name(path: Given) -> str:
    """A path's name: a folder's name, or a file's name without its endings."""
    if isinstance(path, RemotePath):
        return path.name if is_folder(path) else _stem(path.name)
    name = readable(PurePosixPath(os.path.realpath(path))).name
    return name if is_folder(path) else _stem(name)


def local_path(given: str | os.PathLike[str]) -> Path:
    """The path of a file or folder of this machine. Raises UsageError for a URL and for ""."""
    text = os.fspath(given)
    # A script's variable that is not set: Path("") would be the current folder.
    if not text:
        raise UsageError("it is empty: name a folder, an archive or a file", "paths")
    if "://" in text:
        raise UsageError(f"{text} is a URL: copy the dumps to a folder, and name that", "paths")
    return Path(text)


# Unlike Path's methods, os.path's functions return False for every invalid path.
def exists(path: Given) -> bool:
    """Whether the path exists."""
    return path.exists() if isinstance(path, RemotePath) else os.path.exists(path)  # noqa: PTH110


def is_folder(path: Given) -> bool:
    """Whether the path is a folder."""
    return path.is_folder() if isinstance(path, RemotePath) else os.path.isdir(path)  # noqa: PTH112


def is_file(path: Given) -> bool:
    """Whether the path is a regular file."""
    return path.is_file() if isinstance(path, RemotePath) else os.path.isfile(path)  # noqa: PTH113


def is_dump_file(path: Given) -> bool:
    """Whether the path is a file, and not an archive of files."""
    return is_file(path) and not is_archive(path.name)


def open_source(
    path: Given,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
    passed_over: Callable[[PurePosixPath, int], None] | None = None,
    open_archive: "OpenArchive | None" = None,
    also_in: Path | None = None,
) -> Iterator[SourceFile]:
    """The files under `path` whose name is `wanted`, in order of their paths.

    Links below a folder are followed if they stay in it, or lead to the folder `also_in`: who
    made the folder might else have us read, and print, any file of this machine. `refuse`
    receives a line that counts the others.

    An archive within a folder counts as a folder with the archive's name. Its wanted files are
    unpacked, under generated names, to a temporary folder that `cleanup` removes. An archive
    that cannot be read yields no files, and `refuse` receives the reason. `passed_over` receives
    the path and the size of each file that is not wanted. `open_archive` yields an archive's
    files in place of that.
    """
    opened = partial(
        _opened,
        wanted=wanted,
        refuse=refuse,
        open_archive=open_archive
        or partial(
            unpacked,
            wanted=wanted,
            cleanup=cleanup,
            refuse=refuse,
            passed_over=passed_over or _ignore,
        ),
    )
    if not exists(path):
        refuse(f"{path}: there is no such file or folder")
    elif is_folder(path):
        left_out: list[PurePosixPath] = []
        roots = [path, also_in] if also_in is not None else [path]
        for found, below in _files_below(path, refuse, roots, left_out):
            relative = readable(below)
            if found is None:
                # Of other names nothing is read anyway.
                if is_archive(relative.name) or wanted(relative.name):
                    left_out.append(relative)
                elif passed_over is not None:
                    passed_over(relative, 0)
            elif is_archive(relative.name) or wanted(relative.name):
                folder = relative.parent / _stem(relative.name)
                yield from opened(found, relative, folder)
            elif passed_over is not None:
                passed_over(relative, _size(found))
        if left_out:
            what = "link leads" if len(left_out) == 1 else "links lead"
            links = some_of(list(map(str, left_out)))
            refuse(
                f"{readable(PurePosixPath(path))}: {len(left_out)} {what} out of the folder, not "
                f"followed: {links}: name what is meant, or copy it there"
            )
    else:
        name = readable(PurePosixPath(path.name))
        yield from opened(path, name, PurePosixPath())


def _ignore(path: PurePosixPath, size: int) -> None:
    pass


def _files_below(
    folder: Given,
    refuse: Callable[[str], None],
    roots: Sequence[Given],
    left_out: list[PurePosixPath],
) -> Iterator[tuple[Given | None, PurePosixPath]]:
    """All files below a folder, and their paths from there; None for a link out of the `roots`.

    `left_out` receives the paths of the links to folders out of them.
    """
    if isinstance(folder, RemotePath):
        yield from ((found, found.relative_to(folder)) for found in folder.files())
        return
    real = [os.path.realpath(root) for root in roots]

    def is_in(path: Path) -> bool:
        target = os.path.realpath(path)
        return any(os.path.commonpath([root, target]) == root for root in real)

    def is_followed(path: Path) -> bool:
        if is_in(path):
            return True
        left_out.append(readable(PurePosixPath(path.relative_to(folder))))
        return False

    for path in _walk(folder, refuse, is_followed):
        below = PurePosixPath(path.relative_to(folder))
        yield path if not path.is_symlink() or is_in(path) else None, below


def _size(path: Given) -> int:
    """A file's size; 0 of a broken link."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _walk(
    folder: Path, refuse: Callable[[str], None], is_followed: Callable[[Path], bool]
) -> Iterator[Path]:
    """All files below a folder, by path; visits each folder only once, and links if followed."""
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
        links = {entry.name for entry in entries if entry.is_symlink()} & folders
        left = {name for name in sorted(links) if not is_followed(parent / name)}
        waiting += [parent / name for name in sorted(folders - left, reverse=True)]
        yield from (parent / entry.name for entry in entries if entry.name not in folders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder or a link to a folder; a circular link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _opened(
    location: Given,
    path: PurePosixPath,
    folder: PurePosixPath,
    wanted: Callable[[str], bool],
    refuse: Callable[[str], None],
    open_archive: "OpenArchive",
) -> Iterator[SourceFile]:
    """The file named `path`, or an archive's files below `folder`."""
    # Reading a pipe would block; a link may be broken, and a file may have vanished.
    if not is_file(location):
        refuse(f"{readable(PurePosixPath(location))}: not a file that can be read")
    elif is_archive(location.name):
        yield from open_archive(location, folder)
    else:
        try:
            stat = location.stat()
        except OSError as error:
            refuse(f"{location}: the file cannot be read: {error.strerror}")
            return
        yield SourceFile(path, location, _time(stat.st_mtime), stat.st_size)


def _time(modified: float) -> float:
    """The nearest valid time stamp, because an archive may hold an invalid one."""
    return min(max(modified, 0.0), _LAST_TIME) if modified == modified else 0.0


def is_archive(name: str) -> bool:
    """Whether a file of this name is an archive."""
    return name.endswith(_ARCHIVES)


def _stem(name: str) -> str:
    for ending in (*_ARCHIVES, ".gz", ".zst"):
        name = name.removesuffix(ending)
    return name.removesuffix(".txt")


# An archive and the folder that its files are below.
OpenArchive = Callable[[Given, PurePosixPath], Iterator[SourceFile]]


def unpacked(
    archive: Location,
    folder: PurePosixPath,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
    passed_over: Callable[[PurePosixPath, int], None] = _ignore,
) -> Iterator[SourceFile]:
    """The wanted files of an archive, as if the archive were a folder.

    A top folder with the archive's name is the archive itself, as in
    `llama7b-32layers-v5e-4x4.tar.zst`.
    """
    top = _stem(archive.name)
    files: list[SourceFile] = []
    with ExitStack() as undo:
        try:
            target = undo.enter_context(private_folder())
            for name, member, location in unpack(archive, target, wanted, refuse, passed_over):
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
        # The files must exist until the caller's cleanup.
        cleanup.push(undo.pop_all())
    yield from sorted(files, key=lambda file: file.path)
