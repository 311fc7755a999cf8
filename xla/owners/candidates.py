"""The values that each value may share its owner with, and the search among them."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..program import NONE

# Why an instruction owns a value.
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
    """A value that another one may share its owner with.

    Attributes:
        value: the candidate.
        may_be_fill: whether it also counts if its own search ends at a fill.
    """

    value: int
    may_be_fill: bool


@dataclass(slots=True)
class Claim:
    """What the rules say about the owner of one value.

    Attributes:
        candidates: in order of preference; the first one with an owner gives it.
        rule: the rule for an owner that a candidate gives.
        owner, owner_rule: the instruction that owns the value if no candidate has an owner, or
            NONE, and the rule for it.
        is_fill: whether the value is a fill: its owner is searched later.
        is_loop: whether a loop carries the value.
    """

    candidates: list[Candidate] = field(default_factory=list)
    rule: str = OWN
    owner: int = NONE
    owner_rule: str = OWN
    is_fill: bool = False
    is_loop: bool = False

    def follow(self, value: int, *, may_be_fill: bool = True) -> None:
        """Add a candidate; NONE adds none."""
        if value != NONE:
            self.candidates.append(Candidate(value, may_be_fill))

    def own(self, row: int, rule: str) -> None:
        """Set the instruction that owns the value if no candidate has an owner."""
        self.owner, self.owner_rule = row, rule


class Outcome(NamedTuple):
    """The result of the search for one value.

    Attributes:
        owner: the instruction that owns the value, or NONE.
        rule: the rule for it.
        fill: the fill at which the search ended, or NONE; there is no owner then.
    """

    owner: int
    rule: str
    fill: int


class Search:
    """The search for the owners of values, along their candidates.

    A value shares the outcome of its first candidate that has one. In a cycle of values, such as
    the arrays that two loops pass to each other, the loops turn to their next candidates, the
    values that enter them; if there is no loop, all values of the cycle do.
    """

    def __init__(self, claims: list[Claim]) -> None:
        self._claims = claims
        # The place of each value's present candidate.
        self._current = [0] * len(claims)
        self._outcomes: list[Outcome | None] = [None] * len(claims)

    def outcomes(self) -> list[Outcome]:
        """The outcome of each value, by value."""
        return [self._outcome(value) for value in range(len(self._claims))]

    def _outcome(self, start: int) -> Outcome:
        """Follow candidates from a value on, until it has an outcome."""
        # The values from the start on, each of which has the next one as its present candidate.
        path, depth = [start], {start: 0}
        while True:
            value = path[-1]
            outcome = self._outcomes[value] or self._end(value)
            if outcome is None:
                candidate = self._claims[value].candidates[self._current[value]].value
                if candidate in depth:
                    first = self._leave_cycle(path[depth[candidate] :])
                    self._cut(path, depth, depth[first] + 1)
                else:
                    depth[candidate] = len(path)
                    path.append(candidate)
                continue
            self._outcomes[value] = outcome
            if len(path) == 1:
                return outcome
            self._cut(path, depth, len(path) - 1)
            self._take(path[-1], outcome)

    @staticmethod
    def _cut(path: list[int], depth: dict[int, int], length: int) -> None:
        for value in path[length:]:
            del depth[value]
        del path[length:]

    def _end(self, value: int) -> Outcome | None:
        """The outcome of a value without candidates that are left; None for another value."""
        claim = self._claims[value]
        if self._current[value] < len(claim.candidates):
            return None
        if claim.is_fill:
            return Outcome(NONE, OWN, value)
        return Outcome(claim.owner, claim.owner_rule, NONE)

    def _take(self, value: int, outcome: Outcome) -> None:
        """Give a value the outcome of its candidate, or turn to its next candidate."""
        claim = self._claims[value]
        is_fill = outcome.fill != NONE
        if is_fill:
            is_rejected = not claim.candidates[self._current[value]].may_be_fill
        else:
            is_rejected = outcome.owner == NONE
        if is_rejected:
            self._current[value] += 1
        else:
            self._outcomes[value] = Outcome(
                outcome.owner, _combined_rule(claim.rule, outcome.rule), outcome.fill
            )

    def _leave_cycle(self, cycle: list[int]) -> int:
        """Let values of a cycle turn to their next candidates. Returns the first of these."""
        rank = {value: self._exit_rank(value) for value in cycle}
        best = min(rank.values())
        leaving = [value for value in cycle if rank[value] == best]
        for value in leaving:
            self._current[value] += 1
        return leaving[0]

    def _exit_rank(self, value: int) -> int:
        """How fit a value is to leave a cycle: 0 for loops, 2 for values without alternative."""
        claim, current = self._claims[value], self._current[value]
        is_last = current + 1 == len(claim.candidates)
        if is_last and claim.owner == NONE and claim.candidates[current].may_be_fill:
            return 2
        return 0 if claim.is_loop else 1


def _combined_rule(rule: str, candidate_rule: str) -> str:
    """The rule for an owner that a candidate gives: a guess remains a guess."""
    if candidate_rule == WEAK:
        return WEAK
    if OPERAND in (rule, candidate_rule):
        return OPERAND
    return candidate_rule if rule == OWN else rule
