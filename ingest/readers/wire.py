"""The wire format of protocol buffers in columns: many messages of one type at once.

Each turn reads one field of every message that has bytes left. The last few long messages are
read field by field, because a turn costs the same for few messages as for hundreds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...xla.errors import DumpError
from .lines import Bytes, Mask, Positions, slices
from .wire_bytes import Wire, checked_texts, unpacked
from .wire_scalar import BYTES, VARINT, field_starts, fields, signed

_FEW = 200
_LARGEST_KNOWN = 127  # of the fields that readers ask for
_UNKNOWN, _LIST = -1, -2  # instead of a wire type; a list may be packed (bytes) or not


@dataclass(frozen=True)
class Found:
    """The occurrences of one field: by message, and within a message in its order.

    kind: the wire type. first, end: of bytes, where the content starts and ends; otherwise the
    number, and where the field ends.
    """

    message: Positions
    kind: Bytes
    first: Positions
    end: Positions

    def __len__(self) -> int:
        return len(self.message)

    def at(self, chosen: Mask | Positions) -> "Found":
        """Some of the occurrences."""
        return Found(self.message[chosen], self.kind[chosen], self.first[chosen], self.end[chosen])


@dataclass(frozen=True)
class Messages:
    """The wanted fields of `count` messages of one type, which count from 0."""

    wire: Wire
    count: int
    found: Mapping[int, Found]

    def each(self, number: int) -> Found:
        """All occurrences of a field."""
        return self.found[number]

    def last(self, number: int) -> Found:
        """The last occurrence of a field in each message that has it: the one that counts."""
        found = self.found[number]
        return found.at(np.append(found.message[1:] != found.message[:-1], True)[: len(found)])

    def has(self, number: int) -> Mask:
        """Which messages have a field."""
        column = np.zeros(self.count, bool)
        column[self.found[number].message] = True
        return column

    def numbers(self, number: int) -> Positions:
        """A field that holds a number, of all messages; 0 where it is left out."""
        found = self.last(number)
        column = np.zeros(self.count, np.int64)
        column[found.message] = found.first
        return column

    def texts(self, number: int, what: str) -> pa.LargeStringArray:
        """A field that holds text, of all messages; empty where left out. Raises DumpError."""
        found = self.last(number)
        starts, ends = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        starts[found.message], ends[found.message] = found.first, found.end
        # Messages are in the file's order, so an empty text may stand where the one before ends.
        ends = np.maximum.accumulate(ends) if len(ends) else ends
        missing = ~self.has(number)
        starts[missing] = ends[missing]
        return checked_texts(slices(self.wire.content, starts, ends), starts, what)

    def lists(self, number: int) -> tuple[Positions, Positions]:
        """A repeated field of numbers: each number's message, and the number. Raises DumpError."""
        found = self.found[number]
        # XLA writes such a list as bytes, but the format also allows a field for each number.
        is_list = found.kind == BYTES
        owner, numbers = unpacked(self.wire, found.first[is_list], found.end[is_list])
        if is_list.all():
            return found.message[owner], numbers
        occurrence = np.concatenate([np.flatnonzero(is_list)[owner], np.flatnonzero(~is_list)])
        numbers = np.concatenate([numbers, found.first[~is_list]])
        order = np.argsort(occurrence, kind="stable")
        return found.message[occurrence[order]], numbers[order]


def read_messages(
    wire: Wire,
    starts: Positions,
    ends: Positions,
    *,
    numbers: tuple[int, ...] = (),
    contents: tuple[int, ...] = (),
    lists: tuple[int, ...] = (),
) -> Messages:
    """Read some fields of messages of one type, which are in the order of the file.

    `numbers` are the fields that hold a number, `contents` those of bytes, text or a message,
    and `lists` repeated numbers. All other fields are passed over. Raises DumpError, which
    names the byte, if a field does not fit its message or has another type.
    """
    wanted = np.full(_LARGEST_KNOWN + 2, _UNKNOWN, np.int8)
    for of_kind, expected in ((numbers, VARINT), (contents, BYTES), (lists, _LIST)):
        wanted[list(of_kind)] = expected
    turns = []
    message = np.flatnonzero(starts < ends)
    at, stop = starts[message], ends[message]
    while len(at) > _FEW:
        number, kind, first, end = _next_fields(wire, at, stop)
        turns.append(_chosen(wanted, message, number, kind, first, end))
        left = end < stop
        if left.all():
            at = end
        else:
            message, at, stop = message[left], end[left], stop[left]
    turns.append(_one_by_one(wire, wanted, message, at, stop))
    columns = [np.concatenate(column) for column in zip(*turns, strict=True)]
    found = {number: _occurrences(number, *columns) for number in (*numbers, *contents, *lists)}
    return Messages(wire, len(starts), found)


