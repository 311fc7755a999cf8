"""The fields of a protocol buffer and their bytes, which the package protobuf does not report.

A message is a sequence of fields: a tag (field number and wire type) and a value.
"""

from collections.abc import Iterator
from typing import Final

from ...xla.errors import DumpError

# Wire types: a varint, eight bytes, a length with that many bytes, four bytes.
VARINT: Final = 0
EIGHT: Final = 1
BYTES: Final = 2
FOUR: Final = 5
FIXED_SIZES: Final = {EIGHT: 8, FOUR: 4}
_MAX_VARINT_BYTES: Final = 10
_MAX_FIELD_NUMBER: Final = 2**29 - 1

# Number, wire type, and two integers. For BYTES: where the content starts and ends. For other
# types: the value (unsigned), and where the field ends.
Field = tuple[int, int, int, int]


def fields(data: bytes | memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message from byte `start` up to `end`, in its order.

    Nothing from `end` on is read. Raises DumpError, which names the byte of the file.
    """
    at = start
    while at < end:
        tag, after = varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _MAX_FIELD_NUMBER:
            raise DumpError(f"not a protocol buffer: field number {number} at byte {at}")
        if kind == VARINT:
            value, after = varint(data, after, end)
            yield number, kind, value, after
            at = after
            continue
        if kind == BYTES:
            length, after = varint(data, after, end)
        elif kind in FIXED_SIZES:
            length = FIXED_SIZES[kind]
        else:
            raise DumpError(f"not a protocol buffer: wire type {kind} at byte {at}")
        if length > end - after:
            raise DumpError(
                f"field {number} at byte {at} should have {length} bytes, but its message has "
                f"{end - after}: the file is cut short or damaged, dump the program again"
            )
        value = after if kind == BYTES else int.from_bytes(data[after : after + length], "little")
        at = after + length
        yield number, kind, value, at


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
