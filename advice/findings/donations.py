"""Arguments that are not donated, though an output could take their memory."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import numpy as np

from ...queries.catalogue import statement
from ...queries.result import counted
from ...schema.readable import human_bytes
from ...xla.donations import EntryArray, Pair, pair_up
from ...xla.elementwise import Elementwise
from ...xla.in_place import InPlaceRules
from ...xla.opcodes import ELEMENTWISE
from ..asked_program import (
    Change,
    FreeMemory,
    Layout,
    Piece,
    Program,
    function_line,
    line_of,
    memory_on_chip,
    saving,
    values_share_allocations,
    values_that_move,
)
from ..dimensions import Dimensions
from ..finding import Finding, Grade, Options
from ..flow import Ints
from ..graph import Slot
from . import listed

# Which things wait for each other in a circle.


def in_circles(waits: Sequence[int], left: Sequence[int]) -> list[int]:
    """Which of those that are left wait for themselves, by way of others that are left.

    waits: of each what it waits for, a bit each.
    """
    remaining = sum(1 << each for each in left)
    while True:
        # What waits for nothing that is left is in no circle.
        stuck = [each for each in left if remaining >> each & 1 and waits[each] & remaining]
        fewer = sum(1 << each for each in stuck)
        if fewer == remaining:
            break
        remaining = fewer
    return [each for each in left if remaining >> each & 1 and _returns(waits, each, remaining)]


def _returns(waits: Sequence[int], one: int, remaining: int) -> bool:
    """Whether one waits for itself."""
    reached, fresh = 0, waits[one] & remaining
    while fresh:
        lowest = fresh & -fresh
        reached |= lowest
        fresh = (fresh | waits[lowest.bit_length() - 1] & remaining) & ~reached
    return bool(reached >> one & 1)


# What each instruction of the entry computation is computed from.


class Dependencies:
    """The entry computation's instructions in the schedule's order, with their operands.

    An operand is always scheduled before the instruction that reads it. A set of instructions
    is an integer, a bit for each instruction that was asked about.
    """

    def __init__(self, program: Program) -> None:
        graph = program.graph
        entry = graph.program.entry
        times = program.instructions["schedule_time"].to_pylist()
        start, stop = graph.program.first[entry], graph.program.stop[entry]
        self.opcode = graph.opcode
        self.time: dict[int, int] = {
            number: times[number] for number in range(start, stop) if times[number] is not None
        }
        self._operands = {
            number: graph.operands[number]
            for number in sorted(self.time, key=self.time.__getitem__)
        }

    def __contains__(self, instruction: int) -> bool:
        """Whether the entry computation has the instruction."""
        return instruction in self.time

    def ancestors(self, asked: Iterable[int]) -> dict[int, int]:
        """Of each instruction: which of those asked about it is computed from, itself included.

        Bit n stands for the nth instruction asked about.
        """
        own: dict[int, int] = {}
        for bit, instruction in enumerate(asked):
            own[instruction] = own.get(instruction, 0) | 1 << bit
        found: dict[int, int] = {}
        for instruction, operands in self._operands.items():
            bits = own.get(instruction, 0)
            for each in operands:
                bits |= found.get(each, 0)
            found[instruction] = bits
        return found


# The entry computation's instructions: which values they hold, and which they read.

# What only hands an array on does not read it.
_HANDS_ON = ("bitcast", "tuple", "get-tuple-element", "opt-barrier")


class EntryReads:
    """Answers for one program. What only hands an array on neither holds nor reads it."""

    def __init__(self, program: Program, dependencies: Dependencies) -> None:
        self._program = program
        self._dependencies = dependencies

    def members(self, value: int) -> list[int]:
        """The values that share this value's memory as one."""
        layout = self._program.layout
        own = layout.alias_set[layout.rows_of(np.array([value]))]
        return [*layout.value_id[np.isin(layout.alias_set, own)].tolist()] or [value]

    def holders(self, values: Sequence[int]) -> list[int]:
        """The entry instructions that hold one of the values."""
        return [
            each
            for value in values
            for each in self._program.holders(value)
            if each in self._dependencies and self._dependencies.opcode[each] not in _HANDS_ON
        ]

    def loops(self, positions: Sequence[int]) -> frozenset[int]:
        """Those of the instructions that are loops."""
        return frozenset(each for each in positions if self._dependencies.opcode[each] == "while")

    @cached_property
    def uses(self) -> dict[int, list[tuple[int, int]]]:
        """The entry instructions that read each value, and as which operand."""
        found: dict[int, list[tuple[int, int]]] = {}
        for instruction, reads in self.reads.items():
            for value, number in reads:
                found.setdefault(value, []).append((instruction, number))
        return found

    @cached_property
    def reads(self) -> dict[int, list[tuple[int, int]]]:
        """The values that each entry instruction reads, and as which operand."""
        table = self._program.uses
        found: dict[int, list[tuple[int, int]]] = {}
        for value, instruction, number in zip(
            table["value_id"].to_pylist(),
            table["instruction_id"].to_pylist(),
            table["operand_number"].to_pylist(),
            strict=True,
        ):
            if (
                instruction in self._dependencies
                and self._dependencies.opcode[instruction] not in _HANDS_ON
            ):
                found.setdefault(instruction, []).append((value, number))
        return found


