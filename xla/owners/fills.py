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
        values, fusions = self._values, self._fusions
        source = NONE
        if value in fusions.root:
            source = fusions.outer_value(fusions.repeated[fusions.root[value]])
        elif values.opcode[value] in _REPEATS and values.array[value] is not None:
            # The context of a copy holds no elements of the operand.
            source = NONE if values.is_context(value) else values.operand(value, 0)
        return value if source == NONE else source

    def _begins_fill(self, value: int) -> bool:
        """Whether a value that repeats no other one is a fill."""
        values, named = self._values, self._values.named
        if value in self._fusions.root:
            return self._fusions.is_fill(self._fusions.root[value])
        row = values.row[value]
        if values.opcode[value] == "constant":
            return named.rank[row] == 0
        is_unwritten = named.program.custom_call_target.get(row) == "AllocateBuffer"
        return is_unwritten and values.array[value] is not None
