"""The files under a path: a folder, a file or an archive."""

import errno
import gzip
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import zstandard

from ...schema.errors import UsageError
from ...schema.private_folder import private_folder
from ...xla.errors import DumpError
from ..outcomes import some_of

# File names as text, to show them and to store them in the warehouse.


def readable(path: str) -> str:
    """The path as one line of text: a file's name may hold line ends and invalid UTF-8."""
    if path.isascii() and path.isprintable():
        return path
    text = os.fsencode(path).decode(errors="backslashreplace")
    return text.replace("\n", "\\n").replace("\r", "\\r")


# Uncompresses files piece by piece and limits their uncompressed size.

# The longest text that is read, uncompressed. Real texts are far shorter.
MAX_TEXT_BYTES = 4 << 30
# The bytes and files that one archive may unpack to in the temporary folder.
MAX_ARCHIVE_BYTES = 64 << 30
MAX_ARCHIVE_FILES = 1_000_000
# A compressed file may unpack to MAX_RATIO times its size, and always to ANY_RATIO_BYTES. An
# archive of many similar runs has a high ratio.
MAX_RATIO = 1000
ANY_RATIO_BYTES = 256 << 20
# A text is held whole in memory, so what one compressed file may unpack to is less. The text of
# the largest programs is 10 to 40 times its compressed size.
MAX_TEXT_RATIO = 64
# The window of `zstd --long`; a larger window is refused.
_MAX_WINDOW_BYTES = 1 << 27
PIECE = 1 << 20
# Four bytes of a zstd bomb unpack to 128 KiB, so a piece must be small.
_ZSTD_PIECE = 1 << 10
# The exceptions that Python's readers raise for damaged files and archives.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    tarfile.TarError,
    zlib.error,
    zstandard.ZstdError,
)


def unreadable(error: Exception) -> DumpError:
    """One of DAMAGED as an error of the file; the system's own message begins with the path."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return DumpError(f"the file cannot be read: {reason}")


def allowance(size: int, ratio: int = MAX_RATIO) -> int:
    """The bytes that a compressed file of this size may unpack to."""
    return max(ANY_RATIO_BYTES, size * ratio)


def pieces(raw: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """A file's bytes in pieces of about `size`, uncompressed as its name says."""
    if name.endswith((".zst", ".tzst")):
        yield from _unpacked_zstd(raw)
        return
    stream = gzip.GzipFile(fileobj=raw) if name.endswith((".gz", ".tgz")) else raw
    while piece := stream.read(size):
        yield piece


