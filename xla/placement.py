"""Which values lie in an allocation of their own for the whole program, and which in temp."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import chain

import numpy as np

from .columns.dataflow import TPU, Dataflow, Sizes
from .columns.liveness import Derived, Liveness
from .columns.program import NONE, Ints, Mask, NumberedProgram, post_order
from .errors import DumpError
from .runs import joined
from .sharing import Sharing

# When the allocations of alias sets are free, and which other sets may fit into them.
#
# Nearly every set fits nowhere, so that a look at the largest gaps leaves a few sets to try one
# by one.

# Sets of more sizes are taken together, as if each were as small as the smallest.
_SIZES = 64


@dataclass(frozen=True)
class Members:
    """The values by alias set."""

    order: Ints
    start: Ints

    def of(self, sets: Ints) -> list[list[int]]:
        """The values of each of these sets."""
        return [self.order[self.start[n] : self.start[n + 1]].tolist() for n in sets.tolist()]


def members_of(alias_set: Ints) -> Members:
    """Group the values by their alias sets."""
    order = np.argsort(alias_set, kind="stable")
    count = np.bincount(alias_set, minlength=len(order))
    return Members(order, np.concatenate([[0], np.cumsum(count)]))


def may_fit(
    tries: Ints, makers: Ints, set_size: Ints, set_space: Ints, liveness: Liveness, members: Members
) -> Mask:
    """Which sets may fit into an allocation as it is before any other set goes there.

    A set needs a gap in which the first of its values lives, in an allocation of its space
    and at least of its size. Most sets have none: they are never tried one by one. Of many
    sizes a set counts as a little smaller than it is.
    """
    low, high, owner = _gaps(makers, liveness, members)
    size, space = set_size[owner], set_space[owner]
    first = members.order[members.start[tries]]
    start, end = liveness.start[first], liveness.end[first]
    may = np.zeros(len(tries), bool)
    by_low = np.argsort(low, kind="stable")
    low, high, size, space = low[by_low], high[by_low], size[by_low], space[by_low]
    sizes = np.unique(set_size[tries])
    sizes = sizes[:: 1 + len(sizes) // _SIZES]
    level = np.searchsorted(sizes, set_size[tries], "right") - 1
    for number in np.unique(space).tolist():
        for place, least in enumerate(sizes.tolist()):
            at = np.flatnonzero((set_space[tries] == number) & (level == place))
            gaps = np.flatnonzero((space == number) & (size >= least))
            if not len(at) or not len(gaps):
                continue
            # Of the gaps that begin by then, the one that ends last.
            until = np.maximum.accumulate(high[gaps])
            before = np.searchsorted(low[gaps], start[at], "right")
            may[at] = (before > 0) & (until[before - 1] >= end[at])
    return may


def _gaps(makers: Ints, liveness: Liveness, members: Members) -> tuple[Ints, Ints, Ints]:
    """When the allocations of some sets are free: from, to, and the set.

    A value may begin as the gap's neighbour ends, so that both bounds belong to the gap.
    """
    count = members.start[makers + 1] - members.start[makers]
    owner = np.repeat(makers, count)
    values = np.concatenate([np.array([], np.int64), *(members.of(makers))]).astype(np.int64)
    order = np.lexsort((liveness.start[values], owner))
    values, owner = values[order], owner[order]
    latest = int(liveness.end.max(initial=0)) + 1
    head = np.concatenate([[True], owner[1:] != owner[:-1]])[: len(owner)]
    low = np.where(head, NONE, np.roll(liveness.end[values], 1))
    high = liveness.start[values]
    last = np.concatenate([head[1:], [True]])[: len(owner)]
    low = np.concatenate([low, liveness.end[values[last]]])
    high = np.concatenate([high, np.full(int(last.sum()), latest)])
    owner = np.concatenate([owner, owner[last]])
    open_ = low <= high
    return low[open_], high[open_], owner[open_]


# Which values lie in an allocation of their own for the whole program, and which in temp.
#
# An estimate of XLA's BufferAssigner: values that must alias are placed together; constants,
# parameters and outputs have allocations of their own, and other values may go into these while
# they are free. What is left is temp.

THREAD_LOCAL, CONSTANT, PARAMETER, OUTPUT, TEMP = range(5)

# What is looked at while places are sought, in all and for each value of the program.
_LEAST_STEPS, _STEPS_A_VALUE = 2_000_000, 100
# Larger groups of pairs of values are asked about one pair at a time, if at all.
_PAIRS_AT_ONCE = 64


@dataclass(frozen=True)
class Placement:
    """Where each value goes: `kind` is one of the constants above.

    `allocation` is the alias set that an allocation was made for, NONE for temp and
    thread-local values. `set_size` and `lives_out` are by an alias set's number.
    """

    kind: Ints
    allocation: Ints
    set_size: Ints
    lives_out: Mask


@dataclass
class _Sets:
    """The alias sets as columns, by the set's number; other rows mean nothing."""

    size: Ints
    space: Ints
    kind: Ints
    lives_out: Mask
    is_tuple: Mask


