"""Which arguments XLA would copy although they are donated, foreseen from the program before.

O is the instruction of the entry computation that first writes into what becomes the output.
On a CPU XLA decides before it schedules: it copies if an instruction reads the argument that O
is not computed from. On a TPU the schedule is arranged so that the reads come first; XLA copies
only if reading first would make the instructions wait for each other in a circle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from .asked_program import Program
from .circles import in_circles
from .dependencies import Dependencies
from .entry_reads import EntryReads
from .jax_pairing import EntryArray, Pair
from .written_over import InPlace


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
        self._is_tpu = program.platform == "tpu"
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
        forced = self._circles(orders) if self._is_tpu else self._late(orders, readers, ancestors)
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
        of_output = before_last == all_readers and (bool(order.loops) or not self._is_tpu)
        # Nothing but the output's own data keeps its first write behind a copy.
        is_unordered = not (self._is_tpu or before_first or order.reads_as_it_writes)
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
