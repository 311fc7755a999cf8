"""The owner of every array of a program."""

from dataclasses import dataclass

from ..named_program import NamedProgram
from ..program import NONE
from ..values import Values


@dataclass
class Owners:
    """The owners of values, by value.

    Attributes:
        row: the instruction that owns the value; NONE if no rule names one.
        rule: the rule that names it, one of RULES; None without an owner.
        source: the value that it is a copy, a part or another type of, or that enters the loop
            that carries it; itself if none.
    """

    row: list[int]
    rule: list[str | None]
    source: list[int]


def find_owners(values: Values, alias_set: list[int]) -> Owners:
    """The owner of every array; the table of a tuple has none.

    Args:
        alias_set: by value, the smallest number of the values that must share memory with it.
    """
    raise NotImplementedError