_Columns = tuple[Positions, Bytes, Bytes, Positions, Positions]


def _next_fields(
    wire: Wire, at: Positions, stop: Positions
) -> tuple[Positions, Positions, Positions, Positions]:
    """The field at each of these bytes: number, wire type, and as in `Found`."""
    tag, tag_length = wire.numbers_at(at)
    number, kind = (tag >> np.uint64(3)).astype(np.int64), (tag & np.uint64(7)).astype(np.int64)
    value, length = wire.numbers_at(at + tag_length)
    value = value.view(np.int64)
    after = at + tag_length + length
    is_bytes = kind == BYTES
    first = np.where(is_bytes, after, value)
    end = np.where(is_bytes, after + value, after)
    plain = (kind == VARINT) | is_bytes
    odd = ~plain | (tag_length == 0) | (length == 0) | (number == 0) | (number > _LARGEST_KNOWN)
    wrong = ~odd & (end > stop)
    for row in np.flatnonzero(odd | wrong).tolist():
        # Rare or damaged: the scalar reader knows all cases, and what to say.
        field = next(fields(wire.data, int(at[row]), int(stop[row])))
        number[row], kind[row], _, end[row] = field
        first[row] = signed(field[2])
    return number, kind, first, end


def _one_by_one(
    wire: Wire, wanted: npt.NDArray[np.int8], message: Positions, at: Positions, stop: Positions
) -> _Columns:
    """The rest of a few long messages: only where each field starts is found one by one."""
    starts = [
        np.frombuffer(field_starts(wire.data, start, end), np.int64)
        for start, end in zip(at.tolist(), stop.tolist(), strict=True)
    ]
    counts = [len(found) for found in starts]
    place = np.concatenate([at[:0], *starts])
    fields_of = _next_fields(wire, place, np.repeat(stop, counts))
    return _chosen(wanted, np.repeat(message, counts), *fields_of)


def _chosen(
    wanted: npt.NDArray[np.int8],
    message: Positions,
    number: Positions,
    kind: Positions,
    first: Positions,
    end: Positions,
) -> _Columns:
    """The wanted ones among these fields. Raises DumpError for a wrong wire type."""
    expected = wanted[np.minimum(number, _LARGEST_KNOWN + 1)]
    chosen = np.flatnonzero(expected != _UNKNOWN)
    message, number, kind = message[chosen], number[chosen], kind[chosen]
    first, end, expected = first[chosen], end[chosen], expected[chosen]
    right = (kind == expected) | ((expected == _LIST) & ((kind == VARINT) | (kind == BYTES)))
    if not right.all():
        row = int(np.argmin(right))
        raise DumpError(
            f"field {number[row]} that ends at byte {end[row]} has wire type {kind[row]}:"
            " the file is damaged, dump the program again"
        )
    return message, number.astype(np.uint8), kind.astype(np.uint8), first, end


def _occurrences(
    wanted: int,
    message: Positions,
    number: Bytes,
    kind: Bytes,
    first: Positions,
    end: Positions,
) -> Found:
    """One field's occurrences, by message; a message's own are in its order already."""
    chosen = np.flatnonzero(number == wanted)
    of = message[chosen]
    if (of[1:] < of[:-1]).any():
        chosen = chosen[np.argsort(of, kind="stable")]
    return Found(message[chosen], kind[chosen], first[chosen], end[chosen])
