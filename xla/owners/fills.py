"""Fills: values that hold one number everywhere, until something is written into them."""

from ..named_program import KEEPS_ELEMENTS
from ..program import NONE
from ..values import Values
from .chains import ChainEnds
from .fusions import Fusions

# The result repeats or keeps the elements of the operand.
_REPEATS = KEEPS_ELEMENTS | {"broadcast", "copy-start"}
_FILL_OPCODES = _REPEATS | {"constant", "custom-call", "fusion"}


class Fills:
    """The values that hold one constant number everywhere, or memory that is not written yet.

    HLO: `zero = f32[] constant(0)`, `zeros = f32[8] broadcast(zero)` are both fills.

    Attributes:
        is_fill: by value.
    """

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._fusions = values, fusions
        sources = ChainEnds(self.repeated_value)
        self.is_fill = [
            opcode in _FILL_OPCODES and self._is_source_of_fill(sources[value])
            for value, opcode in enumerate(values.opcode)
        ]

    def repeated_value(self, value: int) -> int:
        """The value that a value repeats or copies, or NONE."""
        values, fusions = self._values, self._fusions
        if value in fusions.root_row:
            return fusions.outer_value(fusions.repeated[fusions.root_row[value]])
        # The context of a copy-start has no elements of the operand.
        if values.opcode[value] in _REPEATS and not values.is_context(value):
            return values.operand(value, 0)
        return NONE

    def _is_source_of_fill(self, value: int) -> bool:
        """Whether a value that repeats no other value is a fill."""
        values, named = self._values, self._values.named
        if value in self._fusions.root_row:
            return self._fusions.is_fill(self._fusions.root_row[value])
        row = values.row[value]
        if values.opcode[value] == "constant":
            return named.rank[row] == 0
        return (
            named.program.custom_call_target.get(row) == "AllocateBuffer"
            and values.array[value] is not None
        )
