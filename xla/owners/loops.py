"""The values that loops and conditionals merge: phis."""

from functools import partial
from typing import Final, NamedTuple

from ..named_program import COPIES, NamedProgram
from ..program import NONE, Program
from ..values import Values
from .chains import ChainEnds

# The result is the first operand, an element of it, or a copy of it.
_FORWARDS_OR_COPIES: Final = COPIES | {
    *("copy-done", "get-tuple-element", "bitcast", "opt-barrier", "optimization-barrier"),
    *("domain", "add-dependency"),
}


class LoopInputs(NamedTuple):
    """The two values that a loop's phi merges; NONE for one that is unknown.

    Attributes:
        entering: the value before the first iteration.
        computed: the value that the body computes in each iteration.
    """

    entering: int
    computed: int


def find_loop_phis(values: Values) -> dict[int, LoopInputs]:
    """The inputs of each array that a loop carries and changes, by the array's value.

    Each such array has a phi at the while, at the body's parameter and at the condition's.
    """
    named = values.named
    program, flow = named.program, named.flow
    start = flow.slots.start
    phis: dict[int, LoopInputs] = {}
    for value, row in enumerate(values.row):
        if not flow.is_phi[value] or values.array[value] is None:
            continue
        loop = named.caller_of(row) if program.opcode[row] == "parameter" else row
        if loop == NONE or program.opcode[loop] != "while":
            continue
        offset = flow.defined_at[value] - start[row]
        root = program.root[program.callee(loop, "body")]
        entering = flow.value[start[program.operand(loop, 0)] + offset]
        phis[value] = LoopInputs(entering, flow.value[start[root] + offset])
    return phis


def branch_results(values: Values, value: int) -> list[tuple[int, int]]:
    """The values that a conditional merges into one: (branch computation, its result)."""
    program, flow = values.named.program, values.named.flow
    row = values.row[value]
    offset = flow.defined_at[value] - flow.slots.start[row]
    return [
        (branch, flow.value[flow.slots.start[program.root[branch]] + offset])
        for _, branch in program.calls.get(row, ())
    ]


def is_inside(named: NamedProgram, row: int, computation: int) -> bool:
    """Whether an instruction is in a computation, or in one that this calls."""
    while row != NONE:
        if named.program.computation[row] == computation:
            return True
        row = named.caller_of(row)
    return False


class LoopBodies:
    """The instructions that are inputs of the bodies of loops.

    Attributes:
        source: by row, the instruction that it only forwards or copies, followed back to the end.
    """

    def __init__(self, named: NamedProgram) -> None:
        self._named = named
        self.source = ChainEnds(partial(_forwarded_operand, named.program))

    def is_input(self, row: int) -> bool:
        """Whether an instruction is a parameter of a loop's body, or forwards or copies one."""
        program, source = self._named.program, self.source[row]
        loop = self._named.caller_of(source)
        if program.parameter_number[source] == NONE or loop == NONE:
            return False
        return program.opcode[loop] == "while"


def _forwarded_operand(program: Program, row: int) -> int:
    """The operand that an instruction forwards or copies, or NONE."""
    return program.operand(row, 0) if program.opcode[row] in _FORWARDS_OR_COPIES else NONE
