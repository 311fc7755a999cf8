"""Where buffers begin: what writes in place, and what the buffer held before all writes."""

from functools import cached_property

import numpy as np

from ....schema.address_space.runs import followed
from ..numbered_program import NONE, Ints, Mask
from .fusions import KEEPS_ELEMENTS, Fusions
from .values import Loops, Values

_UPDATE = "dynamic-update-slice"


class Writes:
    """The values that a dynamic-update-slice writes, plainly or in a fusion.

    Of each of `values`: `row`, the dynamic-update-slice; `update`, the instruction that it
    writes; `target`, the value that it writes into, NONE if that is made in the fusion.
    """

    def __init__(self, values: Values, loops: Loops, fusions: Fusions, is_fill: Mask) -> None:
        self._values, self._loops, self._fusions = values, loops, fusions
        self._is_fill = is_fill
        program = values.named.program
        plain, made = values.of(_UPDATE), values.of("fusion")
        root = fusions.written[fusions.root_of(values, made)]
        writes = program.opcode.is_one_of(_UPDATE)[root]
        made, root = made[writes], root[writes]
        into = program.operand(root, 0)
        self.values = np.concatenate([plain, made])
        self.row = np.concatenate([values.row[plain], root])
        self.update = program.operand(self.row, 1)
        outer = fusions.from_outside(fusions.written_into, into)
        self.target = np.concatenate([values.operand(plain, 0), outer])
        first = fusions.written_into[into]
        source = fusions.from_outside(fusions.repeated, first)
        filled = fusions.is_fill[first] | (is_fill[source] & (source != NONE))
        self._filled_inside = np.concatenate([np.zeros(len(plain), bool), filled])

    @cached_property
    def begin(self) -> Ints:
        """Of each of `values`: what its buffer held at first; NONE if that is in the fusion.

        Through copies, writes and nameless changes of layout or type, and of loops through
        what enters.
        """
        found: Ints = np.where(self.target == NONE, NONE, self._beginning[self.target])
        return found

    @cached_property
    def begins_filled(self) -> Mask:
        """Of each of `values`: whether its buffer held one number everywhere at first."""
        inside = np.zeros(len(self._is_fill), bool)
        inside[self.values[self._filled_inside]] = True
        # A way back ends at a write whose fusion makes the fill.
        found: Mask = self._filled_inside | (
            (self.begin != NONE) & (self._is_fill | inside)[self.begin]
        )
        return found

    @cached_property
    def _beginning(self) -> Ints:
        """Where each value's buffer begins, itself if nothing is known."""
        values = self._values
        source = self._relaid.copy()
        self._redirect(source, self._loops.phis, self._loops.entering)
        nameless = ~values.named.has_strong_name[values.row]
        pieces = self._pieces[nameless[self._pieces]]
        self._redirect(source, pieces, values.operand(pieces, 0))
        self._redirect(source, self.values, self.target)
        return followed(source)

    @cached_property
    def _relaid(self) -> Ints:
        """One step through copies and nameless changes of layout or type."""
        values = self._values
        source = self._copies.copy()
        nameless = ~values.named.has_strong_name[values.row]
        kept = values.of("convert", "reshape", "transpose")
        self._redirect(source, kept[nameless[kept]], values.operand(kept[nameless[kept]], 0))
        made = values.of("fusion")
        made = made[nameless[made]]
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.from_outside(self._fusions.same_elements, inner))
        return source

    @cached_property
    def _pieces(self) -> Ints:
        """Slices, and the arrays that XLA puts together again from slices."""
        values = self._values
        target = values.named.program.custom_call_target
        joins = target.is_one_of("ConcatBitcast")[values.row] & values.is_array
        return np.concatenate([values.of("slice"), np.flatnonzero(joins)])

    @cached_property
    def relaid_from(self) -> Ints:
        """What each value is, but for copies and nameless changes of layout or type."""
        return followed(self._relaid)

    @cached_property
    def relayout_of(self) -> Ints:
        """What each value is, cut, padded, converted or laid out another way.

        A scan cuts its stacked inputs apart, one layer at a time.
        """
        values = self._values
        source = self._moves.copy()
        found = values.of(*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice")
        self._redirect(source, found, values.operand(found, 0))
        made = values.of("fusion")
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.from_outside(self._fusions.relayout_of, inner))
        return followed(source)

    @cached_property
    def _copies(self) -> Ints:
        source = np.arange(len(self._is_fill))
        copies = self._values.of("copy", "copy-start")
        self._redirect(source, copies, self._values.operand(copies, 0))
        return source

    @cached_property
    def _moves(self) -> Ints:
        """One step through copies, and from loops to what enters them."""
        source = self._copies.copy()
        self._redirect(source, self._loops.phis, self._loops.entering)
        return source

    @staticmethod
    def _redirect(source: Ints, values: Ints, to: Ints) -> None:
        """Point values to others, where there are others."""
        source[values] = np.where(to != NONE, to, source[values])
