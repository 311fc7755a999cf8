"""When the allocations of alias sets are free, and which other sets may fit into them.

Nearly every set fits nowhere, so that a look at the largest gaps leaves a few sets to try one
by one.
"""

from dataclasses import dataclass

import numpy as np

from .liveness import Liveness
from .numbered_program import NONE, Ints, Mask

# Sets of more sizes are taken together, as if each were as small as the smallest.
_SIZES = 64


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
    and at least of its size. Most sets have none: they are never tried one by one. Of many
    sizes a set counts as a little smaller than it is.
    """
    low, high, owner = _gaps(makers, liveness, members)
    size, space = set_size[owner], set_space[owner]
    first = members.order[members.start[tries]]
    start, end = liveness.start[first], liveness.end[first]
    may = np.zeros(len(tries), bool)
    by_low = np.argsort(low, kind="stable")
    low, high, size, space = low[by_low], high[by_low], size[by_low], space[by_low]
    sizes = np.unique(set_size[tries])
    sizes = sizes[:: 1 + len(sizes) // _SIZES]
    level = np.searchsorted(sizes, set_size[tries], "right") - 1
    for number in np.unique(space).tolist():
        for place, least in enumerate(sizes.tolist()):
            at = np.flatnonzero((set_space[tries] == number) & (level == place))
            gaps = np.flatnonzero((space == number) & (size >= least))
            if not len(at) or not len(gaps):
                continue
            # Of the gaps that begin by then, the one that ends last.
            until = np.maximum.accumulate(high[gaps])
            before = np.searchsorted(low[gaps], start[at], "right")
            may[at] = (before > 0) & (until[before - 1] >= end[at])
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
