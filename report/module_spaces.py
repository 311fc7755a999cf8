"""The memory spaces and buffers of a module, as the parts of a report share them."""

from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..queries.catalogue import statement
from ..schema.errors import WarehouseError
from ..schema.store import Store

# The memory spaces of a module: what is told of each in a report.

_MAIN = {"tpu": "HBM", "gpu": "device memory"}


@dataclass(frozen=True)
class Space:
    """A memory space. Sizes and times that are not known are None.

    name: what people call it; peak_bytes, peak_time: how full it gets, and when first;
    reserved_bytes: the sum of its allocations; device_memory_bytes: what a program may use of
    the device, of the main memory only; schedule_length: how many positions the schedule has.
    """

    memory_space: int
    name: str
    peak_bytes: int | None
    peak_time: int | None
    reserved_bytes: int | None
    device_memory_bytes: int | None
    schedule_length: int | None
    is_estimated: bool


def module_spaces(store: Store, module_id: int, dump_id: int) -> dict[int, Space]:
    """The memory spaces of a module by number; the dump says which device it is for."""
    found = store.rows(statement("report.spaces"), [module_id, dump_id]).to_pylist()
    return {
        row["memory_space"]: Space(
            row["memory_space"],
            _name(row["memory_space"], row["space_name"], row["platform"]),
            row["peak_bytes"],
            row["peak_time"],
            row["reserved_bytes"],
            row["device_memory_bytes"],
            row["schedule_length"],
            row["origin"] == "estimated",
        )
        for row in found
    }


def main_memory(platform: str | None) -> str:
    """What people call memory space 0 of a platform."""
    return _MAIN.get(platform or "", "memory")


def _name(number: int, space_name: str | None, platform: str | None) -> str:
    if number == 0:
        return main_memory(platform)
    return space_name or f"memory space {number}"


# All buffers of a module, one table that the parts of a report share.


def module_buffers(store: Store, module_id: int, memory_space: int = 0) -> pa.Table:
    """What takes memory of its own in a memory space at some time, in address order.

    A row per allocation that is there throughout, and per value in a temp allocation. Columns:

    value_id: the value, see `values`; null if nothing says what an allocation is for
    allocation_index, allocation_bytes: the allocation and its size
    category: argument, output (that is not an argument), constant, temp or other
    size_bytes, padding_bytes: what the buffer takes, and what of it is padding
    peak_counted_bytes: the buffer's part of the peak; these add up, as in `memhouse buffers`
    address: where the buffer begins if all allocations are put on top of one another: arguments,
    outputs, constants, others, then the temps
    offset_bytes: where in its allocation the buffer begins
    start_time, end_time: its life, both inclusive; end_time is schedule_length if it lives on
    last_use_time: the last time that an instruction reads it; null if none does
    value: the instruction that makes it, with the part of the result: `fusion.3{1}`
    shape: without layout; element_type: for example bf16, null for a tuple
    op_name, source (file:line), stack_frame_id, scope, operation: of what it holds
    pass, role: what it is for, see `values`
    origin_rule: how that was found; is_guess: that is a guess
    """
    return store.rows(statement("report.buffers"), [module_id, memory_space])


# What fills a memory space at every time, summed by pass or category, each byte counted once.

Numbers = NDArray[np.int64]

# Real packings have few: more would take gigabytes.
_MOST_PAIRS = 5_000_000


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


def counted_pieces(buffers: pa.Table, schedule_length: int) -> Pieces:
    """What each buffer of `module_buffers` counts for at which times.

    The bytes that aliased values share count for the first in address order, as in
    `memhouse buffers`: at every time the pieces add up to what is occupied.
    Raises WarehouseError if too many buffers share bytes with each other.
    """
    offset = buffers["offset_bytes"].to_numpy()
    size = buffers["size_bytes"].to_numpy()
    start = buffers["start_time"].to_numpy().astype(np.int64)
    end = np.minimum(buffers["end_time"].to_numpy().astype(np.int64) + 1, schedule_length)
    temps = np.flatnonzero(np.asarray(buffers["category"]) == "temp")
    first, second = _overlaps(buffers, temps)
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


def _overlaps(buffers: pa.Table, temps: Numbers) -> tuple[Numbers, Numbers]:
    """The pairs of temps that share bytes while both are live, the first in address order first.

    A sweep over time. Those that are live are kept by size, so that only those are looked at
    that can reach a place. Raises WarehouseError if there are too many pairs.
    """
    columns = ("address", "size_bytes", "start_time", "end_time")
    low, size, start, end = (buffers[name].to_numpy()[temps] for name in columns)
    # Of two at one address the larger is first, of equal ones the value of the lower number.
    ranking = np.lexsort((buffers["value_id"].to_numpy()[temps], -size, low))
    rank = np.empty(len(temps), np.int64)
    rank[ranking] = np.arange(len(temps))
    lows, sizes, ranks = low.tolist(), size.tolist(), rank.tolist()
    begins = np.argsort(start, kind="stable")
    ends = np.argsort(end, kind="stable").tolist()
    gone = np.searchsorted(end[ends], start[begins]).tolist()
    live: dict[int, list[tuple[int, int]]] = {}
    first: list[int] = []
    second: list[int] = []
    done = 0
    for row, until in zip(begins.tolist(), gone, strict=True):
        for other in ends[done:until]:
            held = live[sizes[other].bit_length()]
            del held[bisect_left(held, (lows[other], other))]
        done = until
        beyond = lows[row] + sizes[row]
        for bits, held in live.items():
            at = bisect_left(held, (lows[row] - (1 << bits), 0))
            while at < len(held) and held[at][0] <= beyond:
                other = held[at][1]
                at += 1
                a, b = (other, row) if ranks[other] < ranks[row] else (row, other)
                if lows[b] < lows[a] + sizes[a]:
                    first.append(a)
                    second.append(b)
            if len(first) > _MOST_PAIRS:
                raise WarehouseError(
                    f"more than {_MOST_PAIRS:,} pairs of values of this module share bytes: "
                    "no timeline can be drawn of it, see `memhouse buffers`"
                )
        insort(live.setdefault(sizes[row].bit_length(), []), (lows[row], row))
    return temps[np.array(first, np.int64)], temps[np.array(second, np.int64)]


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
