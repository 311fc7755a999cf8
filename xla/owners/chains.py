"""Chains of instructions or values, each of which leads to the next one."""

from collections.abc import Callable


class ChainEnds(dict[int, int]):
    """The end of the chain that starts at each key, found when it is first asked for.

    Args:
        step: the next member of a chain, or the member itself at the end.
        prefer: chooses between a member and the result of the members after it; without it, the
            end of the chain is the result.
    """

    def __init__(
        self, step: Callable[[int], int], prefer: Callable[[int, int], int] | None = None
    ) -> None:
        super().__init__()
        self._step, self._prefer = step, prefer

    def __missing__(self, start: int) -> int:
        member = self._step(start)
        self[start] = start
        if member == start:
            return start
        chain = [start]
        while member not in self:
            # Of a cycle, as in a damaged program, the end is one of its members.
            self[member] = member
            chain.append(member)
            member = self._step(member)
        result = self[member]
        for member in reversed(chain):
            result = result if self._prefer is None else self._prefer(member, result)
            self[member] = result
        return result