def _unpacked_zstd(raw: BinaryIO) -> Iterator[bytes]:
    """The frames of a zstd file. Raises EOFError if the last frame is cut short."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    frame = unpacker.decompressobj()
    packed = raw.read(_ZSTD_PIECE)
    if not packed:
        raise EOFError("it is empty")
    while packed:
        yield frame.decompress(packed)
        if frame.eof:
            packed = frame.unused_data or raw.read(_ZSTD_PIECE)
            if packed:
                frame = unpacker.decompressobj()
        else:
            packed = raw.read(_ZSTD_PIECE)
    if not frame.eof:
        raise EOFError("the compressed data ends too early")


# Unpacks the wanted files of an archive; the archive may be hostile.


def unpack(
    archive: Path,
    target: Path,
    wanted: Callable[[str], bool],
    refuse: Callable[[str], None],
    passed_over: Callable[[PurePosixPath, int], None],
) -> Iterator[tuple[PurePosixPath, tarfile.TarInfo, Path]]:
    """Unpack an archive's wanted files: for each its name, its header and its location.

    `passed_over` receives the name and the size of each file that is not wanted.
    """
    allowed = allowance(archive.stat().st_size)
    count = taken = 0
    with archive.open("rb") as raw:
        # A .tar may be gzipped by mistake: `tar czf night.tar`.
        packing = ".gz" if raw.peek(2).startswith(b"\x1f\x8b") else ".tar"
        if archive.name.endswith((".zst", ".tzst")):
            packing = ".zst"
        stream = _Stream(pieces(raw, packing, PIECE), allowed)
        with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
            while (member := tar.next()) is not None:
                # tarfile would keep all members in memory.
                tar.members.clear()
                name = PurePosixPath(readable(member.name.lstrip("/")))
                if member.isdir():
                    continue
                if not wanted(name.name):
                    passed_over(name, member.size)
                    continue
                if not member.isfile() or ".." in name.parts:
                    refuse(f"{archive}: {name}: not a file within the archive, left out")
                    continue
                # The archive's size does not bound the size of a sparse file.
                count, taken = count + 1, taken + member.size
                if member.size > MAX_TEXT_BYTES:
                    raise DumpError(f"{name} has more than {MAX_TEXT_BYTES} bytes")
                if count > MAX_ARCHIVE_FILES or taken > min(MAX_ARCHIVE_BYTES, allowed):
                    raise DumpError("it holds too much")
                content = tar.extractfile(member)
                assert content is not None, "a regular file has content"
                location = target / str(count)
                with location.open("wb") as copy:
                    shutil.copyfileobj(content, copy, PIECE)
                yield name, member, location
            # tarfile treats any invalid header as the archive's end.
            if not stream.is_zero_at(tar.offset):
                raise EOFError("it is cut short or damaged")


class _Stream:
    """Pieces as a stream for tarfile, of at most `most` bytes."""

    def __init__(self, pieces: Iterator[bytes], most: int) -> None:
        self._pieces = pieces
        self._most = most
        self._ahead = bytearray()
        self._behind = b""
        self._position = 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end. Raises DumpError."""
        while len(self._ahead) < size and (piece := next(self._pieces, None)) is not None:
            self._ahead += piece
        found = bytes(self._ahead[:size])
        del self._ahead[:size]
        self._position += len(found)
        if self._position > self._most:
            raise DumpError(f"it unpacks to more than {self._most} bytes")
        # `is_zero_at` needs a header that is at most two reads back.
        self._behind = (self._behind + found)[-2 * size :]
        return found

    def is_zero_at(self, position: int) -> bool:
        """Whether a recently read position holds a block of zeros."""
        start = position - self._position + len(self._behind)
        return start >= 0 and self._behind[start : start + tarfile.BLOCKSIZE] == bytes(
            tarfile.BLOCKSIZE
        )


