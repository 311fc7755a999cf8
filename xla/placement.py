"""An estimate of XLA's BufferAssigner: the allocation of each value, or temp.

Values that must alias are placed together; constants, parameters and outputs have allocations of
their own, and other values may go into these while they are free. The remaining ones are temp.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain, pairwise
from typing import Final

from .analysis import Analysis
from .errors import DumpError
from .post_order import post_order
from .program import NONE
from .schedule import last_times
from .sharing import Sharing
from .sizes import TPU, ValueSizes

# The search for free allocations looks at no more than this many, per program and per value.
_MIN_STEPS: Final = 2_000_000
_STEPS_PER_VALUE: Final = 100


class Kind(Enum):
    """The memory that values are in: an allocation of their own, or one that others share."""

    THREAD_LOCAL = "thread-local"
    CONSTANT = "constant"
    PARAMETER = "parameter"
    OUTPUT = "output"
    TEMP = "temp"


@dataclass(slots=True)
class AliasSet:
    """Values that must share memory.

    Attributes:
        number: the smallest of the values.
        values: ascending.
        size_bytes, memory_space: the largest of its values'.
        kind: where the values are; if another set owns the allocation, its kind.
        is_live_out: whether a value is part of the program's result.
        is_tuple: whether a value is a tuple's table of pointers.
        is_donated: whether a value is a parameter that the header aliases with an output.
        allocation: number of the set that owns the allocation; NONE in temp and in thread-local
            memory.
    """

    number: int
    values: list[int]
    size_bytes: int
    memory_space: int
    kind: Kind = Kind.TEMP
    is_live_out: bool = False
    is_tuple: bool = False
    is_donated: bool = False
    allocation: int = NONE

    @property
    def is_reusable(self) -> bool:
        """Whether other sets may go into the allocation that this set owns."""
        is_returned = self.is_live_out and self.kind is Kind.OUTPUT
        is_overwritten = self.is_donated and self.kind is Kind.PARAMETER
        return not self.is_tuple and (is_returned or is_overwritten)


def place_values(analysis: Analysis, sizes: ValueSizes, sharing: Sharing) -> dict[int, AliasSet]:
    """Decide in which memory each alias set is. Returns the sets by number, ascending.

    XLA places the largest set first, of equal ones those that are live-out: each tries the
    allocations of its operands, then all others from the smallest on. The newest libtpu gives each
    output an allocation of its own, and the remaining sets are temp.

    Raises DumpError if there are too many pairs of sets and allocations to try.
    """
    sets = _describe_sets(analysis, sizes)
    if analysis.is_newest_libtpu:
        return sets
    never_reuse = _sets_that_never_reuse(analysis, sharing.platform)
    search = _Search(analysis, sharing, sets)
    for alias_set in _sort_sets(analysis, sets):
        may_share = alias_set.kind in (Kind.TEMP, Kind.OUTPUT) and not alias_set.is_tuple
        may_share = may_share and alias_set.number not in never_reuse
        allocation = search.find(alias_set) if may_share else None
        if allocation is not None:
            alias_set.allocation, alias_set.kind = allocation.owner.number, allocation.owner.kind
            search.add(allocation, alias_set)
        elif alias_set.is_reusable:
            search.open(alias_set)
    return sets


def _describe_sets(analysis: Analysis, sizes: ValueSizes) -> dict[int, AliasSet]:
    """The alias sets by number, each as if it went into no other set's allocation."""
    program, flow, liveness = analysis.program, analysis.flow, analysis.liveness
    sets: dict[int, AliasSet] = {}
    constants, parameters, regional = set(), set(), set()
    for value, number in enumerate(liveness.alias_set):
        size, space = sizes.size_bytes[value], sizes.memory_space[value]
        alias_set = sets.get(number)
        if alias_set is None:
            alias_set = sets[number] = AliasSet(number, [value], size, space)
        else:
            alias_set.values.append(value)
            alias_set.size_bytes = max(alias_set.size_bytes, size)
            alias_set.memory_space = max(alias_set.memory_space, space)
        alias_set.is_tuple |= not flow.slots.is_leaf(flow.defined_at[value])
        row = flow.row[value]
        if program.opcode[row] == "constant":
            constants.add(number)
        elif program.opcode[row] == "parameter" and program.is_in_entry(row):
            parameters.add(number)
        if liveness.start[value] == NONE:
            regional.add(number)
    for value in analysis.live_out_values():
        sets[liveness.alias_set[value]].is_live_out = True
    for alias in program.aliases:
        parameter = program.parameter(program.entry, alias.number, program.root[program.entry])
        value = flow.value[flow.slots.find(parameter, alias.operand_index)]
        sets[liveness.alias_set[value]].is_donated = True
    for number, alias_set in sets.items():
        if number in constants:
            alias_set.kind = Kind.CONSTANT
        elif number in parameters:
            alias_set.kind = Kind.PARAMETER
        elif number in regional:
            alias_set.kind = Kind.THREAD_LOCAL
        elif alias_set.is_live_out:
            alias_set.kind = Kind.OUTPUT
        if alias_set.kind in (Kind.CONSTANT, Kind.PARAMETER, Kind.OUTPUT):
            alias_set.allocation = number
    return sets


