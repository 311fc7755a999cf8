"""The rectangles of the map of addresses over time, and what stands for those too small to see."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# A buffer is small if a map of this many rows of pixels would not give it a whole one.
ROWS = 1000
# Small buffers are merged if they begin and end in the same cell of a grid this fine.
_CELLS = 250


@dataclass(frozen=True)
class Rectangles:
    """A rectangle per buffer that takes bytes, the large before those that may lie on them.

    row: of the table of buffers; left, right: from which position to before which; bottom, top:
    addresses; is_small: too small to see in the whole map.
    """

    row: Numbers
    left: Numbers
    right: Numbers
    bottom: Numbers
    top: Numbers
    is_small: NDArray[np.bool_]

    @property
    def area(self) -> Numbers:
        """Bytes times positions."""
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Merged:
    """Rectangles that stand for small ones of like life and place: as large as they are together.

    group: the merged rectangle of each small one, in the order of the rectangles; count and
    size_bytes: how many there are in each, and the sum of their sizes. The first `throughout`
    stand for neighbours that are there throughout, and cover exactly these.
    """

    left: Numbers
    right: Numbers
    bottom: NDArray[np.float64]
    top: NDArray[np.float64]
    group: Numbers
    count: Numbers
    size_bytes: Numbers
    throughout: int


def rectangles(buffers: pa.Table, schedule_length: int, extent_bytes: int) -> Rectangles:
    """The rectangles of `module_buffers` in a map that is `extent_bytes` high."""
    size = buffers["size_bytes"].to_numpy()
    left = buffers["start_time"].to_numpy().astype(np.int64)
    right = np.minimum(buffers["end_time"].to_numpy().astype(np.int64) + 1, schedule_length)
    row = np.flatnonzero((size > 0) & (right > left))
    row = row[np.argsort(-size[row] * (right - left)[row], kind="stable")]
    bottom = buffers["address"].to_numpy()[row]
    return Rectangles(
        row, left[row], right[row], bottom, bottom + size[row], size[row] * ROWS < extent_bytes
    )


def merged(found: Rectangles, buffers: pa.Table, schedule_length: int, extent_bytes: int) -> Merged:
    """What stands for the small rectangles.

    Neighbours that are there throughout, arguments for example, become one rectangle. Temps are
    merged if they are in one allocation and begin, end and lie near one another. Their rectangle
    has their first time, last time and lowest address, and its area is the sum of theirs.
    """
    small = np.flatnonzero(found.is_small)
    left, right = found.left[small], found.right[small]
    bottom, top = found.bottom[small], found.top[small]
    size = top - bottom
    row = found.row[small]
    categories = np.asarray(buffers["category"])
    temp = (categories == "temp")[row]
    group = np.empty(len(small), np.int64)

    time_cell = max(schedule_length // _CELLS, 1)
    byte_cell = max(extent_bytes // _CELLS, 1)
    times = schedule_length // time_cell + 1

    # Those that are there throughout: as long as the next begins where one ends.
    fixed = np.flatnonzero(~temp)
    fixed = fixed[np.argsort(bottom[fixed], kind="stable")]
    category = np.unique(categories, return_inverse=True)[1][row[fixed]]
    breaks = (
        (bottom[fixed][1:] != top[fixed][:-1])
        | (category[1:] != category[:-1])
        | (bottom[fixed][1:] // byte_cell != bottom[fixed][:-1] // byte_cell)
    )
    group[fixed] = np.concatenate([[0], np.cumsum(breaks)])[: len(fixed)]

    temps = np.flatnonzero(temp)
    allocation = np.unique(buffers["allocation_index"].to_numpy()[row[temps]], return_inverse=True)[
        1
    ]
    keys = bottom[temps] // byte_cell
    keys = (keys * times + left[temps] // time_cell) * times + right[temps] // time_cell
    keys = keys * (allocation.max(initial=0) + 1) + allocation
    of_temp = np.unique(keys, return_inverse=True)[1]
    throughout = int(group[fixed].max()) + 1 if len(fixed) else 0
    group[temps] = of_temp + throughout

    count = np.bincount(group)
    first = np.full(len(count), schedule_length, np.int64)
    last, lowest = np.zeros_like(first), np.full(len(count), np.iinfo(np.int64).max)
    sizes, areas = np.zeros_like(first), np.zeros_like(first)
    np.minimum.at(first, group, left)
    np.maximum.at(last, group, right)
    np.minimum.at(lowest, group, bottom)
    np.add.at(sizes, group, size)
    np.add.at(areas, group, size * (right - left))
    floor = lowest.astype(np.float64)
    ceiling = floor + areas / (last - first)
    return Merged(first, last, floor, ceiling, group, count, sizes, throughout)
