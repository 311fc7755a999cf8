"""Uncompresses files a piece at a time, and bounds what they unpack to."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

# The longest text that is read, uncompressed; the longest seen is 30 MiB (`large`).
MAX_TEXT_BYTES = 4 << 30
# All that is unpacked of one archive to the temporary folder, and in how many files.
MAX_ARCHIVE_BYTES = 64 << 30
MAX_ARCHIVE_FILES = 1_000_000
# What is compressed may unpack to so many times its size, and to so much in any case. Ten
# nights of the same four workloads in one archive make 70 times its size.
MAX_RATIO = 1000
ANY_RATIO_BYTES = 256 << 20
# `zstd --long` asks for as much memory to unpack; more is refused.
_MAX_WINDOW_BYTES = 1 << 27
PIECE = 1 << 20
# Four bytes of a zstd bomb make 128 KiB: so little is unpacked at once.
_ZSTD_PIECE = 1 << 10
# What damaged files and archives make Python's readers raise.
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


def allowance(size: int) -> int:
    """How much a compressed file of this size may hold."""
    return max(ANY_RATIO_BYTES, size * MAX_RATIO)


def pieces(raw: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """A file's bytes, uncompressed as its name says, about `size` at a time."""
    if name.endswith((".zst", ".tzst")):
        yield from _unpacked_zstd(raw)
        return
    stream = gzip.GzipFile(fileobj=raw) if name.endswith((".gz", ".tgz")) else raw
    while piece := stream.read(size):
        yield piece


def _unpacked_zstd(raw: BinaryIO) -> Iterator[bytes]:
    """The frames of a zstd file. Raises EOFError if the last is cut short."""
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
