"""Which instructions work element by element, and what an operand of a fusion reaches.

An elementwise instruction may write its result over an operand of the same shape: it reads
each element before it writes that element.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...schema.opcodes import ELEMENTWISE
from .numbered_program import Ints, Mask, NumberedProgram


@dataclass
class Elementwise:
    """Answers for one program, each worked out once."""

    program: NumberedProgram

    @cached_property
    def nested(self) -> Mask:
        """Which instructions are elementwise; a nested fusion if it is a loop of only such."""
        program = self.program
        found = program.opcode.is_one_of(*ELEMENTWISE)
        calls = program.call_attribute.is_one_of("calls")
        calls &= program.fusion_kind.is_one_of("kLoop")[program.call_row]
        fusion, fused = program.call_row[calls], program.call_computation[calls]
        parameter = program.opcode.is_one_of("parameter")
        while True:
            # One nesting of fusions a round.
            other = np.zeros(len(program.first), bool)
            other[program.computation[~found & ~parameter]] = True
            further = found.copy()
            further[fusion[~other[fused]]] = True
            if np.array_equal(further, found):
                return found
            found = further

    def reaches_other(self, *through: str) -> Mask:
        """Which instructions have a user, or a user's user and so on, that is not elementwise.

        The opcodes `through` count as elementwise, and so does a nested loop of only such.
        """
        allowed = self.nested | self.program.opcode.is_one_of(*through)
        return self._told(~allowed[self.program.operand_row])

    @cached_property
    def loop_reaches_other(self) -> Mask:
        """As on a CPU for loops: a tuple counts as elementwise, and see `other_reaches_other`."""
        at, parameter = self._nested_operands
        bad = self._is_other_read("tuple", "fusion")
        bad[at] |= self.strictly_reaches_other[parameter]
        return self._told(bad)

    @cached_property
    def strictly_reaches_other(self) -> Mask:
        """As on a CPU for other fusions: tuples do not count as elementwise.

        A dynamic-update-slice reads the operand that it updates element by element. A nested
        fusion reads an operand so if the operand's parameter reaches only such instructions.
        """
        at, parameter = self._nested_operands
        bad = self._is_other_read("fusion")
        while True:
            # One nesting of fusions a round.
            reaches = self._told(bad)
            further = bad.copy()
            further[at] |= reaches[parameter]
            if np.array_equal(further, bad):
                return reaches
            bad = further

    def _is_other_read(self, *through: str) -> Mask:
        """Which of the program's operands an instruction does not read element by element."""
        program = self.program
        allowed = program.opcode.is_one_of(*ELEMENTWISE, *through)[program.operand_row]
        first = np.zeros(len(program.operands), bool)
        first[program.operand_start[:-1][program.operand_count > 0]] = True
        updates = program.opcode.is_one_of("dynamic-update-slice")[program.operand_row]
        found: Mask = ~(allowed | (updates & first))
        return found

    @cached_property
    def _nested_operands(self) -> tuple[Ints, Ints]:
        """The operands of fusions within fusions, and the parameters that stand for these."""
        program = self.program
        nested = program.opcode.is_one_of("fusion") & self._is_fused[program.computation]
        at = np.flatnonzero(nested[program.operand_row])
        row = program.operand_row[at]
        if not len(at):
            return at, at
        number = at - program.operand_start[row]
        return at, program.parameter_of(program.callee(row, "calls"), number, row)

    @cached_property
    def _is_fused(self) -> Mask:
        """Which computations a fusion calls."""
        program = self.program
        found = np.zeros(len(program.first), bool)
        by_fusion = program.opcode.is_one_of("fusion")[program.call_row]
        found[program.call_computation[by_fusion]] = True
        return found

    def _told(self, bad: Mask) -> Mask:
        """Which instructions reach one of these operands in their fused computation."""
        program = self.program
        reaches = np.zeros(len(program), bool)
        within = self._is_fused[program.computation[program.operand_row]]
        tell = np.flatnonzero(bad & within)
        while len(tell):
            told = np.unique(program.operands[tell])
            told = told[~reaches[told]]
            reaches[told] = True
            fresh = np.zeros(len(program), bool)
            fresh[told] = True
            tell = np.flatnonzero(fresh[program.operand_row])
        return reaches
