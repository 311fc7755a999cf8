"""What the peak would be: the program's own lives and places, replayed with changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...xla.occupancy import Extents, Ints, changes, occupied_changes
from .asked_program import Layout

# Which values XLA would put into memory that becomes free within an allocation.
#
# XLA's buffer assignment takes the values by size, the largest first, and puts each into the
# smallest allocation that is large enough and free as long as the value lives.

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


# What the peak would be: the program's own lives and places, replayed with changes.
#
# A value that a change does not touch stays where XLA put it, and shares what it shares. A value
# that is changed gets a place of its own. Several changes are replayed together, because each
# lowers the peak only until another moment is the fullest.


@dataclass(frozen=True)
class Piece:
    """Bytes that are live from start through end; pieces of one place share it."""

    place: int
    size_bytes: int
    start_time: int
    end_time: int


@dataclass(frozen=True)
class Change:
    """What a replay does otherwise. Values and allocations by their numbers.

    gone: values that are not there, or that are there otherwise: then as `pieces`.
    freed: allocations, not temps, that are not there. Values that only borrowed their room move
    to the temp.
    pieces: what is live instead, each place once, at its largest piece at a time.
    room: pieces of free memory within allocations, which temps may take.
    """

    gone: frozenset[int] = frozenset()
    freed: frozenset[int] = frozenset()
    pieces: tuple[Piece, ...] = ()
    room: tuple[Piece, ...] = ()

    def __or__(self, other: "Change") -> "Change":
        """Both changes; their places stay apart."""
        first = 1 + max((piece.place for piece in (*self.pieces, *self.room)), default=-1)
        moved = [
            tuple(
                Piece(first + piece.place, piece.size_bytes, piece.start_time, piece.end_time)
                for piece in pieces
            )
            for pieces in (other.pieces, other.room)
        ]
        return Change(
            self.gone | other.gone,
            self.freed | other.freed,
            self.pieces + moved[0],
            self.room + moved[1],
        )


@dataclass(frozen=True)
class Replayed:
    """A peak: bytes, and the first time of it."""

    peak_bytes: int
    peak_time: int


def together(changes: Iterable[Change]) -> Change:
    """All changes at once."""
    return reduce(Change.__or__, changes, Change())


def replay(layout: Layout, change: Change) -> Replayed:
    """The peak with the change made."""
    is_freed = np.isin(layout.allocation_index, list(change.freed))
    fixed = int(layout.allocation_bytes[~layout.is_temp & ~is_freed].sum())
    shared = layout.allocation_index[layout.is_temp | is_freed]
    bases = np.concatenate([[0], np.cumsum(layout.allocation_bytes[layout.is_temp | is_freed])])
    stays = np.isin(layout.allocation, shared) & ~np.isin(layout.value_id, list(change.gone))
    base = bases[np.searchsorted(shared, layout.allocation[stays])]
    low = base + layout.offset[stays]
    places, sizes, starts, ends = _columns(change.pieces)
    own = int(bases[-1]) + _offsets(places, sizes)
    times, used = occupied_changes(
        Extents(
            np.concatenate([low, own]),
            np.concatenate([low + layout.size[stays], own + sizes]),
            np.concatenate([layout.start[stays], starts]),
            np.concatenate([layout.end[stays], ends]),
        )
    )
    if change.room:
        _, rooms, room_starts, room_ends = _columns(change.room)
        times, used = _less(times, used, *changes(room_starts, room_ends, rooms))
    within = times < layout.schedule_length
    times, used = times[within], used[within]
    if not len(used):
        return Replayed(fixed, 0)
    fullest = int(np.argmax(used))
    return Replayed(fixed + int(used[fullest]), int(times[fullest]))


def saving(layout: Layout, change: Change) -> int:
    """By how many bytes the peak falls with the change made; less than 0 if it grows."""
    return replay(layout, Change()).peak_bytes - replay(layout, change).peak_bytes


def _columns(pieces: Sequence[Piece]) -> tuple[Ints, Ints, Ints, Ints]:
    rows = np.array(
        [(each.place, each.size_bytes, each.start_time, each.end_time) for each in pieces],
        np.int64,
    ).reshape(-1, 4)
    return rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]


def _offsets(places: Ints, sizes: Ints) -> Ints:
    """Where each place begins, if each is as large as its largest piece."""
    largest = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
    np.maximum.at(largest, places, sizes)
    return (np.cumsum(largest) - largest)[places]


def _less(times: Ints, used: Ints, room_times: Ints, room: Ints) -> tuple[Ints, Ints]:
    """What is used beyond the room, which is never less than nothing."""
    both = np.union1d(times, room_times)
    beyond = _at(times, used, both) - _at(room_times, room, both)
    return both, np.maximum(beyond, 0)


def _at(times: Ints, values: Ints, wanted: Ints) -> Ints:
    """The value that holds at each wanted time; 0 before the first."""
    place = np.searchsorted(times, wanted, side="right") - 1
    return np.where(place >= 0, values[np.maximum(place, 0)], 0)
