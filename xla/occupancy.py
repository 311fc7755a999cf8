"""Bytes that live values occupy over time: a sweep over their starts and ends."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# Times at which an amount changes, ascending, and the amount from each time on.
Changes = list[tuple[int, int]]


class Extent(NamedTuple):
    """The addresses [low, high) of a value, live from `start` through `end`, both inclusive."""

    low: int
    high: int
    start: int
    end: int


def sum_changes(intervals: Iterable[tuple[int, int, int]]) -> Changes:
    """Changes of the sum of sizes that are live.

    Args:
        intervals: (start, end, size), live from start through end; an end before the start adds
            nothing, but its time is among the changes.
    """
    change: defaultdict[int, int] = defaultdict(int)
    for start, end, size in intervals:
        change[start] += size
        change[end + 1] -= size
    return _running_sum(change)


def add_changes(parts: Iterable[Changes]) -> Changes:
    """Changes of the sum of several amounts, each 0 before its first change."""
    change: defaultdict[int, int] = defaultdict(int)
    for changes in parts:
        previous = 0
        for time, amount in changes:
            change[time] += amount - previous
            previous = amount
    return _running_sum(change)


def _running_sum(change: Mapping[int, int]) -> Changes:
    """The sum of all changes up to each time of one."""
    total = 0
    sums = []
    for time in sorted(change):
        total += change[time]
        sums.append((time, total))
    return sums


def occupied_changes(extents: Iterable[Extent]) -> Changes:
    """Changes of the number of addresses that live extents cover.

    Values that alias, such as a loop's carry or an in-place update, cover the same addresses:
    these count once. Extents without addresses are ignored. The cost grows with the extents and
    with the ends of other live extents within each; XLA keeps nearly all live extents apart.
    """
    begins: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    ends: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for low, high, start, end in extents:
        if low < high:
            begins[start].append((low, high))
            ends[end + 1].append((low, high))
    live: defaultdict[tuple[int, int], int] = defaultdict(int)
    covered = CoveredAddresses()
    changes = []
    for time in sorted(begins.keys() | ends.keys()):
        # Starts come before ends: an alias that takes over at this time changes nothing.
        for addresses in begins.get(time, ()):
            live[addresses] += 1
            if live[addresses] == 1:
                covered.add(*addresses)
        for addresses in ends.get(time, ()):
            live[addresses] -= 1
            if not live[addresses]:
                covered.remove(*addresses)
        changes.append((time, covered.total))
    return changes


class CoveredAddresses:
    """The union of address ranges that come and go.

    Attributes:
        total: number of covered addresses.
    """

    def __init__(self) -> None:
        self.total = 0
        # The ends of ranges, ascending; _depths[i] ranges cover [_bounds[i], _bounds[i + 1]).
        self._bounds: list[int] = []
        self._depths: list[int] = []

    def add(self, low: int, high: int) -> None:
        """Cover [low, high) once more."""
        first = self._bound(low)
        last = self._bound(high)
        bounds, depths = self._bounds, self._depths
        for segment in range(first, last):
            if not depths[segment]:
                self.total += bounds[segment + 1] - bounds[segment]
            depths[segment] += 1

    def remove(self, low: int, high: int) -> None:
        """Cover [low, high), which was added, once less."""
        bounds, depths = self._bounds, self._depths
        first = bisect_left(bounds, low)
        last = bisect_left(bounds, high, first)
        for segment in range(first, last):
            depths[segment] -= 1
            if not depths[segment]:
                self.total -= bounds[segment + 1] - bounds[segment]
        for bound in (last, first):
            # Nothing that is live begins or ends between two segments that are free.
            if not depths[bound] and (not bound or not depths[bound - 1]):
                del bounds[bound], depths[bound]

    def _bound(self, address: int) -> int:
        """Index of the bound at an address; divides the segment around it if there is none."""
        bounds = self._bounds
        index = bisect_left(bounds, address)
        if index == len(bounds) or bounds[index] != address:
            bounds.insert(index, address)
            self._depths.insert(index, self._depths[index - 1] if index else 0)
        return index
