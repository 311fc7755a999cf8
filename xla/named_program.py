"""A program with its values and its op_names: the input of the rules for owners, passes, roles."""

from functools import cached_property
from math import prod
from typing import Final, NamedTuple

from .analysis import Dataflow
from .names import Kind, OpName, read_op_names
from .program import NONE, Program
from .shapes import ArrayShape, logical_bytes
from .slots import ShapeTree, read_shape_tree

# XLA gives these the op_name of a neighbour; they compute nothing themselves.
_NEVER_OWN = frozenset(("while", "conditional", "call", "tuple", "get-tuple-element", "parameter"))
COPIES: Final = frozenset(("copy", "copy-start"))
CONVERTS_OR_RESHAPES: Final = frozenset(("convert", "reshape", "transpose"))
# The result has all elements of the operand, in any order and type.
KEEPS_ELEMENTS: Final = CONVERTS_OR_RESHAPES | {"bitcast", "copy"}
# The collectives that compute nothing: their results are arrays of other devices, alone or joined.
_GATHERS = frozenset(
    ("all-gather", "all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all")
)
# The shape of these is `(operands, results, contexts…)`, that of all-reduce-start the results.
GATHER_STARTS: Final = frozenset(f"{opcode}-start" for opcode in _GATHERS)
GATHERS: Final = _GATHERS | GATHER_STARTS
# More bytes than any machine has.
_MAX_SIZE = 2**50


class NamedProgram:
    """A program with its values, its op_names and the callers of its computations.

    Attributes:
        program, flow: the program and its values.
        op_name: by row.
        caller: by computation, see `find_callers`.
        is_argument: by row, whether it is a parameter of the entry computation.
        is_fused: by row, whether it is part of a fusion.
        is_named: by row, whether its op_name is strong.
        outer_operand: by row of a parameter in a fusion, the fusion's operand that it stands for.
        can_be_owner: by row, whether its op_name is strong and states what it computes.
    """

    def __init__(self, program: Program, flow: Dataflow) -> None:
        """Raises DumpError if a fusion lacks an operand of its computation."""
        self.program, self.flow = program, flow
        self.op_name: list[OpName] = read_op_names(program)
        self.caller = find_callers(program)
        self.is_argument = [False] * len(program)
        for row in program.parameters(program.entry):
            self.is_argument[row] = True
        is_fusion = [row != NONE and program.opcode[row] == "fusion" for row in self.caller]
        self.is_fused = [is_fusion[computation] for computation in program.computation]
        self.outer_operand = {
            row: program.operand(self.caller[program.computation[row]], number)
            for row, number in enumerate(program.parameter_number)
            if number != NONE and self.is_fused[row]
        }
        self.is_named = [op_name.kind is Kind.STRONG for op_name in self.op_name]
        self.can_be_owner = [
            is_named and opcode not in _NEVER_OWN
            for is_named, opcode in zip(self.is_named, program.opcode, strict=True)
        ]

    def value_of(self, row: int) -> int:
        """The value of an instruction's whole result; NONE within fusions, and for row NONE."""
        return NONE if row == NONE else self.flow.value_of(row)

    def has_weak_name(self, row: int) -> bool:
        """Whether an instruction has only a wrapper's or a joined name."""
        return self.op_name[row].kind in (Kind.WEAK, Kind.JOINED)

    def caller_of(self, row: int) -> int:
        """The instruction that calls an instruction's computation, or NONE."""
        return self.caller[self.program.computation[row]]

    def named_argument(self, row: int) -> int:
        """The argument whose op_name an instruction carries; NONE for a constant.

        XLA gives a constant the name of an argument whose shape it depends on.
        """
        op_name = self.op_name[row]
        if op_name.kind is not Kind.ARGUMENT or self.program.opcode[row] == "constant":
            return NONE
        return self._argument_by_name[op_name]

    @cached_property
    def _argument_by_name(self) -> dict[OpName, int]:
        arguments: dict[OpName, int] = {}
        for row in self.program.parameters(self.program.entry):
            arguments.setdefault(self.op_name[row], row)
        return arguments

    @cached_property
    def bytes(self) -> list[int]:
        """By row, the bytes of the array without padding; for a tuple, of its largest array."""
        return [size.bytes for size in self._sizes]

    @cached_property
    def elements(self) -> list[int]:
        """By row, the number of elements of the array; 0 for a tuple."""
        return [size.elements for size in self._sizes]

    @cached_property
    def rank(self) -> list[int]:
        """By row, the number of the array's dimensions; NONE for a tuple."""
        return [size.rank for size in self._sizes]

    @cached_property
    def _sizes(self) -> list["_Size"]:
        """By row. Raises DumpError for a shape that cannot be read, in a fusion, too."""
        by_text = {text: _size(read_shape_tree(text)) for text in set(self.program.shape)}
        return [by_text[text] for text in self.program.shape]


class _Size(NamedTuple):
    bytes: int
    elements: int
    rank: int


def _size(tree: ShapeTree) -> _Size:
    largest = max((array_bytes(array) for array in tree.arrays if array is not None), default=0)
    array = tree.arrays[0]
    if array is None:
        return _Size(largest, 0, NONE)
    return _Size(largest, array_elements(array), len(array.dimensions))


def array_bytes(array: ArrayShape) -> int:
    """An array's bytes without padding; 0 if it has no bound."""
    try:
        return min(logical_bytes(array), _MAX_SIZE)
    except ValueError:
        return 0


def array_elements(array: ArrayShape) -> int:
    """Number of elements of an array; 0 if it has no bound."""
    return max(0, min(prod(array.dimensions), _MAX_SIZE))


def find_callers(program: Program) -> list[int]:
    """By computation, the first instruction in text order that calls it, by any attribute.

    NONE for the entry and for a computation that the entry does not reach, so that callers never
    form a cycle.
    """
    callers = [NONE] * len(program.first)
    for row, calls in sorted(program.calls.items()):
        for _, computation in calls:
            if callers[computation] == NONE and computation != program.entry:
                callers[computation] = row
    reached = {program.entry}
    for computation in reversed(program.callees_first()):
        row = callers[computation]
        if row != NONE and program.computation[row] in reached:
            reached.add(computation)
    return [row if callee in reached else NONE for callee, row in enumerate(callers)]
