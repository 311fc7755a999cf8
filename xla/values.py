"""The shapes of a program's values, and the operands that they come from."""

from functools import cached_property

from .named_program import GATHER_STARTS, NamedProgram, array_bytes, array_elements
from .program import NONE, ShapeIndex


class Values:
    """Facts about the values of a program, by value.

    Attributes:
        row: the defining instruction.
        opcode: of the defining instruction.
        array: the shape of the array; None for the table of a tuple.
    """

    def __init__(self, named: NamedProgram) -> None:
        self.named = named
        self.row = named.flow.row
        self.opcode = [named.program.opcode[row] for row in self.row]
        self.array = [named.flow.slots.array(slot) for slot in named.flow.defined_at]

    def __len__(self) -> int:
        return len(self.row)

    def _index(self, value: int) -> ShapeIndex:
        return self.named.flow.slots.index(self.named.flow.defined_at[value])

    def is_single(self, value: int) -> bool:
        """Whether the value is the whole result of its instruction."""
        return not self._index(value) and self.array[value] is not None

    def element(self, value: int) -> int:
        """The number of a value among its instruction's results; its operand has the same number.

        0 for an instruction with one result. Element 0 of an `all-gather-start` holds the
        operands, element 1 the results: there it is the number within one of these.
        """
        index = self._index(value)
        if self.opcode[value] in GATHER_STARTS:
            index = index[1:]
        return index[0] if index else 0

    def is_context(self, value: int) -> bool:
        """Whether an asynchronous operation keeps its state in the value."""
        index = self._index(value)
        if not index or index[0] < 2:
            return False
        opcode = self.opcode[value]
        return opcode.endswith("-start") and opcode != "all-reduce-start"

    def operand(self, value: int, number: int) -> int:
        """The value of an operand of the instruction that defines an array.

        NONE if it has no such operand, and for the table of a tuple.
        """
        operands = self.named.program.operands[self.row[value]]
        if number >= len(operands) or self.array[value] is None:
            return NONE
        return self.named.value_of(operands[number])

    @cached_property
    def bytes(self) -> list[int]:
        """The bytes of each array without padding; 0 for a tuple."""
        return [0 if array is None else array_bytes(array) for array in self.array]

    @cached_property
    def elements(self) -> list[int]:
        """The number of elements of each array; 0 for a tuple."""
        return [0 if array is None else array_elements(array) for array in self.array]