def _sets_that_never_reuse(analysis: Analysis, platform: str) -> set[int]:
    """The numbers of the sets that never go into another set's allocation.

    On a TPU those of a collective-permute: other chips write into its memory at any time.
    """
    permutes = ("collective-permute", "collective-permute-start") if platform == TPU else ()
    return {
        number
        for row, number in zip(analysis.flow.row, analysis.liveness.alias_set, strict=True)
        if analysis.program.opcode[row] in permutes
    }


def _sort_sets(analysis: Analysis, sets: dict[int, AliasSet]) -> list[AliasSet]:
    """The sets that may share an allocation, in the order in which XLA places them.

    In descending order of size; of equal ones live-out sets first, then by post order of the
    instructions. There a computation precedes those that it calls: computations in reverse order.
    """
    largest: dict[int, int] = {}
    for alias_set in sets.values():
        if alias_set.is_reusable:
            space = alias_set.memory_space
            largest[space] = max(largest.get(space, 0), alias_set.size_bytes)
    candidates = [s for s in sets.values() if s.size_bytes <= largest.get(s.memory_space, NONE)]
    program, row = analysis.program, analysis.flow.row
    is_read = set(chain.from_iterable(program.operands))
    computations = reversed(range(len(program.computation_names)))
    starts = (r for c in computations for r in program.rows_of(c) if r not in is_read)
    rank = {row: rank for rank, row in enumerate(post_order(starts, program.operands))}

    def key(alias_set: AliasSet) -> tuple[int, bool, int]:
        lowest = min(rank[row[value]] for value in alias_set.values)
        return -alias_set.size_bytes, not alias_set.is_live_out, lowest

    return sorted(candidates, key=key)


class _Allocation:
    """An allocation, and the times when it is occupied.

    Attributes:
        owner: the first set in it, which decides its size and kind.
        by_start, by_end: the values in it by the start and by the end of their live range.
    """

    def __init__(self, owner: AliasSet) -> None:
        self.owner = owner
        self.by_start: dict[int, list[int]] = {}
        self.by_end: dict[int, list[int]] = {}
        # Times when it is occupied, ascending: its values are never live at the same time.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, value: int, start: int, end: int) -> None:
        """Put a value in."""
        self.by_start.setdefault(start, []).append(value)
        self.by_end.setdefault(end, []).append(value)
        index = bisect_right(self._ends, start)
        self._starts.insert(index, start)
        self._ends.insert(index, end)

    def is_occupied(self, start: int, end: int) -> bool:
        """Whether a value in it is live between two times, apart from touching at one of them."""
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end


class _Gaps:
    """Times when allocations of a memory space are free: a Fenwick tree of the latest ends."""

    def __init__(self, length: int) -> None:
        self._size = length + 3
        self._latest: dict[int, int] = {}

    def add(self, start: int, end: int) -> None:
        """Add a gap; `start` is NONE for one before the schedule."""
        index = start + 2
        while index <= self._size:
            self._latest[index] = max(self._latest.get(index, NONE), end)
            index += index & -index

    def has(self, start: int, end: int) -> bool:
        """Whether a gap includes these times."""
        index = start + 2
        while index:
            if self._latest.get(index, NONE) >= end:
                return True
            index &= index - 1
        return False