class _Held:
    """The values in an allocation: when it is busy, and which of them begin and end when."""

    def __init__(self) -> None:
        self.by_start: dict[int, list[int]] = {}
        self.by_end: dict[int, list[int]] = {}
        # Lives that overlap are one; those that only touch are two.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, value: int, start: int, end: int) -> None:
        """Put a value in."""
        self.by_start.setdefault(start, []).append(value)
        self.by_end.setdefault(end, []).append(value)
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if low < high:
            start, end = min(start, self._starts[low]), max(end, self._ends[high - 1])
        else:
            high = low
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]

    def is_busy(self, start: int, end: int) -> bool:
        """Whether a value lives within this time, and not only as it begins or ends."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end


class _Allocations:
    """The allocations that other values may go into, in the order in which they are made.

    `spent` counts what was looked at, so that a program that no rule here was made for ends.
    """

    def __init__(
        self, program: NumberedProgram, dataflow: Dataflow, liveness: Liveness, sharing: Sharing
    ):
        self.program, self.dataflow, self.liveness = program, dataflow, liveness
        self.sharing = sharing
        self.order: list[int] = []
        self.held: dict[int, _Held] = {}
        self.end_slot = _end_slots(program, dataflow, liveness, sharing)
        # As lists: thousands of values are compared one by one.
        self.start, self.end = liveness.start.tolist(), liveness.end.tolist()
        copied = _copied(program, dataflow)
        self.copied = copied.tolist()
        self.copies: dict[int, list[int]] = {}
        for copy in np.flatnonzero(copied != NONE).tolist():
            self.copies.setdefault(self.copied[copy], []).append(copy)
        self.allocation_of: dict[int, int] = {}
        self.spent, self.most = 0, _LEAST_STEPS + _STEPS_A_VALUE * len(dataflow)
        self.taken, self.is_known = self._handed_over()

    def make(self, alias_set: int, values: list[int]) -> None:
        """Add the allocation of an alias set."""
        self.order.append(alias_set)
        self.held[alias_set] = _Held()
        self.add(alias_set, values)

    def add(self, allocation: int, values: list[int]) -> None:
        """Put values into an allocation."""
        held = self.held[allocation]
        for value in values:
            held.add(value, self.start[value], self.end[value])
            self.allocation_of[value] = allocation

    def spend(self, steps: int) -> None:
        """Count steps. Raises DumpError when they are too many for the program's values."""
        self.spent += steps
        if self.spent > self.most:
            raise DumpError(
                f"to work out which values share memory takes more than {self.most:,} steps: "
                "dump the buffer assignment too"
            )

    def is_free(self, allocation: int, values: list[int]) -> bool:
        """Whether no value in the allocation interferes with one of these.

        Two values interfere if they live together and not by turns, or if one copies the other.
        """
        held = self.held[allocation]
        for value in values:
            self.spend(1)
            start, end = self.start[value], self.end[value]
            if held.is_busy(start, end):
                return False
            if self.allocation_of.get(self.copied[value]) == allocation:
                return False
            if any(self.allocation_of.get(c) == allocation for c in self.copies.get(value, ())):
                return False
            for other in held.by_end.get(start, ()):
                if not self._hands_over(other, value) and not (
                    self.start[other] == end and self._hands_over(value, other)
                ):
                    return False
            for other in held.by_start.get(end, ()):
                if self.end[other] != start and not self._hands_over(value, other):
                    return False
        return True

    def _hands_over(self, earlier: int, later: int) -> bool:
        """Whether the later value may take the place of the earlier one as it ends."""
        self.spend(1)
        if self.is_known[later]:
            return earlier * len(self.dataflow) + later in self.taken
        slots = self.dataflow.slots
        slot = int(self.end_slot[earlier])
        result = int(self.dataflow.defined_at[later])
        user = int(slots.instruction[result])
        begin, end = self.program.operand_start[user], self.program.operand_start[user + 1]
        self.spend(int(end - begin) + 100)
        numbers = np.flatnonzero(self.program.operands[begin:end] == slots.instruction[slot])
        if not len(numbers):
            return False
        return bool(
            self.sharing.can_share(
                np.array([user]), numbers[:1], np.array([slot]), np.array([result])
            )[0]
        )

    def _handed_over(self) -> tuple[set[int], list[bool]]:
        """Which values take the place of which as these end: `earlier * count + later`.

        Asked for all pairs at once. Of instructions with many operands and results, and of
        operands of which many values end at once, the pairs are asked one by one instead: the
        second list says of which later values all pairs are here.
        """
        flow, program = self.dataflow, self.program
        slots, count = flow.slots, len(flow)
        later = np.arange(count)
        user = slots.instruction[flow.defined_at]
        results = np.bincount(user, minlength=len(program))
        is_known = program.operand_count[user] * results[user] <= _PAIRS_AT_ONCE
        later = later[is_known]
        counts = program.operand_count[user[later]]
        at = joined(program.operand_start[user[later]], counts)
        row = np.repeat(np.arange(len(later)), counts)
        number = at - program.operand_start[user[later]][row]
        # Of an operand that is named twice, the first counts.
        width = int(self.liveness.end.max(initial=0)) + 2
        operand = program.operands[at]
        _, first = np.unique(row * len(program) + operand, return_index=True)
        row, number, operand = row[first], number[first], operand[first]
        wanted = operand * width + self.liveness.start[later[row]]
        given = slots.instruction[self.end_slot] * width + self.liveness.end
        order = np.argsort(given, kind="stable")
        low = np.searchsorted(given[order], wanted)
        many = np.searchsorted(given[order], wanted, "right") - low
        is_known[later[row[many > _PAIRS_AT_ONCE]]] = False
        kept = is_known[later[row]]
        row, number, low, many = row[kept], number[kept], low[kept], many[kept]
        earlier = order[joined(low, many)]
        row, number = np.repeat(row, many), np.repeat(number, many)
        later = later[row]
        takes = self.sharing.can_share(
            user[later], number, self.end_slot[earlier], flow.defined_at[later]
        )
        return set((earlier[takes] * count + later[takes]).tolist()), is_known.tolist()


