"""The values that a value's buffer held before: ways back through copies, updates and loops."""

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
        self._loop_phis = loop_phis
        self.updates: dict[int, Update] = {}
        for value in range(len(values)):
            if (update := self._find_update(value)) is not None:
                self.updates[value] = update
        self.relaid_from = ChainEnds(self._relaid)
        self.rearranged_from = ChainEnds(self._rearranged)
        self.first = ChainEnds(self._earlier)

    def _find_update(self, value: int) -> Update | None:
        values, fusions, program = self._values, self._fusions, self._values.named.program
        if values.opcode[value] == _UPDATE:
            row = values.row[value]
            written = program.operand(row, 1)
            return Update(row, written, values.operand(value, 0), fills_inside=False)
        if value not in fusions.root:
            return None
        root = fusions.written[fusions.root[value]]
        if program.opcode[root] != _UPDATE:
            return None
        first = fusions.written_into[program.operand(root, 0)]
        filled = fusions.outer_value(fusions.repeated[first])
        fills_inside = fusions.is_fill(first) or (filled != NONE and self._fills.is_fill[filled])
        written = program.operand(root, 1)
        return Update(root, written, fusions.outer_value(first), fills_inside)

    def _relaid(self, value: int) -> int:
        """One step back through a copy or a nameless change of layout or type."""
        values, opcode = self._values, self._values.opcode[value]
        is_nameless = not values.named.is_named[values.row[value]]
        source = NONE
        if opcode in COPIES or (is_nameless and opcode in CONVERTS_OR_RESHAPES):
            source = self._operand(value)
        elif is_nameless and value in self._fusions.root:
            source = self._passed_through(value, self._fusions.same_elements)
        return value if source == NONE else source

    def _operand(self, value: int) -> int:
        """The first operand's value; NONE for a tuple's table."""
        return NONE if self._values.array[value] is None else self._values.operand(value, 0)

    def _passed_through(self, value: int, way: ChainEnds) -> int:
        """The fusion's operand that one of its values is, on a way back; NONE if it is none."""
        return self._fusions.outer_value(way[self._fusions.root[value]])

    def _rearranged(self, value: int) -> int:
        """One step back through any change of layout or type, cut or padding, or a loop."""
        source = NONE
        if value in self._fusions.root:
            source = self._passed_through(value, self._fusions.rearranged)
        elif self._values.opcode[value] in _RELAYOUTS:
            source = self._operand(value)
        elif value in self._loop_phis:
            source = self._loop_phis[value].entering
        return value if source == NONE else source

    def _earlier(self, value: int) -> int:
        """One step back to what the buffer held earlier; pieces are followed to the whole."""
        if value in self._loop_phis and self._loop_phis[value].entering != NONE:
            return self._loop_phis[value].entering
        update = self.updates.get(value)
        if update is not None and update.target != NONE:
            return update.target
        values, row = self._values, self._values.row[value]
        if self._is_piece(value) and not values.named.is_named[row]:
            source = values.operand(value, 0)
            if source != NONE:
                return source
        return self._relaid(value)

    def _is_piece(self, value: int) -> bool:
        """Whether a value is a slice, or the array that XLA joins again from slices."""
        values, program = self._values, self._values.named.program
        is_join = program.custom_call_target.get(values.row[value]) == "ConcatBitcast"
        return values.array[value] is not None and (is_join or values.opcode[value] == "slice")

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