# The arrays of a program's arguments and result.


def free_arrays(program: Program) -> tuple[list[EntryArray], list[EntryArray]]:
    """The arguments that are not donated, and the outputs that have memory of their own."""
    arguments, outputs = entry_arrays(program)
    return (
        [each for each in arguments if not (each.is_donated or each.is_shared)],
        [each for each in outputs if not each.is_shared],
    )


def partitions(program: Program) -> int:
    """The SPMD partitions that the program was compiled for."""
    (row,) = program.rows("SELECT num_partitions FROM modules WHERE module_id = $1").to_pylist()
    return int(row["num_partitions"] or 1)


def entry_arrays(program: Program) -> tuple[list[EntryArray], list[EntryArray]]:
    """The arrays of the arguments and of the result that lie in the layout's memory space."""
    arguments: list[EntryArray] = []
    outputs: list[EntryArray] = []
    for row in program.entry_arrays.to_pylist():
        if row["memory_space"] != program.layout.memory_space or row["padded_bytes"] is None:
            continue
        array = EntryArray(
            row["parameter_number"],
            row["shape_index"],
            row["argument_name"],
            row["shape"],
            row["padded_bytes"],
            row["value_id"],
            row["memory_space"],
            row["allocation_index"],
            row["is_shared"],
            row["is_donated"],
        )
        (outputs if row["is_output"] else arguments).append(array)
    return arguments, outputs


# Outputs that are copies of arguments.

# They hand on elements as they are; the number of operands of which they do.
_COPIES = {
    **dict.fromkeys(("bitcast", "copy", "copy-done", "copy-start", "reshape", "slice"), 1),
    **dict.fromkeys(("async-done", "async-start", "async-update", "optimization-barrier"), 1),
    **dict.fromkeys(("call", "fusion", "get-tuple-element", "parameter", "tuple", "while"), 1),
    **{"dynamic-slice": 1, "dynamic-update-slice": 2},
}
# What a loop writes all parts of.
_EMPTY = {"broadcast", "constant"}


def returned_arrays(program: Program) -> list[tuple[EntryArray, EntryArray]]:
    """The outputs in memory of their own that are copies, each with its argument."""
    arguments, outputs = entry_arrays(program)
    graph = program.graph
    entry = graph.program.entry
    parameters = graph.program.parameters(entry)
    given = [(each.parameter_number, each) for each in arguments]
    numbered = [(parameters[number], each) for number, each in given if number is not None]
    places = graph.find_slots([row for row, _ in numbered], [each.index for _, each in numbered])
    by_place = dict(zip(places, (each for _, each in numbered), strict=True))
    alike = {each.type_and_dimensions for each in arguments}
    found = []
    made = graph.find_slots(
        [graph.program.root[entry]] * len(outputs), [each.index for each in outputs]
    )
    for output, made_at in zip(outputs, made, strict=True):
        if output.is_shared or output.type_and_dimensions not in alike:
            continue
        place = _copied_from(program, made_at, set(by_place))
        argument = by_place.get(place) if place is not None else None
        if argument is not None and argument.array.dimensions == output.array.dimensions:
            found.append((argument, output))
    return found


def _copied_from(program: Program, output: Slot, arguments: set[Slot]) -> Slot | None:
    """The argument whose elements an output has; None if anything else is in it."""
    graph, flow = program.graph, program.worked_out(Dimensions).flow
    found: set[Slot] = set()
    indices: list[Counter[str]] = []
    seen, waiting = {output}, [output]
    while waiting:
        place = waiting.pop()
        opcode = graph.opcode_at(place)
        if place in arguments:
            found.add(place)
            continue
        if place in flow.joins:
            # XLA fetched it in parts.
            opcode = "bitcast"
        if opcode not in _COPIES:
            # Only what a loop fills is empty before.
            if opcode not in _EMPTY or not indices:
                return None
            continue
        sources = flow.sources[place]
        if opcode in {"dynamic-slice", "dynamic-update-slice"}:
            count = _COPIES[opcode]
            indices.append(_makes(program, sources[count:]))
            sources = sources[:count]
        for source in sources:
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    # A part is written where it was read.
    if len(found) != 1 or any(each != indices[0] for each in indices):
        return None
    return found.pop()


