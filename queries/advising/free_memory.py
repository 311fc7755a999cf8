"""Which values XLA would put into memory that becomes free within an allocation.

XLA's buffer assignment takes the values by size, the largest first, and puts each into the
smallest allocation that is large enough and free as long as the value lives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .space_layout import Layout

# Values that are smaller than this part of the peak stay where they are: they make no difference.
_COUNTS = 1e-5
Times = list[tuple[int, int]]


@dataclass(frozen=True)
class FreeMemory:
    """Bytes of an allocation that are free from start through end, but for times in between."""

    size_bytes: int
    start_time: int
    end_time: int
    taken: Times


def values_that_move(
    layout: Layout, free: Sequence[FreeMemory], freed: frozenset[int], gone: set[int]
) -> set[int]:
    """The values of temps and of freed allocations that move into the free memory.

    Values that share a place as one move together. `gone` are values that are not there.
    """
    rooms = _Rooms(free)
    lives: dict[int, Times] = {}
    sizes: dict[int, int] = {}
    shared = layout.allocation_index[layout.is_temp | np.isin(layout.allocation_index, list(freed))]
    rows = np.flatnonzero(
        np.isin(layout.allocation, shared)
        & ~np.isin(layout.value_id, list(gone))
        & (layout.size <= max((each.size_bytes for each in free), default=0))
        & (layout.size > layout.peak_bytes * _COUNTS)
    )
    columns = (layout.alias_set, layout.size, layout.start, layout.end)
    for own, size, start, end in zip(*(each[rows].tolist() for each in columns), strict=True):
        lives.setdefault(own, []).append((start, end))
        sizes[own] = max(size, sizes.get(own, 0))
    by_size = sorted(lives, key=lambda each: (-sizes[each], min(lives[each])))
    moved = [own for own in by_size if rooms.take(sizes[own], lives[own])]
    return set(layout.value_id[np.isin(layout.alias_set, moved)].tolist())


def values_share_allocations(layout: Layout) -> bool:
    """Whether other values lie in memory of arguments and results."""
    fixed = ~np.isin(layout.allocation, layout.allocation_index[layout.is_temp])
    both = np.stack([layout.allocation[fixed], layout.alias_set[fixed]])
    return bool(np.unique(both, axis=1).shape[1] > len(np.unique(both[0])))


class _Rooms:
    """Free memory, the smallest first."""

    def __init__(self, free: Sequence[FreeMemory]) -> None:
        rooms = sorted(free, key=lambda each: each.size_bytes)
        self._taken = [list(each.taken) for each in rooms]
        self._sizes, self._starts, self._ends = (
            np.array(
                [(each.size_bytes, each.start_time, each.end_time) for each in rooms], np.int64
            )
            .reshape(-1, 3)
            .T
        )
        # What is taken in between lies within these times.
        within = [
            [(start, end) for start, end in each.taken if start <= each.end_time] for each in rooms
        ]
        self._first = np.array([min((a for a, _ in each), default=1 << 62) for each in within])
        self._last = np.array([max((b for _, b in each), default=-1) for each in within])
        self._has_gaps = np.array([len(each) > 1 for each in within], bool)

    def take(self, size: int, times: Times) -> bool:
        """Take the smallest room that is free at these times; whether there is one."""
        first = min(start for start, _ in times)
        last = max(end for _, end in times)
        is_clear = (last < self._first) | (self._last < first)
        may = is_clear | self._has_gaps | (len(times) > 1)
        may &= (self._sizes >= size) & (self._starts <= first) & (last <= self._ends)
        for at in np.flatnonzero(may).tolist():
            if is_clear[at] or _are_apart(self._taken[at], times):
                self._has_gaps[at] |= self._last[at] >= 0 or len(times) > 1
                self._taken[at] += times
                self._first[at] = min(self._first[at], first)
                self._last[at] = max(self._last[at], last)
                return True
        return False


def _are_apart(some: Times, others: Times) -> bool:
    return all(end < since or until < start for start, end in others for since, until in some)