def place(derived: Derived, sizes: Sizes, sharing: Sharing) -> Placement:
    """Decide for each alias set which kind of allocation its values go to.

    The largest set first, of equal ones those that live out: each tries the allocations of
    its operands, then all others from the smallest on. The newest libtpu gives each output an
    allocation of its own, and all the rest is temp.
    """
    program, dataflow, liveness = derived.program, derived.dataflow, derived.liveness
    sets = _describe(program, dataflow, liveness, sizes)
    numbers = np.unique(liveness.alias_set)
    allocation = np.full(len(dataflow), NONE)
    fixed = np.isin(sets.kind, (CONSTANT, PARAMETER, OUTPUT))
    allocation[fixed] = np.flatnonzero(fixed)
    donated = _is_donated(program, dataflow, liveness)
    makes = sets.lives_out & (sets.kind == OUTPUT) & ~sets.is_tuple
    makes |= donated & (sets.kind == PARAMETER) & ~sets.is_tuple
    members = members_of(liveness.alias_set)
    tries = numbers[
        ((sets.kind[numbers] == TEMP) | (sets.kind[numbers] == OUTPUT)) & ~sets.is_tuple[numbers]
    ]
    tries = tries[may_fit(tries, numbers[makes[numbers]], sets.size, sets.space, liveness, members)]
    tries = tries[~_never_reuses(derived, sharing)[tries]]
    going = np.unique(np.concatenate([tries, numbers[makes[numbers]]]))
    earliest = _earliest(program, dataflow, liveness, going)
    order = going[np.lexsort((earliest[going], ~sets.lives_out[going], -sets.size[going]))]
    does_try = np.zeros(len(dataflow), bool)
    does_try[tries] = True
    made = _Allocations(program, dataflow, liveness, sharing)
    order_members = members.of(order)
    for alias_set, values in zip(order.tolist(), order_members, strict=True):
        found = _reused(alias_set, values, sets, made, allocation) if does_try[alias_set] else NONE
        if found != NONE:
            allocation[alias_set] = found
            sets.kind[alias_set] = sets.kind[found]
            made.add(found, values)
        elif makes[alias_set]:
            made.make(alias_set, values)
    kind = sets.kind[liveness.alias_set]
    return Placement(kind, allocation[liveness.alias_set], sets.size, sets.lives_out)


def _earliest(program: NumberedProgram, dataflow: Dataflow, liveness: Liveness, sets: Ints) -> Ints:
    """The first place in post order of the instructions that define a set's values."""
    chosen = np.isin(liveness.alias_set, sets)
    computations = np.unique(program.computation[dataflow.instruction[chosen]])
    place_of = post_order(program, computations)[dataflow.instruction]
    earliest = np.full(len(dataflow), len(program))
    np.minimum.at(earliest, liveness.alias_set[chosen], place_of[chosen])
    return earliest