def _makes(program: Program, places: list[Slot]) -> Counter[str]:
    """By which operations indices are computed."""
    graph, flow = program.graph, program.worked_out(Dimensions).flow
    made: set[Slot] = set()
    for place in places:
        made |= set(flow.before(place, {"parameter", "get-tuple-element", "fusion", "bitcast"}))
    hand_on = {"parameter", "get-tuple-element", "fusion", "bitcast", "while", "constant"}
    return Counter(op for op in {graph.opcode_at(each) for each in made} if op not in hand_on)


# Whether an instruction may write its result over an operand: the rules that ingest has.

# What writes over its operand itself, or hands it on to a computation that does.
_HOLDS = (*ELEMENTWISE, "while", "conditional")
# A TPU's fusions may also reduce the operand beside, or see it in other dimensions.
_THROUGH = {"tpu": ("tuple", "bitcast", "reduce")}


class InPlace:
    """Answers for the instructions of one program."""

    def __init__(self, program: Program) -> None:
        self._graph = program.graph
        self._platform = program.platform
        self._rules = InPlaceRules(program.graph.program)
        self._elementwise = Elementwise(program.graph.program)

    def may_write_over(self, instruction: int, operand_number: int) -> bool:
        """Whether the result may lie where this operand lies, if their bytes are equal."""
        opcode = self._graph.opcode[instruction]
        if opcode in _HOLDS:
            return True
        if any(pair.operand_number == operand_number for pair in self._rules.pairs(instruction)):
            return True
        if opcode not in ("fusion", "call"):
            return False
        parameter = self._graph.program.parameters(self._graph.body(instruction))[operand_number]
        if opcode == "fusion":
            return not self._reaches_other(instruction)[parameter]
        return all(self.may_write_over(*reader) for reader in self._graph.readers(parameter))

    def may_become(self, instruction: int, operand_number: int) -> bool:
        """Whether the result is what the operand becomes: also as an array of other dimensions."""
        if self.may_write_over(instruction, operand_number):
            return True
        if self._graph.opcode[instruction] != "fusion":
            return False
        parameter = self._graph.program.parameters(self._graph.body(instruction))[operand_number]
        return not self._seen[parameter]

    def _reaches_other(self, fusion: int) -> list[bool]:
        """Which parameters of the fusion are not read element by element alone."""
        if self._platform != "cpu":
            return self._reached
        kind = self._graph.program.fusion_kind.get(fusion)
        if kind in ("kLoop", "kInput"):
            return self._elementwise.reaches_other_in_cpu_loop
        return self._elementwise.reaches_other_on_cpu

    @cached_property
    def _seen(self) -> list[bool]:
        return self._elementwise.reaches_other("tuple", "bitcast")

    @cached_property
    def _reached(self) -> list[bool]:
        return self._elementwise.reaches_other(*_THROUGH.get(self._platform or "", ("tuple",)))


# Which arguments XLA would copy although they are donated, foreseen from the program before.
#
# O is the instruction of the entry computation that first writes into what becomes the output.
# On a CPU XLA decides before it schedules: it copies if an instruction reads the argument that O
# is not computed from. On a TPU or GPU the schedule is arranged so that the reads come first; XLA
# copies only if reading first would make the instructions wait for each other in a circle.


@dataclass(frozen=True)
class Foreseen:
    """A pair of argument and output, and what would become of it.

    read_by: the entry instruction whose reading makes XLA copy; None if it makes no copy.
    copies_argument, copies_output: what XLA then copies, the argument before it is written over,
    or the output from memory of its own. loop: the loop that reads the argument and writes the
    output beside it, as `jax.lax.scan` does with its inputs and outputs; else None.
    first_read, last_read: when the argument is read; -1 if it never is. is_written_over: the
    last reader may write its own result over the argument.
    """

    pair: Pair
    read_by: int | None
    copies_argument: bool
    copies_output: bool
    loop: int | None
    first_read: int
    last_read: int
    is_written_over: bool

    @property
    def is_copied(self) -> bool:
        """Whether XLA copies the argument or the output."""
        return self.read_by is not None


@dataclass(frozen=True)
class _Order:
    """What must be read before what is written: instructions of the entry computation.

    written_by: what writes into the output's memory first, -1 if nothing does. last_written_by:
    what makes the output itself. read_by: what else reads the argument. reads_as_it_writes: the
    first writer reads it too; not_in_place: but not so that it could write over it. loops: the
    output's.
    """

    pair: Pair
    written_by: int
    last_written_by: int
    read_by: tuple[int, ...]
    reads_as_it_writes: bool
    not_in_place: bool
    loops: frozenset[int]