class _Search:
    """The search for allocations of reusable sets, which other sets may go into."""

    def __init__(self, analysis: Analysis, sharing: Sharing, sets: dict[int, AliasSet]) -> None:
        self._analysis, self._sharing, self._sets = analysis, sharing, sets
        # By number of the owner, in descending order of size.
        self._opened: dict[int, _Allocation] = {}
        self._gaps: dict[int, _Gaps] = {}
        self._allocation_of_value: dict[int, _Allocation] = {}
        self._copies = _copies(analysis)
        self._end_slot = _end_slots(analysis)
        self._steps = 0
        self._max_steps = _MIN_STEPS + _STEPS_PER_VALUE * len(analysis.flow)

    def open(self, alias_set: AliasSet) -> None:
        """Make the allocation that a set owns."""
        allocation = self._opened[alias_set.number] = _Allocation(alias_set)
        self.add(allocation, alias_set)
        start, end = self._analysis.liveness.start, self._analysis.liveness.end
        length = len(self._analysis.schedule)
        gaps = self._gaps.setdefault(alias_set.memory_space, _Gaps(length))
        values = sorted(alias_set.values, key=start.__getitem__)
        gaps.add(NONE, start[values[0]])
        for value, following in pairwise(values):
            gaps.add(end[value], start[following])
        gaps.add(end[values[-1]], length + 1)

    def add(self, allocation: _Allocation, alias_set: AliasSet) -> None:
        """Put a set into an allocation."""
        liveness = self._analysis.liveness
        for value in alias_set.values:
            allocation.add(value, liveness.start[value], liveness.end[value])
            self._allocation_of_value[value] = allocation

    def find(self, alias_set: AliasSet) -> _Allocation | None:
        """The first allocation that a set can go into, in XLA's order; None if it needs its own."""
        liveness, value = self._analysis.liveness, alias_set.values[0]
        gaps = self._gaps.get(alias_set.memory_space)
        # Nearly all sets fit into no allocation: the gaps show it without a search.
        if gaps is None or not gaps.has(liveness.start[value], liveness.end[value]):
            return None
        smallest_first = reversed(self._opened.values())
        for allocation in chain(self._allocations_of_operands(alias_set), smallest_first):
            self._count_steps(1)
            # It is large enough: its owner came earlier in descending order. XLA lets a live-out
            # set reuse only an allocation of its own size.
            owner = allocation.owner
            has_size = not alias_set.is_live_out or owner.size_bytes == alias_set.size_bytes
            is_in_space = owner.memory_space == alias_set.memory_space
            if has_size and is_in_space and self._fits_without_interference(allocation, alias_set):
                return allocation
        return None

    def _allocations_of_operands(self, alias_set: AliasSet) -> Iterator[_Allocation]:
        """The allocations of the operands of the instructions that define a set's values."""
        program, flow = self._analysis.program, self._analysis.flow
        for value in alias_set.values:
            row = flow.row[value]
            if flow.defined_at[value] != flow.slots.start[row]:
                continue
            for operand in program.operands[row]:
                operand_value = flow.value_of(operand)
                if operand_value != NONE:
                    number = self._analysis.liveness.alias_set[operand_value]
                    allocation = self._opened.get(self._sets[number].allocation)
                    if allocation is not None:
                        yield allocation

    def _count_steps(self, count: int) -> None:
        """Count steps. Raises DumpError when they are too many for the program's values."""
        self._steps += count
        if self._steps > self._max_steps:
            raise DumpError(
                f"deciding which values share memory takes more than {self._max_steps:,} steps: "
                "dump the buffer assignment too"
            )

    def _fits_without_interference(self, allocation: _Allocation, alias_set: AliasSet) -> bool:
        """Whether no value of a set interferes with a value in an allocation.

        Two values interfere if they are live at the same time, if one copies the other (XLA never
        lets a copy share with its operand), or if one ends where the other starts and the later
        may not overwrite the earlier.
        """
        liveness = self._analysis.liveness
        for value in alias_set.values:
            self._count_steps(1)
            start, end = liveness.start[value], liveness.end[value]
            if allocation.is_occupied(start, end) or self._copies_within(allocation, value):
                return False
            for ended in allocation.by_end.get(start, ()):
                may_follow = self._may_overwrite(value, ended)
                # If both are empty at the same time, either order will do; the loop below skips
                # such a pair.
                if not may_follow and not (
                    liveness.start[ended] == end and self._may_overwrite(ended, value)
                ):
                    return False
            for following in allocation.by_start.get(end, ()):
                if liveness.end[following] != start and not self._may_overwrite(following, value):
                    return False
        return True

    def _copies_within(self, allocation: _Allocation, value: int) -> bool:
        """Whether an allocation contains a copy of a value, or the value that it copies."""
        related = self._copies.get(value, ())
        return any(self._allocation_of_value.get(other) is allocation for other in related)

    def _may_overwrite(self, value: int, ended: int) -> bool:
        """Whether a value may be written over a value `ended` that ends as it starts."""
        program, flow = self._analysis.program, self._analysis.flow
        row, slot = flow.row[value], self._end_slot[ended]
        operands = program.operands[row]
        self._count_steps(1 + len(operands))
        operand = flow.slots.row[slot]
        if operand not in operands:
            return False
        number = operands.index(operand)
        return self._sharing.can_share(row, number, slot, flow.defined_at[value])


def _copies(analysis: Analysis) -> dict[int, list[int]]:
    """By value, its copies and the value that it copies."""
    program, flow = analysis.program, analysis.flow
    copies: defaultdict[int, list[int]] = defaultdict(list)
    for value, row in enumerate(flow.row):
        if program.opcode[row] == "copy":
            source = flow.value_of(program.operand(row, 0))
            copies[value].append(source)
            copies[source].append(value)
    return copies


def _end_slots(analysis: Analysis) -> list[int]:
    """By value, the slot that has it last in the schedule; of several the first in the text."""
    flow, last_time = analysis.flow, last_times(analysis.program, analysis.schedule)
    row, end_slots = flow.slots.row, list(flow.defined_at)
    for slot, value in enumerate(flow.value):
        if value != NONE and last_time[row[slot]] > last_time[row[end_slots[value]]]:
            end_slots[value] = slot
    return end_slots
