"""The values whose owner each value may share, and the search among them."""

from collections.abc import Container
from typing import Final, NamedTuple

from ..program import NONE

# The reasons for which an instruction owns a value.
RULES: Final = (
    "argument",
    "own",
    "moved",
    "loop",
    "fused",
    "becomes",
    "read",
    "operand",
    "weak",
)
ARGUMENT, OWN, MOVED, LOOP, FUSED, BECOMES, READ, OPERAND, WEAK = RULES


class Candidate(NamedTuple):
    """A value whose owner another value may share.

    Attributes:
        value: the candidate.
        may_be_fill: whether its owner also counts if its own search ends at a fill.
    """

    value: int
    may_be_fill: bool


class Candidates:
    """The candidates that the rules find, by the value that may share their owner.

    Attributes:
        candidates: in order of preference; the value shares the owner of the first one that has
            one. No entry for a value without candidates.
        rule: the rule for an owner that the value shares.
        fallback_owner, fallback_rule: the instruction that owns the value if no candidate has an
            owner, or NONE, and the rule for it.
    """

    def __init__(self, value_count: int) -> None:
        self.candidates: dict[int, list[Candidate]] = {}
        self.rule = [OWN] * value_count
        self.fallback_owner = [NONE] * value_count
        self.fallback_rule = [OWN] * value_count

    def add_candidate(self, value: int, candidate: int, *, may_be_fill: bool = True) -> None:
        """Let a value share the owner of a candidate; the candidate NONE is ignored."""
        if candidate != NONE:
            self.candidates.setdefault(value, []).append(Candidate(candidate, may_be_fill))

    def set_fallback_owner(self, value: int, row: int, rule: str) -> None:
        """Set the instruction that owns a value if no candidate has an owner."""
        self.fallback_owner[value], self.fallback_rule[value] = row, rule


class Search:
    """The search for the owners of values along their candidates.

    A value shares the owner of its first candidate that has one. In a cycle of values, such as
    the arrays that two loops pass to each other, the loops advance to their next candidates, the
    values that enter them; if no loop can, all other values do that would not end without an
    owner, and if there are none, all.

    Args:
        is_fill: by value; a search that reaches a fill ends without an owner.
        loops: the values that loops carry.

    Attributes:
        owner: by value, the instruction that owns it, or NONE.
        rule: by value, the rule for it.
        fill: by value, the fill at which the search ended, or NONE.
    """

    def __init__(self, candidates: Candidates, is_fill: list[bool], loops: Container[int]) -> None:
        self._candidates, self._loops = candidates.candidates, loops
        self._candidate_rule = candidates.rule
        self.owner, self.rule = list(candidates.fallback_owner), list(candidates.fallback_rule)
        self.fill = [value if fills else NONE for value, fills in enumerate(is_fill)]
        # By value whose search has not ended, the index of its current candidate.
        self._current = dict.fromkeys(self._candidates, 0)
        for value in self._candidates:
            if value in self._current:
                self._search(value)

    def _search(self, start: int) -> None:
        """Follow current candidates from a value on, until the search of that value has ended."""
        # The values from the start on: the current candidate of each is the next one.
        path, position = [start], {start: 0}
        while start in self._current:
            value = path[-1]
            candidate = self._candidates[value][self._current[value]]
            if candidate.value in position:
                exit_value = self._leave_cycle(path[position[candidate.value] :])
                for successor in path[position[exit_value] + 1 :]:
                    del position[successor]
                del path[position[exit_value] + 1 :]
            elif candidate.value in self._current:
                position[candidate.value] = len(path)
                path.append(candidate.value)
                continue
            else:
                self._try(value, candidate)
            while path and path[-1] not in self._current:
                del position[path.pop()]

    def _try(self, value: int, candidate: Candidate) -> None:
        """Share the owner of a candidate whose search has ended, or advance to the next one."""
        fill = self.fill[candidate.value]
        if self.owner[candidate.value] == NONE if fill == NONE else not candidate.may_be_fill:
            self._advance(value)
            return
        self.rule[value] = _combine_rules(self._candidate_rule[value], self.rule[candidate.value])
        self.owner[value], self.fill[value] = self.owner[candidate.value], fill
        del self._current[value]

    def _advance(self, value: int) -> None:
        """Advance to a value's next candidate; without one, its search ends."""
        self._current[value] += 1
        if self._current[value] == len(self._candidates[value]):
            del self._current[value]

    def _leave_cycle(self, cycle: list[int]) -> int:
        """Let the values of a cycle that rank lowest advance to their next candidates.

        Returns the first of them along the path: the search continues from it.
        """
        rank = {value: self._exit_rank(value) for value in cycle}
        best = min(rank.values())
        leaving = [value for value in cycle if rank[value] == best]
        for value in leaving:
            self._advance(value)
        return leaving[0]

    def _exit_rank(self, value: int) -> int:
        """The order in which values leave a cycle, the lowest first.

        0 for a loop, 1 for another value, 2 for one that would end without an owner.
        """
        candidates, current = self._candidates[value], self._current[value]
        is_last = current + 1 == len(candidates)
        if is_last and self.owner[value] == NONE and candidates[current].may_be_fill:
            return 2
        return 0 if value in self._loops else 1


def _combine_rules(rule: str, candidate_rule: str) -> str:
    """The rule for an owner that a value shares with a candidate: a guess remains a guess.

    Otherwise it is the value's own rule, or the candidate's if the value's is `own`.
    """
    if candidate_rule == WEAK:
        return WEAK
    if OPERAND in (rule, candidate_rule):
        return OPERAND
    return candidate_rule if rule == OWN else rule