class Foresight:
    """Foresees copies of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reads_come_first = program.platform in ("tpu", "gpu")
        self._dependencies = Dependencies(program)
        self._entry = EntryReads(program, self._dependencies)
        self._in_place = InPlace(program)

    def foresee(self, pairs: Sequence[Pair]) -> list[Foreseen]:
        """What becomes of each pair, if all of these arguments are donated at once."""
        if not pairs:
            return []
        orders = [self._order(pair) for pair in pairs]
        readers = {each: 1 << bit for bit, each in enumerate(_readers(orders))}
        ancestors = self._dependencies.ancestors(readers)
        forced = (
            self._circles(orders)
            if self._reads_come_first
            else self._late(orders, readers, ancestors)
        )
        return [
            self._foreseen(order, read_by, readers, ancestors)
            for order, read_by in zip(orders, forced, strict=True)
        ]

    def renewed_by(self, output: EntryArray) -> set[int]:
        """The values that the output may be written over, step by step, or that its loops read.

        What an output is computed from in place is its last value: also through copies.
        """
        found: set[int] = set()
        waiting = [output.value_id]
        while waiting:
            positions = self._entry.holders(self._entry.members(waiting.pop()))
            first = min(positions, key=self._time, default=-1)
            loops = self._entry.loops(positions)
            fresh = {
                value
                for each in {first, *loops}
                for value, number in self._entry.reads.get(each, ())
                if each in loops or self._in_place.may_become(each, number)
            } - found
            found |= fresh
            waiting.extend(fresh)
        return found

    def _foreseen(
        self,
        order: _Order,
        read_by: int | None,
        readers: Mapping[int, int],
        ancestors: Mapping[int, int],
    ) -> Foreseen:
        all_readers = sum(readers[each] for each in order.read_by)
        before_first = ancestors.get(order.written_by, 0) & all_readers
        before_last = ancestors.get(order.last_written_by, 0) & all_readers
        # All read before the output is made, so that a copy of the output is enough.
        of_output = before_last == all_readers and (bool(order.loops) or not self._reads_come_first)
        # Nothing but the output's own data keeps its first write behind a copy.
        is_unordered = not (self._reads_come_first or before_first or order.reads_as_it_writes)
        is_copied = read_by is not None
        return Foreseen(
            order.pair,
            read_by,
            is_copied and not of_output,
            is_copied and (of_output or is_unordered),
            next((each for each in order.read_by if each in order.loops), None),
            *self._reading_times(order),
        )

    def _late(
        self, orders: Sequence[_Order], readers: Mapping[int, int], ancestors: Mapping[int, int]
    ) -> list[int | None]:
        """Of each pair the last reader that the output's first write is not computed from."""
        found: list[int | None] = []
        for order in orders:
            before = ancestors.get(order.written_by, 0)
            late = [each for each in order.read_by if not before & readers[each]]
            # What nothing writes into is the argument itself.
            if late and order.written_by >= 0:
                found.append(max(late, key=self._time))
            else:
                found.append(order.written_by if order.not_in_place else None)
        return found

    def _circles(self, orders: Sequence[_Order]) -> list[int | None]:
        """Of each pair a reader that has to wait for the output's first write.

        A pair that waits for itself is copied. Of a circle of several pairs one is copied, the
        smallest, and of equal ones the last.
        """
        ancestors = self._dependencies.ancestors([order.written_by for order in orders])
        found: list[int | None] = []
        # The pairs whose first write each pair has to wait for, a bit each.
        waits: list[int] = []
        for number, order in enumerate(orders):
            waiting = [each for each in order.read_by if ancestors.get(each, 0) >> number & 1]
            if waiting:
                found.append(max(waiting, key=self._time))
            else:
                found.append(order.written_by if order.not_in_place else None)
            waits.append(reduce(or_, (ancestors.get(each, 0) for each in order.read_by), 0))
        while True:
            left = [number for number, each in enumerate(found) if each is None]
            circling = in_circles(waits, left)
            if not circling:
                return found
            smallest = min(
                circling, key=lambda each: (orders[each].pair.argument.padded_bytes, -each)
            )
            others = sum(1 << each for each in circling)
            found[smallest] = next(
                each for each in orders[smallest].read_by if ancestors.get(each, 0) & others
            )

    def _order(self, pair: Pair) -> _Order:
        positions = self._entry.holders(self._entry.members(pair.output.value_id))
        own = self._entry.holders([pair.output.value_id])
        uses = self._entry.uses.get(pair.argument.value_id, [])
        written_by = min(positions, key=self._time, default=-1)
        if self._only_copies(written_by, pair):
            # This copy is needed only because the argument is not donated.
            uses = [(each, number) for each, number in uses if each != written_by]
            later = [each for each in positions if each != written_by]
            written_by = min(later, key=self._time, default=-1)
        read_by = {each for each, _ in uses if each != written_by}
        not_in_place = any(
            each == written_by and not self._may_write_over(each, number, pair)
            for each, number in uses
        )
        return _Order(
            pair,
            written_by,
            min(own, key=self._time, default=-1),
            tuple(sorted(read_by, key=self._time)),
            any(each == written_by for each, _ in uses),
            not_in_place,
            self._entry.loops(positions),
        )

    def _only_copies(self, instruction: int, pair: Pair) -> bool:
        """Whether the instruction copies the argument as it is."""
        reads = [value for value, _ in self._entry.reads.get(instruction, ())]
        return (
            instruction in self._dependencies
            and self._dependencies.opcode[instruction] == "copy"
            and reads == [pair.argument.value_id]
            and pair.argument.shape == pair.output.shape
        )

    def _may_write_over(self, instruction: int, number: int, pair: Pair) -> bool:
        """Whether the instruction that reads the argument may write the output over it."""
        # A CPU writes in place only what has the operand's very shape.
        is_seen_alike = self._program.platform != "cpu" or pair.argument.shape == pair.output.shape
        return is_seen_alike and self._in_place.may_write_over(instruction, number)

    def _reading_times(self, order: _Order) -> tuple[int, int, bool]:
        """When the argument is read first and last, and whether the last reader writes over it."""
        uses = self._entry.uses.get(order.pair.argument.value_id)
        if not uses:
            return -1, -1, False
        times = [self._time(each) for each, _ in uses]
        last = max(times)
        return (
            min(times),
            last,
            all(
                self._in_place.may_write_over(each, number)
                or self._dependencies.opcode[each] == "sort"
                for (each, number), time in zip(uses, times, strict=True)
                if time == last
            ),
        )

    def _time(self, instruction: int) -> int:
        return self._dependencies.time[instruction]


