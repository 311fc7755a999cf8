"""The values that a value's buffer held before: ways back through copies, updates and loops."""

from functools import partial
from typing import NamedTuple

from ..named_program import CONVERTS_OR_RESHAPES, COPIES, KEEPS_ELEMENTS
from ..program import NONE
from ..values import Values
from .chains import ChainEnds
from .fills import Fills
from .fusions import Fusions
from .loops import LoopInputs

_UPDATE = "dynamic-update-slice"
_RELAYOUTS = COPIES | KEEPS_ELEMENTS | {"slice", "pad", "dynamic-slice"}


class Update(NamedTuple):
    """A value that a dynamic-update-slice defines, alone or at the root of a fusion.

    Attributes:
        row: the dynamic-update-slice.
        written: the instruction whose result it writes.
        target: the value that it updates; NONE if the fusion makes that.
        fills_inside: whether the fusion fills the buffer before it updates it.
    """

    row: int
    written: int
    target: int
    fills_inside: bool


class Buffers:
    """The values that a buffer held earlier.

    Attributes:
        updates: the updates in place, by value.
        relaid_from: by value, the value before copies and nameless changes of layout or type.
        rearranged_from: by value, the value before copies, cuts, padding, conversions, changes
            of layout and loops. Slices count, because a scan cuts one layer after the other out
            of its stacked inputs.
        first: by value, the value that its buffer held first: before copies, updates, nameless
            changes of layout or type, and loops.
    """

    def __init__(
        self, values: Values, fusions: Fusions, fills: Fills, loop_phis: dict[int, LoopInputs]
    ) -> None:
        self._values, self._fusions, self._fills = values, fusions, fills
        self.updates = self._find_updates()
        self.relaid_from = ChainEnds(partial(_relaid, values, fusions))
        self.rearranged_from = ChainEnds(partial(_rearranged, values, fusions, loop_phis))
        self.first = ChainEnds(partial(_earlier, values, fusions, loop_phis, self.updates))

    def _find_updates(self) -> dict[int, Update]:
        values, fusions, program = self._values, self._fusions, self._values.named.program
        updates = {}
        for value, opcode in enumerate(values.opcode):
            if opcode == _UPDATE:
                row, target = values.row[value], values.operand(value, 0)
                updates[value] = Update(row, program.operand(row, 1), target, fills_inside=False)
            elif value in fusions.root:
                root = fusions.written[fusions.root[value]]
                if program.opcode[root] == _UPDATE:
                    updates[value] = self._fused_update(root)
        return updates

    def _fused_update(self, row: int) -> Update:
        program, fusions = self._values.named.program, self._fusions
        first = fusions.written_into[program.operand(row, 0)]
        filled = fusions.outer_value(fusions.repeated[first])
        fills_inside = fusions.is_fill(first) or (filled != NONE and self._fills.is_fill[filled])
        return Update(row, program.operand(row, 1), fusions.outer_value(first), fills_inside)

    def begins_as(self, update: Update) -> int:
        """The value that an updated buffer held first; NONE if a fusion makes that."""
        return NONE if update.target == NONE else self.first[update.target]

    def begins_filled(self, update: Update) -> bool:
        """Whether an updated buffer held one number everywhere before all updates."""
        first = self.begins_as(update)
        if update.fills_inside or first == NONE:
            return update.fills_inside
        # The way back also ends at an update whose fusion makes the fill.
        earlier = self.updates.get(first)
        return self._fills.is_fill[first] or (earlier is not None and earlier.fills_inside)


def _relaid(values: Values, fusions: Fusions, value: int) -> int:
    """One step back through a copy or a nameless change of layout or type, or NONE."""
    opcode = values.opcode[value]
    is_nameless = not values.named.is_named[values.row[value]]
    if opcode in COPIES or (is_nameless and opcode in CONVERTS_OR_RESHAPES):
        return values.operand(value, 0)
    if is_nameless and value in fusions.root:
        return fusions.outer_value(fusions.same_elements[fusions.root[value]])
    return NONE


def _rearranged(
    values: Values, fusions: Fusions, loop_phis: dict[int, LoopInputs], value: int
) -> int:
    """One step back through a change of layout or type, a cut, padding or a loop, or NONE."""
    if value in fusions.root:
        return fusions.outer_value(fusions.rearranged[fusions.root[value]])
    if values.opcode[value] in _RELAYOUTS:
        return values.operand(value, 0)
    return loop_phis[value].entering if value in loop_phis else NONE


def _earlier(
    values: Values,
    fusions: Fusions,
    loop_phis: dict[int, LoopInputs],
    updates: dict[int, Update],
    value: int,
) -> int:
    """One step back to an earlier value of the buffer, from a slice to the whole, or NONE."""
    row = values.row[value]
    if value in loop_phis:
        return loop_phis[value].entering
    if value in updates and updates[value].target != NONE:
        return updates[value].target
    # ConcatBitcast joins the slices of one array again.
    is_join = values.named.program.custom_call_target.get(row) == "ConcatBitcast"
    if (is_join or values.opcode[value] == "slice") and not values.named.is_named[row]:
        return values.operand(value, 0)
    return _relaid(values, fusions, value)
