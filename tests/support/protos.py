"""Protocol buffers, written and damaged: messages as lists of fields."""

from memhouse.ingest.readers.wire import BYTES, FIXED_SIZES, VARINT
from memhouse.ingest.readers.wire import varint as read_varint
from memhouse.xla.errors import DumpError

NUMBERS = (0, 1, 2, 3, 7, 13, 17, 34, 35, 100, 2**20, 2**31 - 1, 2**31, 2**44, 2**50, 2**62,
           2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip


def varint(number):
    """A number as it stands in a message."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """A field: of a number, or of bytes."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value % 2**64)
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def message(*pairs):
    """A message of (field number, value) pairs; a value may be a message."""
    return b"".join(field(number, value) for number, value in pairs)


def packed(*numbers):
    """A packed list of numbers."""
    return b"".join(varint(number % 2**64) for number in numbers)


def fields(data):
    """The fields of a message: number, wire type, the value or the content's start, and the end."""
    at = 0
    while at < len(data):
        tag, after = read_varint(data, at, len(data))
        number, kind = tag >> 3, tag & 7
        if not number or kind not in (VARINT, BYTES, *FIXED_SIZES):
            raise DumpError(f"no field at byte {at}")
        if kind == VARINT:
            value, at = read_varint(data, after, len(data))
        else:
            length = FIXED_SIZES.get(kind)
            if kind == BYTES:
                length, after = read_varint(data, after, len(data))
            value, at = after, after + length
            if at > len(data):
                raise DumpError(f"field {number} is cut short")
            if kind != BYTES:
                value = int.from_bytes(data[after:at], "little")
        yield number, kind, value, at


def pairs(data):
    """The fields of a message as pairs; None if it is not one."""
    try:
        return [
            (number, first if kind == VARINT else data[first:end])
            for number, kind, first, end in fields(data)
        ]
    except DumpError:
        return None


def changed(data, path, change):
    """The message with one field changed, which lies at a path of (field number, place) pairs."""
    found = pairs(data)
    (number, place), *rest = path
    at = [i for i, (n, _) in enumerate(found) if n == number][place]
    value = changed(found[at][1], rest, change) if rest else change(found[at][1])
    kept = [] if value is None else [(number, value)]
    return message(*found[:at], *kept, *found[at + 1 :])


def damaged(chance, data):
    """A copy with bytes cut, flipped, inserted or moved, or with lengths that lie."""
    at, stop = sorted(chance.randrange(len(data)) for _ in range(2))
    piece = data[at : min(stop, at + 300)]
    return chance.choice(
        (
            lambda: data[:at],
            lambda: data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :],
            lambda: data[:at] + varint(chance.choice(NUMBERS)) + data[at + 1 :],
            lambda: data[:at] + data[at + len(piece) :],
            lambda: data[:at] + chance.randbytes(chance.randrange(1, 30)) + data[at:],
            lambda: data[:stop] + piece + data[stop:],
        )
    )()


def mutated(chance, data, depth=0):
    """A copy in which one field at any depth is another, and all lengths are right."""
    found = pairs(data)
    if not found or depth > 9:
        return chance.choice((b"", data[:-1], data + data, chance.randbytes(5)))
    at = chance.randrange(len(found))
    number, value = found[at]
    if isinstance(value, bytes) and (depth < 2 or chance.random() < 0.75):
        new = [(number, mutated(chance, value, depth + 1))]
    else:
        other = chance.choice(NUMBERS) if isinstance(value, int) else value
        new = chance.choice(([], [found[at]] * 2, [chance.choice(found)], [(number, other)]))
    return message(*found[:at], *new, *found[at + 1 :])