def _readers(orders: Sequence[_Order]) -> list[int]:
    return sorted({reader for order in orders for reader in order.read_by})


# What donating arguments changes: outputs lie in the arguments' memory.


@dataclass(frozen=True)
class Donation:
    """What donating brings: by how many bytes the peak falls, with XLA's own copies and without.

    change: with these copies; without_copies: without them. Where XLA reuses more memory with
    copies than without, both are that. On a GPU the most is what the arrays take.
    """

    change: Change
    without_copies: Change
    most_bytes: int
    least_bytes: int


def donate(program: Program, foreseen: Sequence[Foreseen]) -> Donation:
    """Replay the program with each pair's output in its argument's memory."""
    change = _change(program, foreseen, with_copies=False)
    most = saving(program.layout, change)
    if program.platform == "gpu":
        # XLA for GPU orders anew what has room, and never made copies: the arrays are the bound.
        return Donation(change, change, max(most, _argument_bytes(foreseen)), most)
    if not any(each.is_copied for each in foreseen):
        return Donation(change, change, most, most)
    copied = _change(program, foreseen, with_copies=True)
    least = saving(program.layout, copied)
    if least > most:
        return Donation(copied, copied, least, most)
    # The copies can be bounded only roughly, but they never took more than donation saved.
    return Donation(copied if least > 0 else Change(), change, most, max(0, least))


def _argument_bytes(foreseen: Sequence[Foreseen]) -> int:
    return sum(each.pair.argument.padded_bytes for each in foreseen)


def _change(program: Program, foreseen: Sequence[Foreseen], *, with_copies: bool) -> Change:
    layout = program.layout
    freed = frozenset(each.pair.output.allocation_index for each in foreseen)
    gone: set[int] = set()
    free: list[FreeMemory] = []
    copies: list[Piece] = []
    for number, each in enumerate(foreseen):
        rows = _rows_of_output(layout, each)
        size = each.pair.argument.padded_bytes
        taken = _times(layout, rows)
        free_from = each.last_read + (not each.is_written_over)
        if with_copies and each.copies_argument:
            # The copy is there before its original is written over.
            free_from = min(each.first_read, *(start for start, _ in taken))
            # A CPU's schedule may have all copies at its beginning.
            made = 0 if program.platform == "cpu" else free_from
            copies.append(Piece(number, size, made, each.last_read))
        if with_copies and each.copies_output:
            # The output stays where it is, but as a temp, and is copied at the end.
            taken = [(layout.schedule_length, layout.schedule_length)]
        else:
            rows = np.union1d(rows, _rows_of_borrowers(layout, each, free_from))
            gone.update(layout.value_id[rows].tolist())
            taken = _times(layout, rows)
        # The output itself stays until the end.
        until = min(start for start, end in taken if end == layout.schedule_length)
        free.append(FreeMemory(size, free_from, until - 1, taken))
    # Some versions of a TPU's compiler keep temps apart from arguments and results.
    if program.platform != "tpu" or values_share_allocations(layout):
        gone |= values_that_move(layout, free, freed, gone)
    return Change(frozenset(gone), freed, tuple(copies))