# The files under a path: a folder, a single file or an archive, compressed or not.

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

    # Text, because a night has a hundred thousand files.
    path: str
    location: Path
    modified: float
    size: int  # as it is stored, compressed or not
    head: bytes | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The path without the name; `.` if that is all."""
        return self.path.rpartition("/")[0] or "."

    def read(self, limit: int | None = None) -> bytes:
        """The uncompressed bytes, or the first `limit` bytes. Raises DumpError."""
        if self.head is not None and limit is not None and limit <= len(self.head):
            return self.head[:limit]
        packed = self.path.endswith((".gz", ".zst"))
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
                for piece in pieces(raw, self.path, limit or size):
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
            raise unreadable(error) from None
        return content.getvalue()[:limit]


def plain_copy(file: SourceFile, cleanup: ExitStack) -> Path:
    """A file on disk with the uncompressed bytes: the file itself, if it is not compressed.

    A copy exists until `cleanup` ends. Raises DumpError.
    """
    if not file.path.endswith((".gz", ".zst")):
        return file.location
    copy = cleanup.enter_context(private_folder()) / "plain"
    most, length = allowance(file.size), 0
    try:
        with file.location.open("rb") as raw, copy.open("wb") as plain:
            for piece in pieces(raw, file.path, PIECE):
                length += plain.write(piece)
                if length > most:
                    raise DumpError(f"it unpacks to more than {most} bytes")
    except DAMAGED as error:
        raise unreadable(error) from None
    return copy


def source_name(path: Path) -> str:
    """A path's name: a folder's name, or a file's name without its endings."""
    name = readable(os.path.basename(os.path.realpath(path)))  # noqa: PTH119
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
def exists(path: Path) -> bool:
    """Whether the path exists."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    """Whether the path is a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: Path) -> bool:
    """Whether the path is a regular file."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dump_file(path: Path) -> bool:
    """Whether the path is a file, and not an archive of files."""
    return is_file(path) and not is_archive(path.name)


def open_source(
    path: Path,
    wanted: Callable[[str], bool],
    cleanup: ExitStack,
    refuse: Callable[[str], None],
    passed_over: Callable[[PurePosixPath, int], None] | None = None,
    also_in: Path | None = None,
    within: str = "",
    is_left_out: Callable[[os.stat_result], bool] = lambda status: False,
) -> Iterator[SourceFile]:
    """The files under `path` whose name is `wanted`, in order of their paths, `within` a folder.

    Links below a folder are followed if they stay in it, or lead to the folder `also_in`: who
    made the folder might else have us read, and print, any file of this machine. `refuse`
    receives a line that counts the others.

    An archive within a folder counts as a folder with the archive's name. Its wanted files are
    unpacked, under generated names, to a temporary folder that `cleanup` removes. An archive
    that cannot be read yields no files, and `refuse` receives the reason. `passed_over` receives
    the path and the size of each file that is not wanted. A file is not opened if its status
    `is_left_out`.
    """
    opened = partial(
        _opened,
        refuse=refuse,
        within=within,
        is_left_out=is_left_out,
        open_archive=partial(
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
        roots = [path, also_in] if also_in is not None else [path]
        left_out: list[str] = []
        for folder, found, is_within in _files_below(path, refuse, roots, left_out):
            # Most files of a night are not wanted: their names alone say so.
            name = readable(found.name)
            if not (is_archive(name) or wanted(name)):
                if passed_over is not None:
                    passed_over(PurePosixPath(folder, name), _size(found) if is_within else 0)
            elif is_within:
                yield from opened(Path(found.path), _below(folder, name))
            else:
                left_out.append(_below(folder, name))
        if left_out:
            what = "link leads" if len(left_out) == 1 else "links lead"
            refuse(
                f"{readable(str(path))}: {len(left_out)} {what} out of the folder, not "
                f"followed: {some_of(left_out)}: name what is meant, or copy it there"
            )
    else:
        yield from opened(path, readable(path.name), is_alone=True)


def _ignore(path: PurePosixPath, size: int) -> None:
    pass


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _files_below(
    folder: Path,
    refuse: Callable[[str], None],
    roots: Sequence[Path],
    left_out: list[str],
) -> Iterator[tuple[str, os.DirEntry[str], bool]]:
    """All files below a folder, by path, with the folder of each from there.

    And whether it is in the `roots`: a link may lead out of them. `left_out` receives the paths of
    the links to folders out of them. Each folder is visited only once.
    """
    real = [os.path.realpath(root) for root in roots]

    def is_in(entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return True
        target = os.path.realpath(entry.path)
        return any(os.path.commonpath([root, target]) == root for root in real)

    seen: set[tuple[int, int]] = set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        parent = Path(folder, below)
        try:
            stat = parent.stat()
            with os.scandir(parent) as found:
                entries = sorted(found, key=attrgetter("name"))
        except OSError as error:
            refuse(f"{parent}: the folder cannot be read: {error.strerror}")
            continue
        if (stat.st_dev, stat.st_ino) in seen:
            continue
        seen.add((stat.st_dev, stat.st_ino))
        shown = readable(below)
        folders: list[str] = []
        for entry in entries:
            if not _is_folder(entry):
                yield shown, entry, is_in(entry)
            elif is_in(entry):
                folders.append(_below(below, entry.name))
            else:
                left_out.append(readable(_below(below, entry.name)))
        waiting += reversed(folders)


def _size(found: os.DirEntry[str]) -> int:
    """A file's size; 0 of a broken link."""
    try:
        return found.stat().st_size
    except OSError:
        return 0


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder or a link to a folder; a circular link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _opened(
    location: Path,
    path: str,
    *,
    is_alone: bool = False,
    within: str,
    refuse: Callable[[str], None],
    is_left_out: Callable[[os.stat_result], bool],
    open_archive: Callable[[Path, str], Iterator[SourceFile]],
) -> Iterator[SourceFile]:
    """The file named `path`, or the files of an archive, which counts as a folder of its name.

    An archive that `is_alone` is no folder.
    """
    try:
        status = location.stat()
        is_file = stat.S_ISREG(status.st_mode)
    # A link may be broken, and a file may have vanished.
    except (OSError, ValueError):
        is_file = False
    # Reading a pipe would block.
    if not is_file:
        refuse(f"{readable(str(location))}: not a file that can be read")
    elif is_left_out(status):
        return
    elif is_archive(location.name):
        folder, _, name = path.rpartition("/")
        yield from open_archive(
            location, within if is_alone else _below(within, _below(folder, _stem(name)))
        )
    else:
        yield SourceFile(_below(within, path), location, _time(status.st_mtime), status.st_size)


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


def unpacked(
    archive: Path,
    folder: str,
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
                path = _below(folder, inner.as_posix())
                files.append(SourceFile(path, location, _time(member.mtime), member.size))
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
    yield from sorted(files, key=lambda file: file.path.split("/"))
