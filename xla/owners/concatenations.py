"""Arrays that XLA concatenates and slices again, for combined collectives and halos."""

import re
from functools import partial

from ..named_program import COPIES
from ..program import NONE
from ..values import Values
from .chains import ChainEnds
from .fusions import Fusions

# An operand with at least this share of a concatenation's bytes owns the concatenation.
_NEARLY_ALL = 7 / 8
# Element i of the result comes from element i of the operand.
_COPIES_OR_REDUCES = COPIES | {"all-reduce", "all-reduce-start"}
_SLICE_START = re.compile(r"\bslice=\{\[([0-9]{1,18}):")


class Concatenations:
    """The operands of nameless concatenations that slices and whole results come from."""

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._named, self._fusions = values, values.named, fusions
        self._sources = ChainEnds(partial(_copied_operand, values))

    def piece(self, row: int, value: int) -> int:
        """The operand of a concatenation of flat arrays that a slice takes out, or NONE.

        HLO: `joined = f32[8] concatenate(a, b)`, `first = f32[4] slice(joined), slice={[0:4]}`
        takes out `a`.

        Args:
            row: the slice; of any other instruction the result is NONE.
            value: the value that it slices, or NONE.
        """
        named, program = self._named, self._named.program
        if value == NONE or (match := _SLICE_START.search(program.attributes.get(row, ""))) is None:
            return NONE
        joined = self._defining_row(self._sources[value])
        is_flat = program.opcode[joined] == "concatenate" and named.rank[joined] == 1
        if not is_flat or named.is_named[joined]:
            return NONE
        low = int(match[1])
        high = low + named.elements[row]
        stop, piece = 0, NONE
        for operand in program.operands[joined]:
            start, stop = stop, stop + named.elements[operand]
            if start <= low and high <= stop:
                piece = self._operand_value(operand)
        return piece

    def _defining_row(self, value: int) -> int:
        """The instruction that computes a value, if need be inside of a fusion."""
        if value in self._fusions.root_row:
            return self._fusions.same_elements[self._fusions.root_row[value]]
        return self._values.row[value]

    def main_operand(self, row: int) -> int:
        """The value of the operand with nearly all bytes of a concatenation; NONE without one."""
        named, program = self._named, self._named.program
        if program.opcode[row] != "concatenate":
            return NONE
        for operand in reversed(program.operands[row]):
            if named.bytes[operand] >= _NEARLY_ALL * named.bytes[row]:
                return named.value_of(operand)
        return NONE

    def _operand_value(self, row: int) -> int:
        """The value of an operand; for a fused one, the value that it keeps all elements of."""
        if self._named.is_fused[row]:
            return self._fusions.outer_value(self._fusions.same_elements[row])
        return self._named.value_of(row)


def _copied_operand(values: Values, value: int) -> int:
    """The operand of a nameless copy or of a nameless all-reduce of one array, or NONE."""
    row = values.row[value]
    if values.opcode[value] not in _COPIES_OR_REDUCES or values.named.is_named[row]:
        return NONE
    has_one_operand = len(values.named.program.operands[row]) == 1
    return values.operand(value, 0) if has_one_operand else NONE
