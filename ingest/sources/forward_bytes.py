"""A file's bytes from the start to the end, once: some are read, most are passed over.

Passing over a plain file's bytes costs a seek. A compressed file must be uncompressed to pass
over its bytes, but only a piece of it is in memory at a time.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...schema.private_folder import private_folder
from ...xla.errors import DumpError
from .files import DAMAGED, PIECE, SourceFile, allowance, pieces

_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class FilePart:
    """A part of a plain file on disk, to be read when it is needed."""

    location: Path
    start: int
    size: int

    def read(self) -> bytes:
        """The bytes. Raises DumpError."""
        try:
            found = self._read()
        except DAMAGED as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise DumpError(f"the file cannot be read: {why}") from None
        if len(found) < self.size:
            raise _cut_short(self.start + len(found))
        return found

    def _read(self) -> bytes:
        with self.location.open("rb") as raw:
            raw.seek(self.start)
            return bytes(raw.read(self.size))


class PlainBytes:
    """The bytes of a plain file; see `readers.xplane.Forward`."""

    def __init__(self, raw: BinaryIO, location: Path, size: int) -> None:
        self._raw, self._location, self._size = raw, location, size
        self.position = 0

    @property
    def ended(self) -> bool:
        """Whether there are no more bytes."""
        return self.position >= self._size

    def read(self, size: int) -> bytes:
        """The next bytes. Raises DumpError."""
        self._advance(size)
        found = self._raw.read(size)
        if len(found) < size:  # The file has shrunk.
            raise _cut_short(self._size)
        return found

    def skip(self, size: int) -> None:
        """Pass over the next bytes. Raises DumpError."""
        self._advance(size)
        self._raw.seek(self.position)

    def keep(self, size: int) -> FilePart:
        """Pass over the next bytes, which stay in the file. Raises DumpError."""
        part = FilePart(self._location, self.position, size)
        self.skip(size)
        return part

    def _advance(self, size: int) -> None:
        if self.position + size > self._size:
            raise _cut_short(self._size)
        self.position += size


class UnpackedBytes:
    """The bytes of a compressed file; what is kept goes to the file `spool`."""

    def __init__(self, unpacked: Iterator[bytes], spool: Path, most: int) -> None:
        self._unpacked, self._spool, self._most = unpacked, spool, most
        self._piece = memoryview(b"")
        self.position = 0

    @property
    def ended(self) -> bool:
        """Whether there are no more bytes. Raises DumpError."""
        return not self._fill()

    def read(self, size: int) -> bytes:
        """The next bytes. Raises DumpError."""
        return b"".join(bytes(piece) for piece in self._take(size))

    def skip(self, size: int) -> None:
        """Pass over the next bytes. Raises DumpError."""
        for _ in self._take(size):
            pass

    def keep(self, size: int) -> FilePart:
        """Copy the next bytes to the spool. Raises DumpError."""
        with self._spool.open("ab") as spool:
            start = spool.tell()
            for piece in self._take(size):
                spool.write(piece)
        return FilePart(self._spool, start, size)

    def _take(self, size: int) -> Iterator[memoryview]:
        while size:
            if not self._fill():
                raise _cut_short(self.position)
            taken, self._piece = self._piece[:size], self._piece[size:]
            size -= len(taken)
            self.position += len(taken)
            if self.position > self._most:
                raise DumpError(f"it unpacks to more than {self._most} bytes")
            yield taken

    def _fill(self) -> bool:
        """Whether there is something in the piece, the next one if need be."""
        while not self._piece:
            try:
                piece = next(self._unpacked, None)
            except DAMAGED as error:
                raise DumpError(f"the file cannot be read: {error}") from None
            if piece is None:
                return False
            self._piece = memoryview(piece)
        return True


@contextmanager
def open_forward(file: SourceFile, cleanup: ExitStack) -> Iterator[PlainBytes | UnpackedBytes]:
    """Open a file. What is kept of a compressed one exists until `cleanup` ends.

    Raises DumpError.
    """
    try:
        raw = file.location.open("rb")
    except OSError as error:
        raise DumpError(f"the file cannot be read: {error.strerror}") from None
    with raw:
        if not file.path.endswith(_COMPRESSED):
            yield PlainBytes(raw, file.location, file.location.stat().st_size)
            return
        folder = cleanup.enter_context(private_folder())
        unpacked = pieces(raw, file.name, PIECE)
        yield UnpackedBytes(unpacked, folder / "kept", allowance(file.size))


def _cut_short(position: int) -> DumpError:
    return DumpError(f"it is cut short at byte {position}: copy it again")
