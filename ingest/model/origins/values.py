"""The arrays of a program, and the values that loops and conditionals merge."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ....schema.address_space.runs import followed
from ....schema.array_shapes.shapes import ArrayShape
from ..numbered_program import NONE, Ints, Mask
from .named import Named, bytes_of, elements_of

# The collectives that hand on what they get, to other devices and in larger arrays.
GATHERS = ("all-gather", "all-gather-start", "all-to-all", "collective-permute",
           "collective-permute-start", "collective-broadcast", "ragged-all-to-all")  # fmt: skip
_HANDS_ON = ("get-tuple-element", "bitcast", "copy", "copy-start", "copy-done",
             "opt-barrier", "optimization-barrier", "domain", "add-dependency")  # fmt: skip
_STARTS = ("all-gather-start", "collective-permute-start")
_SUMS = ("all-reduce-start",)


class Values:
    """The arrays among the values, each with its instruction and its element.

    `at` are the values; `row`, `element` and the masks are by value, and stand for tuples too.
    """

    def __init__(self, named: Named) -> None:
        program, flow = named.program, named.dataflow
        slots = flow.slots
        self.named = named
        self.row = flow.instruction
        self.within = flow.defined_at - slots.start[self.row]
        self.is_array = slots.array[flow.defined_at] != NONE
        element, second = _element_numbers(slots.trees.index_texts)
        code = slots.trees.index[slots.node[flow.defined_at]]
        starts = program.opcode.is_one_of(*_STARTS)[self.row]
        # Of a start, `{0}` are the operands and `{1}` the results.
        self.element = np.where(starts, second[code], element[code])
        self.is_single = slots.count[self.row] == 1
        is_start = np.array([text.endswith("-start") for text in program.opcode.texts] + [False])
        is_start = is_start[program.opcode.codes] & ~program.opcode.is_one_of(*_SUMS)
        # Of a start, `{2}` and all after it are contexts: they say how far the start has come.
        self.is_context = is_start[self.row] & (element[code] > 1)

    def of(self, *opcodes: str) -> Ints:
        """The arrays that instructions with one of these opcodes define."""
        found = self.named.program.opcode.is_one_of(*opcodes)[self.row]
        return np.flatnonzero(found & self.is_array)

    def operand(self, values: Ints, number: Ints | int) -> Ints:
        """The values that operands of the values' instructions are; NONE where there is none."""
        program = self.named.program
        row = self.row[values]
        has = program.operand_count[row] > number
        at = program.operand_start[row] + np.where(has, number, 0)
        found = np.full(len(values), NONE)
        found[has] = self.named.value_of(program.operands[at[has]])
        return found

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each array's elements; 0 of a tuple."""
        return self._by_array([bytes_of(array) for array in self._arrays])

    @cached_property
    def elements(self) -> Ints:
        """How many elements each array has; 0 of a tuple."""
        return self._by_array([elements_of(array) for array in self._arrays])

    @cached_property
    def space(self) -> Ints:
        """The memory space of each array; 0 of a tuple."""
        return self._by_array([array.memory_space for array in self._arrays])

    @cached_property
    def is_float(self) -> Mask:
        """Which arrays hold floating-point numbers."""
        return (
            self._by_array([array.element_type.startswith(("f", "bf")) for array in self._arrays])
            > 0
        )

    def plain_shape(self, at: Ints) -> Ints:
        """A number for the element type and dimensions at each of these slots; 0 of a tuple."""
        codes: dict[tuple[str, tuple[int, ...]], int] = {}
        shapes = ((array.element_type, array.dimensions) for array in self._arrays)
        numbers = [codes.setdefault(shape, len(codes) + 1) for shape in shapes]
        found: Ints = np.array([*numbers, 0], np.int64)[self.named.dataflow.slots.array[at]]
        return found

    @property
    def _arrays(self) -> list[ArrayShape]:
        return self.named.dataflow.slots.trees.arrays

    def _by_array(self, of_arrays: list[int]) -> Ints:
        slots = self.named.dataflow.slots
        found: Ints = np.array([*of_arrays, 0], np.int64)[
            slots.array[self.named.dataflow.defined_at]
        ]
        return found


def _element_numbers(indices: list[str]) -> tuple[Ints, Ints]:
    """Of each shape index the first and the second number, 0 where there is none."""
    numbers = [[int(n) for n in text.strip("{}").split(",") if n] for text in indices]
    padded = [[*found, 0, 0][:2] for found in numbers] or [[0, 0]]
    first, second = np.array(padded, np.int64).T
    return first, second


class Loops:
    """The values that loops and conditionals merge, and what goes into each."""

    def __init__(self, values: Values) -> None:
        self._values = values
        named = values.named
        program, flow = named.program, named.dataflow
        slots = flow.slots
        phi = np.flatnonzero(flow.is_phi & values.is_array)
        row = values.row[phi]
        is_parameter = program.opcode.is_one_of("parameter")[row]
        loop = np.where(is_parameter, named.fusion[row], row)
        of_loop = program.opcode.is_one_of("while")[loop]
        self.phis = phi[of_loop]
        loop, within = loop[of_loop], values.within[self.phis]
        body = program.root[program.callee(loop, "body")]
        self.entering = flow.value[slots.start[program.operand(loop, 0)] + within]
        self.computed = flow.value[slots.start[body] + within]
        self.is_loop_phi = np.zeros(len(flow), bool)
        self.is_loop_phi[self.phis] = True
        self.chosen = phi[~of_loop]

    @cached_property
    def enters(self) -> Mask:
        """Which instructions give what a loop's body gets, carried or the same every time."""
        named = self._values.named
        program = named.program
        step = np.arange(len(program))
        moves = program.rows(*_HANDS_ON)
        step[moves] = program.operand(moves, 0)
        begin = followed(step)
        by_loop = (named.fusion != NONE) & program.opcode.is_one_of("while")[named.fusion]
        found: Mask = (by_loop & (program.parameter_number != NONE))[begin]
        return found

    def branches(self, phis: Ints, moved_from: Ints) -> Iterator[tuple[Ints, Mask, Ints]]:
        """Of each of these merged values the branches' results, one branch after the other.

        Yields the values, whether the branch computes its result itself, and the results.
        `moved_from` says what each value is a copy of.
        """
        program, flow = self._values.named.program, self._values.named.dataflow
        row, within = self._values.row[phis], self._values.within[phis]
        calls = np.argsort(program.call_row, kind="stable")
        first, stop = (np.searchsorted(program.call_row[calls], row, s) for s in ("left", "right"))
        count = stop - first
        for number in range(int(count.max(initial=0))):
            has = count > number
            branch = program.call_computation[calls[first[has] + number]]
            result = flow.value[flow.slots.start[program.root[branch]] + within[has]]
            yield phis[has], self._is_inside(moved_from[result], branch), result

    def _is_inside(self, values: Ints, computations: Ints) -> Mask:
        """Whether each value is computed in a computation, or in what that calls."""
        named = self._values.named
        row = self._values.row[values]
        found = np.zeros(len(values), bool)
        while (row != NONE).any():
            computation = np.where(row != NONE, named.program.computation[row], NONE)
            found |= computation == computations
            row = np.where(row != NONE, named.caller[computation], NONE)
        return found
