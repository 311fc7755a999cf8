"""The encoding of a protocol buffer: a sequence of fields, each a tag and a value.

A tag is the number of the field and its wire type.
"""

from typing import Final

from ...xla.errors import DumpError

# Wire types: a varint, a length with that many bytes, and those of a fixed number of bytes.
VARINT: Final = 0
BYTES: Final = 2
FIXED_SIZES: Final = {1: 8, 5: 4}
_MAX_VARINT_BYTES: Final = 10


def varint(data: bytes | memoryview, start: int, end: int) -> tuple[int, int]:
    """The unsigned number at byte `start`, and where it ends. Raises DumpError."""
    value = shift = 0
    for at in range(start, min(end, start + _MAX_VARINT_BYTES)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
    if end < start + _MAX_VARINT_BYTES:
        raise DumpError(f"the number at byte {start} is cut short: dump the program again")
    raise DumpError(f"the number at byte {start} is longer than ten bytes")


def encode_varint(number: int) -> bytes:
    """The bytes of an unsigned number: seven bits a byte, and a bit if another byte follows."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
