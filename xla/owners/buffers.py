"""Earlier values of each buffer: values are followed back through copies, updates and loops."""

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
        target: the value that it updates; NONE if the fusion computes that.
        fills_inside: whether the fusion fills the buffer before it updates it.
    """

    row: int
    written: int
    target: int
    fills_inside: bool


class Buffers:
    """The earlier values that each value is followed back to, from the result to the operands.

    Attributes:
        updates: by value, the update in place that defines it.
        before_relayout: by value, the value before copies and nameless changes of layout or type.
        before_moves: by value, the value before copies, changes of layout or type of any name,
            slices, padding and loops. Slices count, because a scan slices a layer out of its
            stacked inputs in each iteration.
        first_in_buffer: by value, the earliest value of its buffer: before copies, updates,
            nameless changes of layout or type, and loops.
    """

    def __init__(
        self, values: Values, fusions: Fusions, fills: Fills, loop_phis: dict[int, LoopInputs]
    ) -> None:
        self._values, self._fusions, self._fills = values, fusions, fills
        self.updates = self._find_updates()
        self.before_relayout = ChainEnds(step=partial(_step_before_relayout, values, fusions))
        self.before_moves = ChainEnds(step=partial(_step_before_moves, values, fusions, loop_phis))
        step = partial(_step_to_first_in_buffer, values, fusions, loop_phis, self.updates)
        self.first_in_buffer = ChainEnds(step)

    def _find_updates(self) -> dict[int, Update]:
        values, fusions, program = self._values, self._fusions, self._values.named.program
        updates = {}
        for value, opcode in enumerate(values.opcode):
            if opcode == _UPDATE:
                row, target = values.row[value], values.operand(value, 0)
                updates[value] = Update(row, program.operand(row, 1), target, fills_inside=False)
            elif value in fusions.root_row:
                row = fusions.written[fusions.root_row[value]]
                if program.opcode[row] == _UPDATE:
                    updates[value] = self._fused_update(row)
        return updates

    def _fused_update(self, row: int) -> Update:
        program, fusions = self._values.named.program, self._fusions
        first_row = fusions.written_into[program.operand(row, 0)]
        filled = fusions.outer_value(fusions.repeated[first_row])
        is_outer_fill = filled != NONE and self._fills.is_fill[filled]
        fills_inside = fusions.is_fill(first_row) or is_outer_fill
        return Update(row, program.operand(row, 1), fusions.outer_value(first_row), fills_inside)

    def first_value(self, update: Update) -> int:
        """The earliest value of an updated buffer; NONE if it is inside of the fusion."""
        return NONE if update.target == NONE else self.first_in_buffer[update.target]

    def begins_filled(self, update: Update) -> bool:
        """Whether an updated buffer held one number everywhere before all updates."""
        first_value = self.first_value(update)
        if update.fills_inside or first_value == NONE:
            return update.fills_inside
        # The chain also ends at an update whose fusion computes the fill.
        earlier = self.updates.get(first_value)
        return self._fills.is_fill[first_value] or (earlier is not None and earlier.fills_inside)


def _step_before_relayout(values: Values, fusions: Fusions, value: int) -> int:
    """One step back through a copy or a nameless change of layout or type, or NONE."""
    opcode = values.opcode[value]
    is_nameless = not values.named.is_named[values.row[value]]
    if opcode in COPIES or (is_nameless and opcode in CONVERTS_OR_RESHAPES):
        return values.operand(value, 0)
    if is_nameless and value in fusions.root_row:
        return fusions.outer_value(fusions.same_elements[fusions.root_row[value]])
    return NONE


def _step_before_moves(
    values: Values, fusions: Fusions, loop_phis: dict[int, LoopInputs], value: int
) -> int:
    """One step back through a change of layout or type, a slice, padding or a loop, or NONE."""
    if value in fusions.root_row:
        return fusions.outer_value(fusions.rearranged[fusions.root_row[value]])
    if values.opcode[value] in _RELAYOUTS:
        return values.operand(value, 0)
    return loop_phis[value].entering if value in loop_phis else NONE


def _step_to_first_in_buffer(
    values: Values,
    fusions: Fusions,
    loop_phis: dict[int, LoopInputs],
    updates: dict[int, Update],
    value: int,
) -> int:
    """One step back to an earlier value of the buffer, from a slice to its operand, or NONE."""
    row = values.row[value]
    if value in loop_phis:
        return loop_phis[value].entering
    if value in updates and updates[value].target != NONE:
        return updates[value].target
    # XLA for TPU joins the slices of one array by a ConcatBitcast.
    is_join = values.named.program.custom_call_target.get(row) == "ConcatBitcast"
    if (is_join or values.opcode[value] == "slice") and not values.named.is_named[row]:
        return values.operand(value, 0)
    return _step_before_relayout(values, fusions, value)
