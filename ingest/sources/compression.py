"""Uncompresses files piece by piece and limits their uncompressed size."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

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
