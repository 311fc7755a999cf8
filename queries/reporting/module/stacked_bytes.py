"""What fills a memory space at every time, summed by pass or category, each byte counted once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....schema.stores.base import Store
from ...catalogue import statement

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """What buffers count for over time: a row of `buffers` from `start` to before `end`."""

    row: Numbers
    start: Numbers
    end: Numbers
    counted_bytes: Numbers


@dataclass(frozen=True)
class Stacks:
    """Bytes by name over time: `sums[name, step]` from `times[step]` on.

    The last step is the end of the schedule, where all sums are 0.
    """

    names: list[str]
    times: Numbers
    sums: Numbers


def counted_pieces(
    store: Store, module_id: int, memory_space: int, buffers: pa.Table, schedule_length: int
) -> Pieces:
    """What each buffer of `module_buffers` counts for at which times.

    The bytes that aliased values share count for the first in address order, as in
    `memhouse buffers`: at every time the pieces add up to what is occupied.
    """
    offset = buffers["offset_bytes"].to_numpy()
    size = buffers["size_bytes"].to_numpy()
    start = buffers["start_time"].to_numpy().astype(np.int64)
    end = np.minimum(buffers["end_time"].to_numpy().astype(np.int64) + 1, schedule_length)
    pairs = store.rows(statement("report_overlaps"), [module_id, memory_space])
    temps = np.flatnonzero(np.asarray(buffers["category"]) == "temp")
    ids = buffers["value_id"].to_numpy()[temps]
    order = np.argsort(ids)
    first, second = (
        temps[order[np.searchsorted(ids, pairs[name].to_numpy(), sorter=order)]]
        for name in ("earlier_value_id", "value_id")
    )
    alone = np.ones(len(buffers), bool)
    alone[second] = False
    alone = np.flatnonzero(alone)
    shared = np.unique(second)
    # The life of a value that shares bytes, cut wherever one that it shares with begins or ends.
    from_time = np.maximum(start[first], start[second])
    to_time = np.minimum(end[first], end[second])
    width = schedule_length + 1
    cuts = np.unique(
        np.concatenate(
            [
                shared * width + start[shared],
                shared * width + end[shared],
                second * width + from_time,
                second * width + to_time,
            ]
        )
    )
    row, time = np.divmod(cuts, width)
    covered = offset[row]
    lowest = np.searchsorted(cuts, second * width + from_time)
    lengths = np.searchsorted(cuts, second * width + to_time) - lowest
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    np.maximum.at(
        covered, np.repeat(lowest, lengths) + within, np.repeat((offset + size)[first], lengths)
    )
    counted = np.maximum((offset + size)[row] - covered, 0)
    same = np.flatnonzero(row[:-1] == row[1:])
    return Pieces(
        np.concatenate([alone, row[same]]),
        np.concatenate([start[alone], time[same]]),
        np.concatenate([end[alone], time[same + 1]]),
        np.concatenate([size[alone], counted[same]]),
    )


def stacked(pieces: Pieces, codes: Numbers, names: list[str]) -> Stacks:
    """The pieces summed by name: `codes` are the places in `names` of the buffers."""
    times, places = np.unique(np.concatenate([pieces.start, pieces.end]), return_inverse=True)
    begins, ends = np.split(places.reshape(-1), 2)
    changes = np.zeros((len(names), len(times)), np.int64)
    code = codes[pieces.row]
    np.add.at(changes, (code, begins), pieces.counted_bytes)
    np.subtract.at(changes, (code, ends), pieces.counted_bytes)
    differs = np.any(changes != 0, axis=0, keepdims=True)[0]
    # The first and the last step stay, so that the picture spans the schedule.
    differs[[0, -1]] = True
    return Stacks(names, times[differs], changes.cumsum(axis=1)[:, differs])
