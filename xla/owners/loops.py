"""The values that loops and conditionals merge."""

from typing import NamedTuple

from ..values import Values


class LoopInputs(NamedTuple):
    """The two values that a loop phi merges.

    Attributes:
        entering: the value before the first iteration.
        computed: the value that the body computes in each iteration.
    """

    entering: int
    computed: int


def find_loop_phis(values: Values) -> dict[int, LoopInputs]:
    """The arrays that loops carry and change, by value."""
    raise NotImplementedError
