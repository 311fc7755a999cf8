"""How full each memory space is over time: live bytes, occupied bytes, peak.

An *extent* is the address range of a value within its allocation while the value is live: a
rectangle in address and time. `occupied` is the measure of the union of the extents at a
time, not their sum, because values that alias (an in-place update, a loop's carry) occupy
the same bytes. XLA's packing keeps all other extents apart, so merging equal address ranges
is nearly all of the work. Extents that still overlap (VMEM of `tpu/llama-v5e`) are cut into
pieces first.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# The extents compared with the live ones at once, and the cells of such a comparison.
_BLOCK = 256
_CELLS = 4_000_000


@dataclass(frozen=True)
class Extents:
    """Address ranges [low, high) in an allocation, live from start through end."""

    allocation: Ints
    low: Ints
    high: Ints
    start: Ints
    end: Ints

    def take(self, index: Ints | Mask) -> "Extents":
        """The chosen extents."""
        return Extents(
            self.allocation[index],
            self.low[index],
            self.high[index],
            self.start[index],
            self.end[index],
        )


def changes(start: Ints, end: Ints, size: Ints) -> tuple[Ints, Ints]:
    """The times when the sum of `size` over live extents changes, and the new sums.

    Both ends of a live range are inclusive, so the extent is gone at `end` + 1.
    """
    return accumulated(np.concatenate([start, end + 1]), np.concatenate([size, -size]))


def accumulated(times: Ints, deltas: Ints) -> tuple[Ints, Ints]:
    """The distinct times in order, and the sum of all deltas up to each time."""
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(deltas[order])
    last = np.append(times[1:] != times[:-1], True)[: len(times)]
    return times[last], sums[last]


def occupied_changes(extents: Extents) -> tuple[Ints, Ints]:
    """The times when the measure of the extents' union changes, and the new measures."""
    merged = _merge_equal_ranges(extents)
    overlapping = _overlapping(merged)
    pieces = [merged.take(~overlapping)]
    rest = merged.take(overlapping)
    pieces += [
        _cut_apart(rest.take(rest.allocation == allocation))
        for allocation in np.unique(rest.allocation)
    ]
    start = np.concatenate([piece.start for piece in pieces])
    end = np.concatenate([piece.end for piece in pieces])
    size = np.concatenate([piece.high - piece.low for piece in pieces])
    return changes(start, end, size)


def _merge_equal_ranges(extents: Extents) -> Extents:
    """Merge extents of the same address range whose lives overlap or touch."""
    if not len(extents.start):
        return extents
    order = np.lexsort((extents.start, extents.high, extents.low, extents.allocation))
    e = extents.take(order)
    same = (
        (e.allocation[1:] == e.allocation[:-1])
        & (e.low[1:] == e.low[:-1])
        & (e.high[1:] == e.high[:-1])
    )
    group = np.concatenate([[0], np.cumsum(~same)])
    # The latest end so far within the group. Each group is lifted above the previous one, so
    # that one running maximum serves all groups.
    lift = group * (int(e.end.max()) + 2)
    latest = np.maximum.accumulate(e.end + lift) - lift
    begins = np.concatenate([[True], ~same | (e.start[1:] > latest[:-1] + 1)])
    first = np.flatnonzero(begins)
    last = np.concatenate([first[1:], [len(begins)]]) - 1
    merged = e.take(first)
    return Extents(merged.allocation, merged.low, merged.high, merged.start, latest[last])


def _overlapping(extents: Extents) -> Mask:
    """Which extents share a byte with another extent at some time."""
    order = np.argsort(extents.start, kind="stable")
    e = extents.take(order)
    found = np.zeros(len(order), bool)
    for begin in range(0, len(order), _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, len(order)))
        # Only earlier extents that are still live can overlap with the block's extents.
        alive = np.flatnonzero(e.end[: block[-1] + 1] >= e.start[begin])
        for some in np.array_split(block, 1 + len(block) * len(alive) // _CELLS):
            a, b = some[:, None], alive[None, :]
            pair = (
                (e.low[a] < e.high[b])
                & (e.low[b] < e.high[a])
                & (e.end[b] >= e.start[a])
                & (e.allocation[a] == e.allocation[b])
                & (b < a)
            )
            found[some] |= pair.any(axis=1)
            found[alive] |= pair.any(axis=0)
    mask = np.empty_like(found)
    mask[order] = found
    return mask


def _cut_apart(extents: Extents) -> Extents:
    """The union of one allocation's extents as extents that do not overlap.

    Cuts every extent at all bounds within the extent, then merges pieces of equal range.
    """
    bounds = np.unique(np.concatenate([extents.low, extents.high]))
    first = np.searchsorted(bounds, extents.low)
    stop = np.searchsorted(bounds, extents.high)
    step = max(1, _CELLS // max(1, len(first)))
    pieces = []
    for block in range(0, len(bounds) - 1, step):
        low = np.maximum(first, block)
        count = np.maximum(np.minimum(stop, block + step) - low, 0)
        owner = np.repeat(np.arange(len(first)), count)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        segment = low[owner] + offset
        cut = Extents(
            extents.allocation[owner],
            bounds[segment],
            bounds[segment + 1],
            extents.start[owner],
            extents.end[owner],
        )
        pieces.append(_merge_equal_ranges(cut))
    return Extents(
        *(
            np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("allocation", "low", "high", "start", "end")
        )
    )