def _rows_of_output(layout: Layout, foreseen: Foreseen) -> Ints:
    """The rows of the values that share the output's memory as one."""
    own = layout.alias_set[layout.rows_of(np.array([foreseen.pair.output.value_id]))]
    return np.flatnonzero(np.isin(layout.alias_set, own))


def _rows_of_borrowers(layout: Layout, foreseen: Foreseen, free_from: int) -> Ints:
    """The rows of values that lie in the output's memory while it is free, and come along."""
    within = layout.allocation == foreseen.pair.output.allocation_index
    early = layout.alias_set[within & (layout.start < free_from)]
    return np.flatnonzero(within & ~np.isin(layout.alias_set, early))


def _times(layout: Layout, rows: Ints) -> list[tuple[int, int]]:
    return list(zip(layout.start[rows].tolist(), layout.end[rows].tolist(), strict=True))


# Which arguments are a program's state, of which an output is the next value.

_STATE = ("weight", "optimizer state", "state")


def state_of(
    program: Program,
    foresight: Foresight,
    arguments: Sequence[EntryArray],
    outputs: Sequence[EntryArray],
) -> set[EntryArray]:
    """The arguments whose next value an output is; the others at most have its shape.

    In a training step these are the weights and the optimizer's state, but for weights of whose
    bytes there are only gradients. Without a backward pass, an output of the same bytes is written
    over the argument, or computed by a loop that reads it. All arrays of an argument that a user
    can name are state if one is.
    """
    if program.trains:
        rows = program.rows(statement("advise.roles")).to_pylist()
        state = {row["value_id"] for row in rows if row["role"] in _STATE}
        gradients = {row["value_id"] for row in rows if row["pass"] == "backward"}
        renewed = {each.padded_bytes for each in outputs if each.value_id not in gradients}
        sure = [
            each for each in arguments if each.value_id in state and each.padded_bytes in renewed
        ]
    else:
        written_over = {
            (value, output.padded_bytes)
            for output in outputs
            for value in foresight.renewed_by(output)
        }
        sure = [each for each in arguments if (each.value_id, each.padded_bytes) in written_over]
    names = {each.top_level for each in sure}
    return {each for each in arguments if each.top_level in names}


# Which arguments a program could donate, together or alone, and how sure what it brings is.

# Less than this part of the peak is not worth a finding.
_WORTH = 0.001
# How far the new peak was from the one told, in recompiled programs: one in twenty was lower.
_TPU_TOLERANCE = 0.01
# A program whose arguments are a few bytes needs no advice.
_LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class DonationGroup:
    """Arrays of arguments that a user can name, with the outputs that would take their place.

    alone: what donating each of several arguments brings without the others, in bytes.
    """

    arguments: tuple[str, ...]
    foreseen: list[Foreseen]
    donation: Donation
    alone: tuple[int, ...] = ()

    @property
    def named(self) -> str:
        """The arguments in a sentence."""
        *others, last = self.arguments
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def size_bytes(self) -> int:
        """What all arrays of the arguments take, with padding."""
        return _argument_bytes(self.foreseen)

    @property
    def copied(self) -> list[Foreseen]:
        """What XLA copies all the same, the largest first."""
        return sorted(
            (each for each in self.foreseen if each.is_copied),
            key=lambda each: -each.pair.argument.padded_bytes,
        )

    @property
    def is_scanned(self) -> bool:
        """Whether a loop makes an output that is copied."""
        return any(each.loop is not None for each in self.copied)


