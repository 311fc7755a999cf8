"""Concatenations that XLA makes and takes apart again: combined collectives, halos."""

import numpy as np

from ....schema.address_space.runs import followed, joined
from ..numbered_program import NONE, Ints, Mask
from .fusions import Fusions
from .values import Values

# An operand with at least this share of a concatenation's bytes is what the concatenation is.
_NEARLY_ALL = 7 / 8
_HANDS_ON = ("copy", "copy-start", "all-reduce", "all-reduce-start")


class Concatenations:
    """What the parts of nameless concatenations are."""

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._fusions = values, fusions
        named = values.named
        program = named.program
        source = np.arange(len(values.row))
        moves = values.of(*_HANDS_ON)
        moves = moves[~named.has_strong_name[values.row[moves]]]
        moves = moves[program.operand_count[values.row[moves]] == 1]
        before = values.operand(moves, 0)
        source[moves] = np.where(before != NONE, before, moves)
        self._begin = followed(source)
        made = values.of("fusion")
        row = values.row.copy()
        row[made] = fusions.same_elements[fusions.root_of(values, made)]
        self._row = row

    def piece(self, slices: Ints, values: Ints) -> Ints:
        """The value that each slice takes out of a concatenation of flat arrays, or NONE.

        `slices` are slice instructions, `values` what each of them takes a part of.
        """
        named = self._values.named
        program = named.program
        whole = np.where(values != NONE, self._row[self._begin[values]], 0)
        is_cut = (values != NONE) & program.opcode.is_one_of("concatenate")[whole]
        is_cut &= named.is_flat[whole] & (program.slice_start[slices] != NONE)
        cut = np.flatnonzero(is_cut & ~named.has_strong_name[whole])
        counts = program.operand_count[whole[cut]]
        operand = program.operands[joined(program.operand_start[whole[cut]], counts)]
        owner = np.repeat(cut, counts)
        stop = np.cumsum(named.elements[operand])
        first = np.repeat((stop - named.elements[operand])[np.cumsum(counts) - counts], counts)
        stop -= first
        low = program.slice_start[slices[owner]]
        high = low + named.elements[slices[owner]]
        within = (stop - named.elements[operand] <= low) & (high <= stop)
        found = np.full(len(slices), NONE)
        found[owner[within]] = self._value(operand[within])
        return found

    def nearly_all(self, rows: Ints) -> tuple[Mask, Ints]:
        """Which of these concatenations are nearly all one operand, and that operand's value."""
        named = self._values.named
        program = named.program
        largest = np.full(len(rows), NONE)
        counts = program.operand_count[rows]
        operand = program.operands[joined(program.operand_start[rows], counts)]
        place = np.repeat(np.arange(len(rows)), counts)
        large = named.bytes[operand] >= _NEARLY_ALL * named.bytes[rows[place]]
        large &= program.opcode.is_one_of("concatenate")[rows[place]]
        largest[place[large]] = operand[large]
        value = np.full(len(rows), NONE)
        value[largest != NONE] = named.value_of(largest[largest != NONE])
        return value != NONE, value

    def _value(self, rows: Ints) -> Ints:
        """The value that an operand is, outside of the fusion if it is in one; or NONE."""
        named = self._values.named
        outer = named.outer_operand[self._fusions.same_elements[rows]]
        row = np.where(named.is_fused[rows], outer, rows)
        found = np.full(len(rows), NONE)
        found[row != NONE] = named.value_of(row[row != NONE])
        return found
