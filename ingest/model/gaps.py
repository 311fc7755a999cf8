"""When the allocations of alias sets are free, and which other sets may fit into them.

Nearly every set fits nowhere, so that one comparison of all sets with all gaps leaves a few
sets to try one by one.
"""

from dataclasses import dataclass

import numpy as np

from .liveness import Liveness
from .numbered_program import NONE, Ints, Mask

_CELLS = 4_000_000  # of one table of comparisons


@dataclass(frozen=True)
class Members:
    """The values by alias set."""

    order: Ints
    start: Ints

    def of(self, sets: Ints) -> list[list[int]]:
        """The values of each of these sets."""
        return [self.order[self.start[n] : self.start[n + 1]].tolist() for n in sets.tolist()]


def members_of(alias_set: Ints) -> Members:
    """Group the values by their alias sets."""
    order = np.argsort(alias_set, kind="stable")
    count = np.bincount(alias_set, minlength=len(order))
    return Members(order, np.concatenate([[0], np.cumsum(count)]))


def may_fit(
    tries: Ints, makers: Ints, set_size: Ints, set_space: Ints, liveness: Liveness, members: Members
) -> Mask:
    """Which sets may fit into an allocation as it is before any other set goes there.

    A set needs a gap in which the first of its values lives, in an allocation of its space
    and at least of its size. Most sets have none: they are never tried one by one.
    """
    low, high, owner = _gaps(makers, liveness, members)
    size, space = set_size[owner], set_space[owner]
    first = members.order[members.start[tries]]
    start, end = liveness.start[first], liveness.end[first]
    may = np.zeros(len(tries), bool)
    for number in np.unique(space).tolist():
        here = space == number
        gaps = _largest(low[here], high[here], size[here])
        at = np.flatnonzero(set_space[tries] == number)
        for some in np.array_split(at, 1 + len(at) * len(gaps[0]) // _CELLS):
            may[some] = (
                (gaps[0] <= start[some, None])
                & (gaps[1] >= end[some, None])
                & (gaps[2] >= set_size[tries[some], None])
            ).any(axis=1)
    return may


def _gaps(makers: Ints, liveness: Liveness, members: Members) -> tuple[Ints, Ints, Ints]:
    """When the allocations of some sets are free: from, to, and the set.

    A value may begin as the gap's neighbour ends, so that both bounds belong to the gap.
    """
    count = members.start[makers + 1] - members.start[makers]
    owner = np.repeat(makers, count)
    values = np.concatenate([np.array([], np.int64), *(members.of(makers))]).astype(np.int64)
    order = np.lexsort((liveness.start[values], owner))
    values, owner = values[order], owner[order]
    latest = int(liveness.end.max(initial=0)) + 1
    head = np.concatenate([[True], owner[1:] != owner[:-1]])[: len(owner)]
    low = np.where(head, NONE, np.roll(liveness.end[values], 1))
    high = liveness.start[values]
    last = np.concatenate([head[1:], [True]])[: len(owner)]
    low = np.concatenate([low, liveness.end[values[last]]])
    high = np.concatenate([high, np.full(int(last.sum()), latest)])
    owner = np.concatenate([owner, owner[last]])
    open_ = low <= high
    return low[open_], high[open_], owner[open_]


def _largest(low: Ints, high: Ints, size: Ints) -> tuple[Ints, Ints, Ints]:
    """The gaps that no other gap contains in time and size."""
    order = np.lexsort((-size, -high, low))
    low, high, size = low[order], high[order], size[order]
    _, first = np.unique(np.stack([low, high, size]), axis=1, return_index=True)
    low, high, size = low[first], high[first], size[first]
    within = (low[:, None] >= low) & (high[:, None] <= high) & (size[:, None] <= size)
    np.fill_diagonal(within, False)
    kept = ~within.any(axis=1)
    return low[kept], high[kept], size[kept]
