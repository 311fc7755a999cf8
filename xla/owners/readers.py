"""The first named instruction that reads a value, also inside of fusions."""

from ..named_program import NamedProgram
from ..program import NONE
from ..values import Values


class Readers:
    """Searches for the readers of values. Results are cached.

    Of an operand of a fusion, the reader is the first instruction inside with a strong op_name.
    """

    def __init__(self, values: Values) -> None: ...

    def inner_reader(self, user: int, operand: int) -> int:
        """The instruction that reads an operand, by its number: the user, or one in the fusion.

        In a fusion the search starts at the operand's parameter, and passes through readers
        without a strong op_name, level by level. The fusion itself if none is named.
        """
        raise NotImplementedError

    def first_reader(self, value: int) -> int:
        """The first instruction with a strong op_name that reads a value or a copy of it, or NONE."""
        raise NotImplementedError
