"""Unpacks the wanted files of an archive; the archive may be hostile."""

import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from ..errors import DumpError
from .compression import (
    MAX_ARCHIVE_BYTES,
    MAX_ARCHIVE_FILES,
    MAX_TEXT_BYTES,
    PIECE,
    allowance,
    pieces,
)
from .names import readable
from .remote_paths import Location


def unpack(
    archive: Location,
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
                name = readable(PurePosixPath(member.name.lstrip("/")))
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
