"""The operands that a fusion reads element by element.

An elementwise instruction may write its result over an operand of the same shape: it reads each
element before it writes that element.
"""

from collections.abc import Callable
from functools import cached_property

from .opcodes import ELEMENTWISE
from .program import Program

_ELEMENTWISE = frozenset(ELEMENTWISE)


class Elementwise:
    """The fused instructions of a program that reach one that is not elementwise, through users.

    Its lists are by row: whether a user of the fused instruction, a user of that user and so on is
    not elementwise. A fusion reads an operand element by element if the parameter of its
    computation reaches no such user.

        %fused (a: f32[8], b: f32[8]) -> f32[8] {
          %a = f32[8]{0} parameter(0)             # reaches none
          %b = f32[8]{0} parameter(1)             # reaches the reverse
          %backwards = f32[8]{0} reverse(%b)
          ROOT %sum = f32[8]{0} add(%a, %backwards)
        }
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        fused = {
            computation
            for row, calls in program.calls.items()
            if program.opcode[row] == "fusion"
            for _, computation in calls
        }
        # A nested fusion's computation precedes that of the fusion.
        self._fused_computations = [c for c in program.callees_first() if c in fused]

    def parameter(self, fusion: int, number: int) -> int:
        """The fused parameter of an operand of a fusion. Raises DumpError if there is none."""
        computation = self._program.callee(fusion, "calls")
        return self._program.parameter(computation, number, caller=fusion)

    @cached_property
    def is_elementwise(self) -> list[bool]:
        """By row, whether it is elementwise, or a loop fusion of elementwise instructions."""
        program = self._program
        is_elementwise = [opcode in _ELEMENTWISE for opcode in program.opcode]
        is_loop_body: dict[int, bool] = {}
        for computation in self._fused_computations:
            rows = program.rows_of(computation)
            for row in rows:
                if program.opcode[row] == "fusion" and program.fusion_kind.get(row) == "kLoop":
                    is_elementwise[row] = any(
                        is_loop_body.get(callee, False)
                        for attribute, callee in program.calls.get(row, ())
                        if attribute == "calls"
                    )
            is_loop_body[computation] = all(
                is_elementwise[row] or program.opcode[row] == "parameter" for row in rows
            )
        return is_elementwise

    def reaches_other(self, *ignored: str) -> list[bool]:
        """Whether a fused instruction reaches one that is not elementwise.

        Args:
            ignored: opcodes that count as elementwise.
        """
        program, is_elementwise = self._program, self.is_elementwise
        return self._reaching(
            lambda row, _: not is_elementwise[row] and program.opcode[row] not in ignored
        )

    @cached_property
    def reaches_other_in_cpu_loop(self) -> list[bool]:
        """As XLA for CPU decides for loop and input fusions, where tuples count as elementwise.

        Fusions within them are decided by `reaches_other_on_cpu`.
        """
        return self._reaching(
            lambda row, number: (
                self._program.opcode[row] != "tuple"
                and self._reads_other(row, number, self.reaches_other_on_cpu)
            )
        )

    @cached_property
    def reaches_other_on_cpu(self) -> list[bool]:
        """As XLA for CPU decides for other fusions.

        A dynamic-update-slice reads the operand that it updates element by element. A nested
        fusion reads an operand so if the parameter reaches only elementwise instructions.
        """
        reaches: list[bool] = [False] * len(self._program)
        return self._reaching(
            lambda row, number: self._reads_other(row, number, reaches), result=reaches
        )

    def _reads_other(self, row: int, number: int, reaches: list[bool]) -> bool:
        """Whether XLA for CPU regards an operand as not read element by element."""
        opcode = self._program.opcode[row]
        if opcode == "fusion":
            return reaches[self.parameter(row, number)]
        return opcode not in _ELEMENTWISE and (opcode, number) != ("dynamic-update-slice", 0)

    def _reaching(
        self, reads_other: Callable[[int, int], bool], result: list[bool] | None = None
    ) -> list[bool]:
        """By row, whether a path of fused users leads to one that reads its operand otherwise.

        Args:
            reads_other: whether the instruction in a row reads its operand of a number otherwise
                than element by element.
            result: the list to fill, computation by computation; False at first.
        """
        program = self._program
        reaches = [False] * len(program) if result is None else result
        for computation in self._fused_computations:
            for row in reversed(program.rows_of(computation)):
                for number, operand in enumerate(program.operands[row]):
                    if not reaches[operand]:
                        reaches[operand] = reaches[row] or reads_other(row, number)
        return reaches