def donation_groups(program: Program) -> list[DonationGroup]:
    """The groups worth telling: what is donated together, and what a loop copies.

    What is returned as it came is in none: its output should go. Nor is an input that nothing says
    an output is the next value of: whether the caller reads it again, no dump says.
    """
    arguments, outputs = free_arrays(program)
    returned = {each for pair in program.worked_out(returned_arrays) for each in pair}
    arguments = [each for each in arguments if each not in returned]
    outputs = [each for each in outputs if each not in returned]
    if not arguments or not outputs:
        return []
    foresight = Foresight(program)
    state = state_of(program, foresight, arguments, outputs)
    pairs = pair_up([each for each in arguments if each in state], outputs, partitions(program))
    groups = _groups(program, foresight.foresee(pairs))
    worth = max(_WORTH * program.layout.peak_bytes, _LEAST_BYTES)
    large = [
        each
        for each in groups
        if each.size_bytes > worth and not (each.copied and _most(program, each) <= worth)
    ]
    return [each for each in _together(program, large) if _most(program, each) > worth]


def _groups(program: Program, foreseen: Sequence[Foreseen]) -> list[DonationGroup]:
    """The arrays by the argument that a user can name.

    Arrays for which donating brings nothing as the program is written are a group of their own.
    """
    by_name: dict[tuple[str, bool], list[Foreseen]] = {}
    for each in foreseen:
        key = each.pair.argument.top_level, _is_scanned_for_nothing(program, each)
        by_name.setdefault(key, []).append(each)
    return [
        DonationGroup((name,), group, donate(program, group))
        for (name, _), group in by_name.items()
    ]


def _together(program: Program, groups: Sequence[DonationGroup]) -> list[DonationGroup]:
    """The arguments that one keyword donates as one group: weights go with their optimizer state.

    Figures of different grades, and what a loop copies, stay apart.
    """
    alike: dict[object, list[DonationGroup]] = {}
    for group in groups:
        key = group.arguments if group.is_scanned else grade_of(program, group)
        alike.setdefault(key, []).append(group)
    return [_merged(program, each) if len(each) > 1 else each[0] for each in alike.values()]


def _merged(program: Program, groups: Sequence[DonationGroup]) -> DonationGroup:
    ordered = sorted(
        groups, key=lambda each: min(it.pair.argument.parameter_number or 0 for it in each.foreseen)
    )
    foreseen = [each for group in ordered for each in group.foreseen]
    return DonationGroup(
        tuple(name for group in ordered for name in group.arguments),
        foreseen,
        donate(program, foreseen),
        alone=tuple(group.donation.least_bytes for group in ordered),
    )


def _most(program: Program, group: DonationGroup) -> int:
    """The most that is told to be saved."""
    grade, _ = grade_of(program, group)
    is_told_without_copies = grade is Grade.between or carries_copies(program, group)
    return group.donation.most_bytes if is_told_without_copies else group.donation.least_bytes


def carries_copies(program: Program, group: DonationGroup) -> bool:
    """Whether donating alone brings nothing, because a loop copies what it gives out."""
    return any(_is_scanned_for_nothing(program, each) for each in group.foreseen)