def _reused(
    alias_set: int, values: list[int], sets: _Sets, made: _Allocations, allocation: Ints
) -> int:
    """The allocation that an alias set can go into; NONE if it needs its own."""
    size, space = sets.size[alias_set], sets.space[alias_set]
    for candidate in chain(_of_operands(values, made, allocation), reversed(made.order)):
        made.spend(1)
        if sets.space[candidate] != space or sets.size[candidate] < size:
            continue
        if sets.lives_out[alias_set] and sets.size[candidate] != size:
            continue
        if made.is_free(candidate, values):
            return candidate
    return NONE


def _of_operands(values: list[int], made: _Allocations, allocation: Ints) -> list[int]:
    """The allocations that hold the operands of the instructions that define these values."""
    dataflow, program = made.dataflow, made.program
    found = []
    for value in values:
        row = int(dataflow.instruction[value])
        if dataflow.defined_at[value] != dataflow.slots.start[row]:
            continue
        for operand in program.operands[
            program.operand_start[row] : program.operand_start[row + 1]
        ]:
            held = dataflow.value[dataflow.slots.start[operand]]
            if held != NONE:
                place_of = int(allocation[made.liveness.alias_set[held]])
                if place_of in made.held:
                    found.append(place_of)
    return found


def _describe(
    program: NumberedProgram, dataflow: Dataflow, liveness: Liveness, sizes: Sizes
) -> _Sets:
    """The alias sets as columns. A set is constant or a parameter if one of its values is."""
    alias_set, slots, row = liveness.alias_set, dataflow.slots, dataflow.instruction
    count = len(dataflow)
    size = np.zeros(count, np.int64)
    np.maximum.at(size, alias_set, sizes.size)
    space = np.zeros(count, np.int64)
    np.maximum.at(space, alias_set, sizes.space)

    def has(chosen: Mask) -> Mask:
        found = np.zeros(count, bool)
        found[alias_set[chosen]] = True
        return found

    root = program.root[program.entry]
    out = dataflow.value[slots.start[root] : slots.start[root] + slots.count[root]]
    lives_out = np.zeros(count, bool)
    lives_out[alias_set[out[out != NONE]]] = True
    entry = program.computation[row] == program.entry
    is_constant = has(program.opcode.is_one_of("constant")[row])
    is_parameter = has(program.opcode.is_one_of("parameter")[row] & entry)
    kind = np.select(
        [is_constant, is_parameter, has(liveness.start == NONE), lives_out],
        [CONSTANT, PARAMETER, THREAD_LOCAL, OUTPUT],
        TEMP,
    )
    return _Sets(size, space, kind, lives_out, has(slots.array[dataflow.defined_at] == NONE))


def _is_donated(program: NumberedProgram, dataflow: Dataflow, liveness: Liveness) -> Mask:
    """Which alias sets hold a parameter that an output takes the place of."""
    aliases = program.input_output_alias
    entry = np.full(len(aliases), program.entry)
    number = np.array([alias.number for alias in aliases], np.int64)
    parameter = program.parameter_of(entry, number, program.root[entry])
    slot = dataflow.slots.find(parameter, [alias.operand_index for alias in aliases])
    donated = np.zeros(len(dataflow), bool)
    donated[liveness.alias_set[dataflow.value[slot]]] = True
    return donated


def _never_reuses(derived: Derived, sharing: Sharing) -> Mask:
    """Which alias sets never go into the allocation of another set.

    On a TPU those of a collective-permute: other chips write into it at their own time. With
    the newest libtpu all sets.
    """
    program, dataflow, liveness = derived.program, derived.dataflow, derived.liveness
    never = np.full(len(dataflow), derived.is_newest_libtpu)
    if sharing.platform == TPU:
        permutes = program.opcode.is_one_of("collective-permute", "collective-permute-start")
        never[liveness.alias_set[permutes[dataflow.instruction]]] = True
    return never


def _copied(program: NumberedProgram, dataflow: Dataflow) -> Ints:
    """The value that each value copies; NONE if no copy makes it."""
    copied = np.full(len(dataflow), NONE)
    copies = np.flatnonzero(program.opcode.is_one_of("copy")[dataflow.instruction])
    operand = program.operand(dataflow.instruction[copies], 0)
    copied[copies] = dataflow.value[dataflow.slots.start[operand]]
    return copied


def _end_slots(
    program: NumberedProgram, dataflow: Dataflow, liveness: Liveness, sharing: Sharing
) -> Ints:
    """Of each value, the slot of its last position in the order of the schedule."""
    held = np.flatnonzero(dataflow.value != NONE)
    until = sharing.until[dataflow.slots.instruction[held]]
    # The first of several that end together counts.
    order = np.lexsort((-held, until, dataflow.value[held]))
    found = np.full(len(dataflow), NONE)
    found[dataflow.value[held][order]] = held[order]
    return found
