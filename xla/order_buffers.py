"""The buffers whose peak depends on the order of instructions."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .program import NONE, Program


class OrderedValue(NamedTuple):
    """A value of a program whose instructions are ordered.

    Attributes:
        row: the defining instruction.
        alias_set: NONE for a value that must share no memory.
        size_bytes: 0 if not known.
        allocation, offset_bytes: in the memory space that is ordered; NONE without a live range,
            or in another space.
        is_temp: whether the allocation is a temp.
    """

    value_id: int
    row: int
    alias_set: int
    memory_space: int
    size_bytes: int
    allocation: int = NONE
    offset_bytes: int = NONE
    is_temp: bool = False


@dataclass(frozen=True)
class Resident:
    """A value in the memory of an argument or a result.

    Attributes:
        rows: the instructions that access it.
        is_argument: whether it is live from the start.
        is_guest: whether it is no argument or result, and uses the memory while these do not.
    """

    allocation: int
    size_bytes: int
    rows: Collection[int]
    is_argument: bool
    is_guest: bool


@dataclass(frozen=True)
class Buffers:
    """The buffers in temp of a program, and the instructions that access them.

    Attributes:
        sizes: by buffer, in bytes.
        touches: by buffer, the instructions that define or read it.
        defined_bytes: by instruction, of all values that it defines.
        values: by buffer, the value_ids in it.
        shares: instructions whose result overlaps an operand in the dump, with the operand's
            buffer and the result's.
        shared_sets: for each set of values that share memory in any order, in any memory space: the
            instructions that define them, and those that read them.
        residents: the values in the allocations of arguments and results that have guests or
            could have some.
    """

    sizes: Sequence[int]
    touches: Sequence[Iterable[int]]
    defined_bytes: Sequence[int]
    values: Sequence[Sequence[int]] = ()
    shares: Iterable[tuple[int, int, int]] = ()
    shared_sets: Iterable[tuple[Sequence[int], Sequence[int]]] = ()
    residents: Sequence[Resident] = ()


def find_buffers(
    program: Program, values: Sequence[OrderedValue], uses: Iterable[tuple[int, int]]
) -> Buffers:
    """The buffers of the values that are in temps alone.

    Args:
        values: in ascending order of value_id.
        uses: a value_id, and an instruction that reads the value.
    """
    index_of = {value.value_id: index for index, value in enumerate(values)}
    # The instructions that read each value.
    readers: list[list[int]] = [[] for _ in values]
    for value_id, row in uses:
        if value_id in index_of:
            readers[index_of[value_id]].append(row)
    # A value that shares no memory is a set of its own, numbered before all others.
    sets = [
        -1 - number if value.alias_set == NONE else value.alias_set
        for number, value in enumerate(values)
    ]
    sizes = _temp_sizes(values, sets)
    buffer_of_set = {alias_set: buffer for buffer, alias_set in enumerate(sizes)}
    buffer_of = [buffer_of_set.get(alias_set, NONE) for alias_set in sets]
    touches: list[set[int]] = [set() for _ in sizes]
    contents: list[list[int]] = [[] for _ in sizes]
    defined_bytes = [0] * len(program)
    for value, rows, buffer in zip(values, readers, buffer_of, strict=True):
        defined_bytes[value.row] += value.size_bytes
        if buffer != NONE:
            touches[buffer].update((value.row, *rows))
            contents[buffer].append(value.value_id)
    return Buffers(
        list(sizes.values()),
        touches,
        defined_bytes,
        contents,
        _find_shares(values, readers, buffer_of),
        _shared_sets(values, readers, sets),
        _residents(program, values, readers, sets),
    )


def _temp_sizes(values: Sequence[OrderedValue], sets: Sequence[int]) -> dict[int, int]:
    """The bytes of each alias set whose values are in temps alone, ascending by set."""
    sizes: dict[int, int] = {}
    fixed = set()
    for value, alias_set in zip(values, sets, strict=True):
        if value.is_temp:
            sizes[alias_set] = max(value.size_bytes, sizes.get(alias_set, 0))
        elif value.allocation != NONE:
            fixed.add(alias_set)
    return {alias_set: sizes[alias_set] for alias_set in sorted(sizes.keys() - fixed)}


def _shared_sets(
    values: Sequence[OrderedValue], readers: Sequence[Sequence[int]], sets: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """For each set of several values, the instructions that define and that read them."""
    counts = Counter(sets)
    rows: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for value, reading, alias_set in zip(values, readers, sets, strict=True):
        if counts[alias_set] > 1:
            rows[alias_set][0].append(value.row)
            rows[alias_set][1].extend(reading)
    return list(rows.values())


def _find_shares(
    values: Sequence[OrderedValue], readers: Sequence[Sequence[int]], buffer_of: Sequence[int]
) -> set[tuple[int, int, int]]:
    """The results that overlap an operand: instruction, operand's buffer, result's buffer."""
    results: dict[int, list[int]] = defaultdict(list)
    for number, value in enumerate(values):
        if value.allocation != NONE and buffer_of[number] != NONE:
            results[value.row].append(number)
    shares = set()
    for number, operand in enumerate(values):
        if operand.allocation == NONE or buffer_of[number] == NONE:
            continue
        for row in readers[number]:
            for result in results.get(row, ()):
                if buffer_of[result] != buffer_of[number] and _overlap(operand, values[result]):
                    shares.add((row, buffer_of[number], buffer_of[result]))
    return shares


def _overlap(left: OrderedValue, right: OrderedValue) -> bool:
    """Whether two values have bytes in common."""
    return (
        left.allocation == right.allocation
        and left.offset_bytes < right.offset_bytes + right.size_bytes
        and right.offset_bytes < left.offset_bytes + left.size_bytes
    )


def _residents(
    program: Program,
    values: Sequence[OrderedValue],
    readers: Sequence[Sequence[int]],
    sets: Sequence[int],
) -> list[Resident]:
    """The values in the allocations of arguments and results that have guests or could have some.

    An argument that is no result cannot be written over: the caller keeps it.
    """
    parameters = {
        row for row in program.rows_of(program.entry) if program.opcode[row] == "parameter"
    }
    root = program.root[program.entry]
    members: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, value in enumerate(values):
        if value.allocation != NONE and not value.is_temp:
            members[value.allocation, sets[number]].append(number)
    residents: list[Resident] = []
    borrowed: set[int] = set()
    for (allocation, _), numbers in members.items():
        touches = {number: [values[number].row, *readers[number]] for number in numbers}
        rows = {row for touched in touches.values() for row in touched}
        is_guest = root not in rows and parameters.isdisjoint(rows)
        if is_guest or root in rows:
            borrowed.add(allocation)
        if is_guest:
            size = max(values[number].size_bytes for number in numbers)
            residents.append(Resident(allocation, size, rows, False, True))
            continue
        for number, touched in touches.items():
            row, size = values[number].row, values[number].size_bytes
            residents.append(Resident(allocation, size, touched, row in parameters, False))
    return [resident for resident in residents if resident.allocation in borrowed]