def _is_scanned_for_nothing(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU's loop copies the output, so that donating the argument saves nothing."""
    return (
        program.platform == "tpu"
        and foreseen.is_copied
        and foreseen.loop is not None
        and not _may_lie_in_vmem(program, foreseen)
    )


def _may_lie_in_vmem(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU may make the copy on the chip, so that its main memory has none."""
    return foreseen.pair.argument.padded_bytes <= memory_on_chip(program)


def grade_of(program: Program, group: DonationGroup) -> tuple[Grade, float | None]:
    """How sure the figure is, and how far the new peak may be from the one told."""
    copied = group.copied
    if program.platform == "gpu":
        return Grade.between, None
    if program.platform not in ("cpu", "tpu") or carries_copies(program, group):
        return Grade.at_most, None
    if copied and (
        program.platform == "cpu" or any(_may_lie_in_vmem(program, each) for each in copied)
    ):
        return Grade.between, None
    if program.platform == "cpu":
        return Grade.exact, 0.0
    return Grade.expected, _TPU_TOLERANCE


# What to write where a loop takes an array in and gives it out beside, as `jax.lax.scan` does.

_CARRY = (
    "carry it through the loop instead of taking it in as xs and giving it out as ys, and write"
    " each part with jax.lax.dynamic_update_slice or .at[i].set"
)


@listed(0)
def not_donated(program: Program) -> list[Finding]:
    """What to donate together, and what needs another change before."""
    return [_not_donated(program, each) for each in program.worked_out(donation_groups)]


def _not_donated(program: Program, group: DonationGroup) -> Finding:
    donation, name = group.donation, group.named
    grade, tolerance = grade_of(program, group)
    told = donation.most_bytes if carries_copies(program, group) else donation.least_bytes
    its = "their" if group.alone else "its"
    title = f"donate {name}: outputs could take {its} {human_bytes(group.size_bytes)}"
    if group.is_scanned:
        title = f"carry {name} through the loop and donate it: donating alone brings nothing"
        if not carries_copies(program, group):
            title = f"carry {name} through the loop and donate it: donating alone brings less"
    return Finding(
        kind="not donated",
        title=title,
        grade=grade,
        write=_write(program, group),
        why=_why(program, group),
        value_ids=_value_ids(group),
        source=_source(program, group) if group.is_scanned else function_line(program),
        saving_bytes=told,
        low_bytes=donation.least_bytes if grade is Grade.between else told,
        high_bytes=donation.most_bytes if grade is Grade.between else told,
        tolerance=tolerance,
        change=donation.without_copies if carries_copies(program, group) else donation.change,
        alone_bytes=max(donation.least_bytes, 0) if group.is_scanned else None,
        options=None if group.is_scanned else Options(donated=tuple(group.arguments)),
    )


def _value_ids(group: DonationGroup) -> tuple[int, ...]:
    """The arguments and their outputs, the largest first."""
    pairs = sorted(
        (each.pair for each in group.foreseen), key=lambda pair: -pair.argument.padded_bytes
    )
    return tuple(pair.argument.value_id for pair in pairs) + tuple(
        pair.output.value_id for pair in pairs
    )


def _why(program: Program, group: DonationGroup) -> str:
    """How many arrays are paired with outputs, and what XLA copies all the same."""
    pairs = [each.pair for each in group.foreseen]
    by_shape = sum(pair.paired_by == "shape" for pair in pairs)
    said = [f"{counted(by_shape, 'output')} of the same type and dimensions"] if by_shape else []
    if len(pairs) > by_shape:
        said.append(f"{counted(len(pairs) - by_shape, 'output')} of the same bytes")
    told = f"{' and '.join(said)} could lie in the memory of arrays of {group.named}"
    if group.alone:
        alone = zip(group.arguments, group.alone, strict=True)
        told += f"; alone: {', '.join(f'{name} {human_bytes(saved)}' for name, saved in alone)}"
    if not group.copied:
        return told
    first = group.copied[0]
    size = sum(each.pair.argument.padded_bytes for each in group.copied)
    reader = _name(program, first.read_by)
    line = None if first.read_by is None else line_of(program, first.read_by)
    how = (
        "after the output is written"
        if program.platform == "tpu"
        else "and nothing orders that before the output is written"
    )
    return (
        f"{told}; XLA copies {human_bytes(size)} of it all the same, because {reader}"
        f"{f' ({line})' if line else ''} reads {first.pair.argument.name or group.named} {how}"
    )


def _name(program: Program, instruction_id: int | None) -> str:
    rows = program.rows(
        "SELECT instruction FROM instructions WHERE module_id = $1 AND instruction_id = $2",
        [instruction_id],
    ).to_pylist()
    return str(rows[0]["instruction"]) if rows else "an instruction"


def _source(program: Program, group: DonationGroup) -> str | None:
    """The line of the loop that reads what it writes beside."""
    loops = [each.loop for each in group.copied if each.loop is not None]
    return line_of(program, loops[0]) or function_line(program)


def _write(program: Program, group: DonationGroup) -> str:
    keyword = _keyword(program, group.arguments)
    if group.is_scanned:
        return f"{_CARRY}; then {keyword}"
    # What a training step takes in, its caller has no more use for.
    return keyword if program.trains else f"if nobody reads the old value again: {keyword}"


def _keyword(program: Program, arguments: Sequence[str]) -> str:
    """What to write in `jax.jit`.

    `args[1]` is the second place only where all are called so: else `args` is a name. Of `name[0]`
    no dump says whether the function has `name` or `*name`, which no keyword can name.
    """
    arrays = [each for each in program.entry_arrays.to_pylist() if not each["is_output"]]
    names = [str(each["argument_name"]) for each in arrays if each["argument_name"]]
    places = [_PLACE.fullmatch(each) for each in arguments]
    if all(places) and all(map(_PLACE.match, names)):
        return f"donate_argnums={tuple(int(each[1]) for each in places if each)} in jax.jit"
    its = "its place" if len(arguments) == 1 else "their places"
    if any(each.startswith("argument ") for each in arguments):
        return f"{its} in donate_argnums in jax.jit; arguments are numbered array by array here"
    is_list = any(re.match(re.escape(each) + r"\[\d", name) for each in arguments for name in names)
    if is_list or any(places):
        return f"{its} in donate_argnums in jax.jit"
    called = tuple(each.removeprefix("kwargs['").removesuffix("']") for each in arguments)
    return f"donate_argnames={called} in jax.jit, or {its} in donate_argnums"


_PLACE = re.compile(r"arg(?:s|uments)\[(\d+)\]")
