"""A program together with what its op_names say: the ground on which origins are looked up."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ....schema.array_shapes.shape_sizes import logical_bytes
from ....schema.array_shapes.shapes import ArrayShape
from ...errors import DumpError
from ..dataflow import Dataflow
from ..numbered_program import NONE, Ints, Mask, NumberedProgram
from ..shape_tree import ShapeTrees, flatten_shapes
from .op_names import Kind, OpNames

# These have the name of what they lead to, and compute nothing themselves.
_NEVER_OWN = ("while", "conditional", "call", "tuple", "get-tuple-element", "parameter")
# How JAX names what takes a slice out of a stacked array.
_SLICING = ("dynamic_slice", "squeeze", "dynamic_index_in_dim")
# More than any machine holds, and small enough to be summed.
_MOST = 2**50


@dataclass(frozen=True)
class Named:
    """A program, its values and its names.

    `caller` is the instruction that calls each computation, NONE of the entry.
    """

    program: NumberedProgram
    dataflow: Dataflow
    names: OpNames
    caller: Ints

    @cached_property
    def has_strong_name(self) -> Mask:
        """Which instructions have a name that says what they compute."""
        found: Mask = self.names.kind == Kind.STRONG
        return found

    @cached_property
    def owns(self) -> Mask:
        """Which instructions compute what their name says."""
        return self.has_strong_name & ~self.program.opcode.is_one_of(*_NEVER_OWN)

    @cached_property
    def has_weak_name(self) -> Mask:
        """Which instructions have only a wrapper's or a joined name."""
        found: Mask = np.isin(self.names.kind, (Kind.WEAK, Kind.JOINED))
        return found

    @cached_property
    def takes_a_slice(self) -> Mask:
        """Which instructions are named as JAX names taking a slice out of a stack."""
        texts = (text.partition(";")[0].rpartition("/")[2] for text in self.names.texts)
        slicing = np.array([text.partition("[")[0] in _SLICING for text in texts] + [False], bool)
        found: Mask = slicing[self.names.code]
        return found

    @cached_property
    def is_entry_parameter(self) -> Mask:
        """Which instructions are the program's arguments."""
        program = self.program
        found: Mask = (program.parameter_number != NONE) & (program.computation == program.entry)
        return found

    @cached_property
    def named_argument(self) -> Ints:
        """The argument whose name each instruction carries; NONE of constants and the nameless."""
        of_text = np.full(len(self.names.texts) + 1, NONE)
        arguments = np.flatnonzero(self.is_entry_parameter)[::-1]
        of_text[self.names.code[arguments]] = arguments
        of_text[NONE] = NONE
        carries = self.names.kind == Kind.ARGUMENT
        carries &= ~self.program.opcode.is_one_of("constant")
        found: Ints = np.where(carries, of_text[self.names.code], NONE)
        return found

    @cached_property
    def outer_operand(self) -> Ints:
        """The caller's operand that each parameter of a fused computation stands for, else NONE."""
        program = self.program
        found = np.full(len(program), NONE)
        rows = np.flatnonzero(self.is_fused & (program.parameter_number != NONE))
        found[rows] = program.operand(self.fusion[rows], program.parameter_number[rows])
        return found

    @cached_property
    def fusion(self) -> Ints:
        """The instruction that calls each instruction's computation."""
        found: Ints = self.caller[self.program.computation]
        return found

    @cached_property
    def is_fused(self) -> Mask:
        """Which instructions are part of a fusion."""
        found: Mask = (self.fusion != NONE) & self.program.opcode.is_one_of("fusion")[self.fusion]
        return found

    @cached_property
    def inner_root(self) -> Ints:
        """The root of the computation that each fusion runs, NONE for what is no fusion."""
        found = np.full(len(self.program), NONE)
        fusions = self.program.rows("fusion")
        found[fusions] = self.program.called_root(fusions)
        return found

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each instruction's elements, of a tuple those of its largest element."""
        trees = self._shapes
        arrays = np.array([bytes_of(array) for array in trees.arrays] + [0], np.int64)
        largest = np.maximum.reduceat(arrays[trees.array], trees.start[:-1])
        found: Ints = largest[self.program.shape.codes]
        return found

    @cached_property
    def elements(self) -> Ints:
        """How many elements the array of each instruction has; 0 of a tuple."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        counts = [elements_of(s) if isinstance(s, ArrayShape) else 0 for s in wholes]
        found: Ints = np.array(counts, np.int64)[self.program.shape.codes]
        return found

    @cached_property
    def _shapes(self) -> ShapeTrees:
        try:
            return flatten_shapes(self.program.shape.texts)
        except ValueError as error:
            raise DumpError(str(error)) from None

    @cached_property
    def is_scalar(self) -> Mask:
        """Which instructions give one number."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        scalar = [isinstance(shape, ArrayShape) and shape.dimensions == () for shape in wholes]
        found: Mask = np.array(scalar, bool)[self.program.shape.codes]
        return found

    @cached_property
    def is_flat(self) -> Mask:
        """Which instructions give an array of one dimension."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        flat = [isinstance(shape, ArrayShape) and len(shape.dimensions) == 1 for shape in wholes]
        found: Mask = np.array(flat, bool)[self.program.shape.codes]
        return found

    def value_of(self, rows: Ints) -> Ints:
        """The value that is the whole of each of these instructions; NONE if it is fused."""
        slots = self.dataflow.slots
        has = slots.count[rows] > 0
        at = np.where(has, slots.start[rows], 0)
        found: Ints = np.where(has, self.dataflow.value[at], NONE)
        return found


def bytes_of(array: ArrayShape) -> int:
    """An array's bytes without padding; 0 if it has no bound."""
    try:
        return min(logical_bytes(array), _MOST)
    except ValueError:
        return 0


def elements_of(array: ArrayShape) -> int:
    """How many elements an array has; 0 if it has no bound."""
    return max(0, min(prod(array.dimensions), _MOST))
