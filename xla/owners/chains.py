"""Chains of instructions or values, each of which leads to the next one."""

from collections.abc import Callable

from ..program import NONE


class ChainEnds(dict[int, int]):
    """The end of the chain that starts at each member, computed when it is first read.

    Args:
        step: the next member of the chain; NONE at the end.
        prefer: chooses between a member and the result of the next member; without it, the end of
            the chain is the result.
    """

    def __init__(
        self, step: Callable[[int], int], prefer: Callable[[int, int], int] | None = None
    ) -> None:
        super().__init__()
        self._step, self._prefer = step, prefer

    def __missing__(self, start: int) -> int:
        chain, following = [start], self._step(start)
        self[start] = start
        while following != NONE and following not in self:
            # A cycle, as in a corrupt program, ends at one of its members.
            self[following] = following
            chain.append(following)
            following = self._step(following)
        result = chain[-1] if following == NONE else self[following]
        for member in reversed(chain):
            result = result if self._prefer is None else self._prefer(member, result)
            self[member] = result
        return result
