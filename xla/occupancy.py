"""Bytes that live values occupy over time: a sweep over their starts and ends."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
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
    these count once. Extents without addresses are ignored.
    """
    begins: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    ends: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for low, high, start, end in extents:
        if low < high:
            begins[start].append((low, high))
            ends[end + 1].append((low, high))
    live: defaultdict[tuple[int, int], int] = defaultdict(int)
    ranges = set(chain.from_iterable(begins.values()))
    covered = _CoveredAddresses(sorted(set(chain.from_iterable(ranges))))
    changes = []
    for time in sorted(begins.keys() | ends.keys()):
        # Starts come before ends: an alias that takes over at this time changes nothing.
        for addresses in begins.get(time, ()):
            live[addresses] += 1
            if live[addresses] == 1:
                covered.change(*addresses, 1)
        for addresses in ends.get(time, ()):
            live[addresses] -= 1
            if not live[addresses]:
                covered.change(*addresses, -1)
        changes.append((time, covered.total))
    return changes


class _CoveredAddresses:
    """The union of address ranges that are added and removed: a segment tree.

    Node 1 is the root; the children of node i are 2i and 2i + 1. A leaf is a segment between two
    neighbouring bounds, and a range is the union of O(log n) nodes.
    """

    def __init__(self, bounds: list[int]) -> None:
        """Begin without ranges.

        Args:
            bounds: the starts and ends of all ranges, ascending and distinct.
        """
        segments = [high - low for low, high in pairwise(bounds)]
        # A power of 2, so that all leaves have one depth; the last ones are empty.
        count = 1 << len(segments).bit_length()
        segments += [0] * (count - len(segments))
        self._leaf = {bound: count + number for number, bound in enumerate(bounds)}
        self._lengths = [0] * count + segments
        for node in range(count - 1, 0, -1):
            self._lengths[node] = self._lengths[2 * node] + self._lengths[2 * node + 1]
        # By node, the number of ranges that it is one of the parts of.
        self._depths = [0] * (2 * count)
        # By node, the addresses in it that these ranges, and those with parts below it, cover. The
        # children of leaves cover none.
        self._covered = [0] * (4 * count)

    @property
    def total(self) -> int:
        """The number of covered addresses."""
        return self._covered[1]

    def change(self, low: int, high: int, difference: int) -> None:
        """Add (1) or remove (-1) a range [low, high)."""
        left, right = self._leaf[low], self._leaf[high]
        first, last = left, right - 1
        while left < right:
            if left % 2:
                self._depths[left] += difference
                self._update(left)
                left += 1
            if right % 2:
                right -= 1
                self._depths[right] += difference
                self._update(right)
            left, right = left // 2, right // 2
        while first > 1:
            first, last = first // 2, last // 2
            self._update(first)
            if last != first:
                self._update(last)

    def _update(self, node: int) -> None:
        """Compute the covered addresses of a node from those of its children."""
        covered = self._covered
        covered[node] = (
            self._lengths[node] if self._depths[node] else covered[2 * node] + covered[2 * node + 1]
        )
