"""The results of the rules: a program's schedule, its values and their live ranges."""

from dataclasses import dataclass

from .program import NONE, Program
from .slots import Slots


@dataclass
class Schedule:
    """When instructions run. Times count from 0; what never runs has NONE.

    Attributes:
        order: the rows by time.
        time: by row.
        span_start, span_end: by computation, the time of its first instruction and the time
            after its last; NONE if the control flow does not reach it.
        caller: by computation, the instruction that calls it as part of the schedule, or NONE.
        operand_shift: by computation, the number of a caller's operand minus its parameter's.
        async_start: by computation, the innermost async-start around it, or NONE.
        binder: by row of an async-start, the instruction that binds its operands.
        started: by row of an async-update or async-done, the async-start that it continues;
            no entry if a loop carries that.
    """

    order: list[int]
    time: list[int]
    span_start: list[int]
    span_end: list[int]
    caller: list[int]
    operand_shift: list[int]
    async_start: list[int]
    binder: dict[int, int]
    started: dict[int, int]

    def __len__(self) -> int:
        return len(self.order)

    def is_reached(self, computation: int) -> bool:
        """Whether the control flow reaches a computation."""
        return self.span_end[computation] != NONE


@dataclass
class Dataflow:
    """The values of a program, numbered from 0 in text order.

    A value is the array, or the table of a tuple, that one instruction defines at one slot.

    Attributes:
        slots: the parts of the results of instructions that have values.
        value: by slot, the value there; NONE without one. A value's positions are its slots.
        defined_at: by value, the slot that defines it.
        row: by value, the defining instruction.
        is_phi: by value, whether a loop or conditional merges it.
        use_value, use_row, use_operand, use_slot: by use, in text order of the readers: the
            value, the reader, the operand's number, and the slot of the operand that is read.
        in_place_pairs: pairs of the slots of an operand and of the result that shares its memory.
    """

    slots: Slots
    value: list[int]
    defined_at: list[int]
    row: list[int]
    is_phi: list[bool]
    use_value: list[int]
    use_row: list[int]
    use_operand: list[int]
    use_slot: list[int]
    in_place_pairs: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.defined_at)

    def value_of(self, row: int) -> int:
        """The value of an instruction's whole result; NONE without one, as within fusions."""
        start = self.slots.start[row]
        return NONE if start == NONE else self.value[start]


@dataclass
class Liveness:
    """Live ranges and alias sets, by value.

    Attributes:
        start, end: times of the schedule, both inclusive; NONE for a value of a region, which
            has no time. A value that is live-out ends at the schedule's length.
        alias_set: the smallest value in its alias set: the values that must share one buffer.
    """

    start: list[int]
    end: list[int]
    alias_set: list[int]


@dataclass
class Analysis:
    """A program with its schedule, values and live ranges.

    Attributes:
        is_newest_libtpu: whether libtpu is so new that no value reuses the memory of an output.
        async_starts_late: whether values of async computations start at the async-start.
        assumed: by opcode for which a rule is assumed, the number of instructions with values.
    """

    program: Program
    schedule: Schedule
    flow: Dataflow
    liveness: Liveness
    is_newest_libtpu: bool
    async_starts_late: bool
    assumed: dict[str, int]

    def result_slots(self) -> list[int]:
        """The slots of the entry's result that have a value."""
        slots, root = self.flow.slots, self.program.root[self.program.entry]
        start = slots.start[root]
        return [s for s in range(start, start + slots.count(root)) if self.flow.value[s] != NONE]

    def live_out_values(self) -> set[int]:
        """The values that are part of the program's result."""
        return {self.flow.value[slot] for slot in self.result_slots()}
