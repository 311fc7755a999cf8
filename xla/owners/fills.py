"""Fills: values that hold one number everywhere, until something is written into them."""

from ..named_program import KEEPS_ELEMENTS
from ..program import NONE
from ..values import Values
from .chains import ChainEnds
from .fusions import Fusions

# The result repeats or keeps the elements of the operand.
_REPEATS = KEEPS_ELEMENTS | {"broadcast", "copy-start"}


class Fills:
    """The values that hold one constant number everywhere, or memory that is not written yet.

    HLO: `zero = f32[] constant(0)`, `zeros = f32[8] broadcast(zero)` are both fills.

    Attributes:
        is_fill: by value.
    """

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._fusions = values, fusions
        sources = ChainEnds(self.repeated)
        self.is_fill = [self._begins_fill(sources[value]) for value in range(len(values))]

    def repeated(self, value: int) -> int:
        """The value that a value repeats or copies; itself if there is none."""
        values, opcode = self._values, self._values.opcode(value)
        source = NONE
        if values.array[value] is None:
            return value
        if opcode == "fusion":
            root = self._fusions.root(values, value)
            source = self._fusions.outer_value(self._fusions.repeated[root])
        elif opcode in _REPEATS and not values.is_context(value):
            source = values.operand(value, 0)
        return value if source == NONE else source

    def _begins_fill(self, value: int) -> bool:
        """Whether a value that repeats no other one is a fill."""
        values, named = self._values, self._values.named
        row, opcode = values.row[value], values.opcode(value)
        if values.array[value] is None:
            return False
        if opcode == "fusion":
            return self._fusions.is_fill(self._fusions.root(values, value))
        if opcode == "constant":
            return named.rank[row] == 0
        return named.program.custom_call_target.get(row) == "AllocateBuffer"
