"""Where the fields of a protocol buffer stand in a file, which the package protobuf does not say.

A message is a sequence of fields: a tag (field number and wire type) and a value.
"""

from collections.abc import Iterator

from ...xla.errors import DumpError

# Wire types: a varint, eight bytes, a length with so many bytes, four bytes.
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
_FIXED = {EIGHT: 8, FOUR: 4}
_LONGEST_VARINT = 10
_LARGEST_NUMBER = 2**29 - 1

# Number, wire type, and two numbers. Of BYTES: where the content starts and ends. Of all
# others: the value (unsigned), and where the field ends.
Field = tuple[int, int, int, int]


def fields(data: bytes | memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message between two bytes of a file, in its order.

    Nothing beyond `end` is read. Raises DumpError, which names the byte of the file.
    """
    at = start
    while at < end:
        # Most tags and lengths have one byte, so these are read without a call.
        tag, after = data[at], at + 1
        if tag >= 0x80:
            if after < end and data[after] < 0x80:
                tag, after = tag & 0x7F | data[after] << 7, after + 1
            else:
                tag, after = varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _LARGEST_NUMBER:
            raise DumpError(f"not a protocol buffer: field number {number} at byte {at}")
        if kind == BYTES:
            if after < end and data[after] < 0x80:
                length, first = data[after], after + 1
            else:
                length, first = varint(data, after, end)
            after = first + length
            if after > end:
                raise DumpError(_too_long(at, number, length, end - first))
            yield number, kind, first, after
        elif kind == VARINT:
            if after < end and data[after] < 0x80:
                value, after = data[after], after + 1
            else:
                value, after = varint(data, after, end)
            yield number, kind, value, after
        elif kind in _FIXED:
            first, after = after, after + _FIXED[kind]
            if after > end:
                raise DumpError(_too_long(at, number, _FIXED[kind], end - first))
            yield number, kind, int.from_bytes(data[first:after], "little"), after
        else:
            raise DumpError(f"not a protocol buffer: wire type {kind} at byte {at}")
        at = after


def varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at a byte, and where it ends. Raises DumpError."""
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    if end < at + _LONGEST_VARINT:
        raise DumpError(f"the number at byte {at} is cut short: dump the program again")
    raise DumpError(f"the number at byte {at} is longer than ten bytes")


def _too_long(at: int, number: int, length: int, room: int) -> str:
    """The message for a field that does not fit its message."""
    return (
        f"field {number} at byte {at} should have {length} bytes, but its message has {room}:"
        " the file is cut short or damaged, dump the program again"
    )


def content(field: Field) -> tuple[int, int]:
    """Where a field's bytes start and end. Raises DumpError if the field holds a number."""
    number, kind, first, end = field
    if kind != BYTES:
        raise DumpError(f"field {number} that ends at byte {end} should hold bytes: damaged")
    return first, end
