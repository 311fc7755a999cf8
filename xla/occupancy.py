"""How full each memory space is over time: live bytes, occupied bytes, peak.

An *extent* is the address range of a value within its allocation while the value is live: a
rectangle in address and time. `occupied` is the measure of the union of the extents at a
time, not their sum, because values that alias (an in-place update, a loop's carry) occupy
the same bytes. XLA's packing keeps nearly all other extents apart, so cutting the extents at
each other's bounds makes few pieces. Extents that would be cut into many (VMEM of
`tpu/llama-v5e`) are swept instead, by halving the time.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .runs import joined, starts_of

Ints = npt.NDArray[np.int64]

# Cut extents into pieces if there are at most this many pieces for each extent.
_FEW_PIECES = 8
# The cells of a table that is painted at once.
_CELLS = 30_000


@dataclass(frozen=True)
class Extents:
    """Address ranges [low, high) in one allocation, live from start through end."""

    low: Ints
    high: Ints
    start: Ints
    end: Ints


def changes(start: Ints, end: Ints, size: Ints) -> tuple[Ints, Ints]:
    """The times when the sum of `size` over live extents changes, and the new sums.

    Both ends of a live range are inclusive, so the extent is gone at `end` + 1.
    """
    return accumulated(np.concatenate([start, end + 1]), np.concatenate([size, -size]))


def accumulated(times: Ints, deltas: Ints) -> tuple[Ints, Ints]:
    """The distinct times in order, and the sum of all deltas up to each time."""
    order = np.argsort(times)
    times, sums = times[order], np.cumsum(deltas[order])
    last = np.append(times[1:] != times[:-1], True)[: len(times)]
    return times[last], sums[last]


def occupied_changes(extents: Extents) -> tuple[Ints, Ints]:
    """The times when the measure of the extents' union may change, and the new measures."""
    count = len(extents.start)
    bounds, number = np.unique(np.concatenate([extents.low, extents.high]), return_inverse=True)
    # What lies between two bounds is covered or free as a whole: a range.
    low, high = number[:count], number[count:]
    if int((high - low).sum()) <= _FEW_PIECES * count:
        return _changes_of_pieces(extents, low, high, np.diff(bounds))
    times, time = np.unique(np.concatenate([extents.start, extents.end + 1]), return_inverse=True)
    measure = np.zeros(len(times), np.int64)
    _sweep(measure, low, high, time[:count], time[count:], np.diff(bounds))
    return times, measure


def _changes_of_pieces(extents: Extents, low: Ints, high: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The same, where extent i covers the ranges `low[i]` up to `high[i]` of these sizes.

    Cuts the extents into ranges, and joins pieces of one range whose lives overlap or touch.
    """
    count = high - low
    piece, owner = joined(low, count), np.repeat(np.arange(len(low)), count)
    order = np.argsort(piece * (int(extents.start.max(initial=0)) + 1) + extents.start[owner])
    piece, owner = piece[order], owner[order]
    start, end = extents.start[owner], extents.end[owner]
    if not len(piece):
        return changes(start, end, piece)
    # The latest end so far of each range. Each range is lifted above the previous one, so that
    # one running maximum serves all ranges.
    lift = piece * (int(end.max()) + 2)
    latest = np.maximum.accumulate(end + lift) - lift
    begins = np.append(True, (piece[1:] != piece[:-1]) | (start[1:] > latest[:-1] + 1))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(piece)) - 1
    return changes(start[first], latest[last], sizes[piece[first]])


def _sweep(measure: Ints, low: Ints, high: Ints, start: Ints, stop: Ints, sizes: Ints) -> None:
    """Add to `measure` the measure of the union at each of its times.

    Each extent covers the ranges `low` up to `high`, whose `sizes` are given, at the times
    `start` up to `stop`. The times are halved again and again. What an extent covers in all of
    a half counts once and goes away, so that a half keeps only what begins or ends within it.
    """
    length = len(measure)
    if length * len(sizes) <= _CELLS:
        measure += _painted(length, low, high, start, stop, sizes)
        return
    for begin, end in ((0, length // 2), (length // 2, length)):
        whole = (start <= begin) & (stop >= end)
        covered = _covering(low[whole], high[whole], len(sizes)) > 0
        measure[begin:end] += sizes[covered].sum()
        part = np.flatnonzero((start < end) & (stop > begin) & ~whole)
        if not len(part):
            continue
        is_bound = np.zeros(len(sizes) + 1, bool)
        is_bound[low[part]] = True
        is_bound[high[part]] = True
        number = np.cumsum(is_bound) - 1
        free = starts_of(np.where(covered, 0, sizes))
        _sweep(
            measure[begin:end],
            number[low[part]],
            number[high[part]],
            np.maximum(start[part], begin) - begin,
            np.minimum(stop[part], end) - begin,
            np.diff(free[is_bound]),
        )


def _covering(low: Ints, high: Ints, count: int) -> Ints:
    """How many of the runs [low, high) hold each number below `count`."""
    steps = np.bincount(low, minlength=count + 1) - np.bincount(high, minlength=count + 1)
    return np.cumsum(steps)[:-1]


def _painted(length: int, low: Ints, high: Ints, start: Ints, stop: Ints, sizes: Ints) -> Ints:
    """The measure at each of a few times: paints the extents on a table of times and ranges."""
    width = len(sizes) + 1
    cells = (length + 1) * width
    begins = np.concatenate([start * width + low, stop * width + high])
    ends = np.concatenate([start * width + high, stop * width + low])
    steps = np.bincount(begins, minlength=cells) - np.bincount(ends, minlength=cells)
    covering = steps.reshape(length + 1, width)[:-1].cumsum(axis=0).cumsum(axis=1)
    found: Ints = (covering[:, :-1] > 0) @ sizes
    return found
