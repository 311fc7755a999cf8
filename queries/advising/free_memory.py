"""Which values XLA would put into memory that becomes free within an allocation.

XLA's buffer assignment takes the values by size, the largest first, and puts each into the
smallest allocation that is large enough and free as long as the value lives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .layout import Layout

# Values that are smaller than this part of the peak stay where they are: they make no difference.
_COUNTS = 1e-5
Times = list[tuple[int, int]]


@dataclass
class FreeMemory:
    """Bytes of an allocation that are free from a time on, but for the times that are taken."""

    size_bytes: int
    start_time: int
    taken: Times


def values_that_move(
    layout: Layout, free: Sequence[FreeMemory], freed: frozenset[int], gone: set[int]
) -> set[int]:
    """The values of temps and of freed allocations that move into the free memory.

    Values that share a place as one move together. `gone` are values that are not there.
    """
    rooms = sorted(free, key=lambda each: each.size_bytes)
    shared = layout.allocation_index[layout.is_temp | np.isin(layout.allocation_index, list(freed))]
    rows = np.flatnonzero(
        np.isin(layout.allocation, shared)
        & ~np.isin(layout.value_id, list(gone))
        & (layout.size <= max((each.size_bytes for each in rooms), default=0))
        & (layout.size > layout.peak_bytes * _COUNTS)
    )
    lives: dict[int, Times] = {}
    sizes: dict[int, int] = {}
    for own, size, start, end in zip(
        *(
            column[rows].tolist()
            for column in (layout.alias_set, layout.size, layout.start, layout.end)
        ),
        strict=True,
    ):
        lives.setdefault(own, []).append((start, end))
        sizes[own] = max(size, sizes.get(own, 0))
    moved: list[int] = []
    for own in sorted(lives, key=lambda each: (-sizes[each], min(lives[each]))):
        for room in rooms:
            if room.size_bytes >= sizes[own] and _is_free(room, lives[own]):
                room.taken.extend(lives[own])
                moved.append(own)
                break
    return set(layout.value_id[np.isin(layout.alias_set, moved)].tolist())


def values_share_allocations(layout: Layout) -> bool:
    """Whether other values lie in memory of arguments and results."""
    fixed = ~np.isin(layout.allocation, layout.allocation_index[layout.is_temp])
    both = np.stack([layout.allocation[fixed], layout.alias_set[fixed]])
    return np.unique(both, axis=1).shape[1] > len(np.unique(both[0]))


def _is_free(room: FreeMemory, times: Times) -> bool:
    """Whether nothing else is there at these times."""
    return all(
        start >= room.start_time
        and all(end < since or until < start for since, until in room.taken)
        for start, end in times
    )
