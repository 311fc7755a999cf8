"""A module's figures: `occupancy` and `module_memory`, as the tables' comments define them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .occupancy import Extents, Ints, accumulated, changes, occupied_changes
from .runs import rows_of

_UNKNOWN = -1

Columns = dict[str, npt.NDArray[np.int64]]


def memory_tables(
    allocations: pa.Table,
    values: pa.Table,
    live_ranges: pa.Table | None,
    schedule: pa.Table | None,
    *,
    complete: bool,
    estimated: bool = False,
) -> tuple[dict[str, pa.Table], list[dict[str, object]]]:
    """The tables `allocations` and `occupancy`, and the rows of `module_memory`.

    Without live ranges and schedule the peak is unknown: its figures are null and occupancy
    has no rows. If the parts are not `complete`, all figures are null. If they are `estimated`,
    the figures that XLA's packing decides are null, and a temp has its live bound as its size.
    """
    spaces = np.unique(allocations["memory_space"].to_numpy())
    rows: list[dict[str, object]] = []
    steps = []
    lives = _lives(allocations, values, live_ranges) if live_ranges is not None else None
    unions = _temp_unions(allocations, lives) if lives is not None else {}
    for space in spaces.tolist():
        within = allocations.filter(pc.equal(allocations["memory_space"], space))
        row: dict[str, object] = {"memory_space": space}
        if complete:
            row |= _allocation_figures(within)
        if lives is not None and schedule is not None and len(schedule):
            step = _occupancy(space, within, lives, unions, len(schedule))
            steps.append(step)
            row |= _peak_figures(row, step, within, lives, schedule)
        rows.append(row)
    if lives is not None and schedule is not None:
        allocations = _temp_peaks(allocations, unions, len(schedule))
        _add_bounds(rows, allocations)
    if estimated:
        for row in rows:
            row.update(dict.fromkeys(_DECIDED_BY_PACKING))
        allocations = _bounded(allocations)
    tables = {"allocations": allocations}
    if steps:
        tables["occupancy"] = pa.concat_tables(steps)
    return tables, rows


def _allocation_figures(allocations: pa.Table) -> dict[str, object]:
    is_parameter, live_out = allocations["is_parameter"], allocations["maybe_live_out"]
    chosen = {
        "argument": is_parameter,
        "output": live_out,
        "alias": pc.and_(is_parameter, live_out),
        "constant": allocations["is_constant"],
        "thread_local": allocations["is_thread_local"],
        "temp": allocations["is_temp"],
    }
    size = allocations["size_bytes"]
    figures: dict[str, object] = {
        f"{figure}_bytes": pc.sum(size.filter(mask)).as_py() or 0 for figure, mask in chosen.items()
    }
    return {"total_bytes": pc.sum(size).as_py() or 0, **figures}


def _lives(allocations: pa.Table, values: pa.Table, live_ranges: pa.Table) -> Columns:
    """The values outside thread-local memory, with their addresses and live ranges.

    Some constants have no live range (`tpu/decode-v5e`, constant.200). These get an empty
    live range, which adds nothing to any sum.
    """
    numbers = ["value_id", "allocation_index", "offset_bytes", "size_bytes", "logical_bytes"]
    shared = allocations.filter(pc.invert(allocations["is_thread_local"]))
    index = shared["allocation_index"].combine_chunks()
    shown = allocations["value_id"].drop_null().combine_chunks()
    value = values.select(numbers)
    at = pc.index_in(value["allocation_index"], value_set=index).combine_chunks()
    value, at = value.filter(pc.is_valid(at)), at.drop_null()
    allocation = shared.select(["memory_space", "is_temp"]).take(at)
    life = live_ranges.take(rows_of(live_ranges["value_id"], value["value_id"]))
    offset = value["offset_bytes"].to_numpy()
    return {
        "space": allocation["memory_space"].to_numpy(),
        "is_temp": allocation["is_temp"].to_numpy(),
        "is_shown": pc.is_in(value["value_id"], value_set=shown).to_numpy(),
        "allocation": value["allocation_index"].to_numpy().astype(np.int64),
        "low": offset,
        "high": offset + value["size_bytes"].to_numpy(),
        "logical": pc.fill_null(value["logical_bytes"], _UNKNOWN).to_numpy(),
        "start": pc.fill_null(life["start_time"], 0).to_numpy().astype(np.int64),
        "end": pc.fill_null(life["end_time"], -1).to_numpy().astype(np.int64),
        "value_id": value["value_id"].to_numpy(),
    }


def _temp_unions(allocations: pa.Table, lives: Columns) -> dict[int, tuple[Ints, Ints]]:
    """For each temp allocation: when its occupied bytes change, and the new bytes."""
    names = ("low", "high", "start", "end")
    unions = {}
    for index in allocations["allocation_index"].filter(allocations["is_temp"]).to_pylist():
        chosen = lives["allocation"] == index
        unions[index] = occupied_changes(Extents(*(lives[name][chosen] for name in names)))
    return unions


def _occupancy(
    space: int,
    allocations: pa.Table,
    lives: Columns,
    unions: dict[int, tuple[Ints, Ints]],
    length: int,
) -> pa.Table:
    """The space's rows of `occupancy`: one for each change within the schedule."""
    here = lives["space"] == space
    size = lives["high"] - lives["low"]
    live_times, live = changes(lives["start"][here], lives["end"][here], size[here])
    temps = allocations["allocation_index"].filter(allocations["is_temp"]).to_pylist()
    steps = [unions[index] for index in temps]
    none = np.array([], np.int64)
    union_times, union = accumulated(
        np.concatenate([none, *(times for times, _ in steps)]),
        np.concatenate([none, *(np.diff(sums, prepend=0) for _, sums in steps)]),
    )
    times = np.unique(np.concatenate([[0], live_times, union_times]))
    times = times[times < length]
    occupied = _held(union_times, union, times) + _always_occupied(allocations)
    live_bytes = _held(live_times, live, times)
    changed = np.ones(len(times), bool)
    changed[1:] = (np.diff(live_bytes) != 0) | (np.diff(occupied) != 0)
    count = int(changed.sum())
    return pa.table(
        {
            "memory_space": pa.array(np.full(count, space, np.int32)),
            "start_time": pa.array(times[changed].astype(np.int32)),
            "live_bytes": pa.array(live_bytes[changed]),
            "occupied_bytes": pa.array(occupied[changed]),
        }
    )


_DECIDED_BY_PACKING = (
    "total_bytes",
    "temp_bytes",
    "thread_local_bytes",
    "fragmentation_bytes",
    "fragmentation",
    "packing_bytes",
)


def _add_bounds(rows: list[dict[str, object]], allocations: pa.Table) -> None:
    """Add to each space's row what its temps hold at their fullest, and what packing adds."""
    temps = allocations.filter(allocations["is_temp"])
    for row in rows:
        here = temps.filter(pc.equal(temps["memory_space"], row["memory_space"]))
        bound = pc.sum(here["peak_bytes"]).as_py() or 0
        size = pc.sum(here["size_bytes"]).as_py() or 0
        row |= {"live_bound_bytes": bound, "packing_bytes": size - bound}


def _bounded(allocations: pa.Table) -> pa.Table:
    """The allocations with the live bound as the size of each temp."""
    sizes = pc.if_else(allocations["is_temp"], allocations["peak_bytes"], allocations["size_bytes"])
    at = allocations.schema.get_field_index("size_bytes")
    return allocations.set_column(at, "size_bytes", pc.fill_null(sizes, 0))


def _temp_peaks(
    allocations: pa.Table, unions: dict[int, tuple[Ints, Ints]], length: int
) -> pa.Table:
    """The allocations, with peak_bytes and peak_time for temp allocations."""
    peaks: dict[int, tuple[int, int]] = {}
    for index, (times, union) in unions.items():
        union = union[times < length]
        if len(union):
            peak = int(np.argmax(union))
            peaks[index] = (int(union[peak]), int(times[peak]))
    found = [
        peaks.get(index, (None, None)) for index in allocations["allocation_index"].to_pylist()
    ]
    return allocations.append_column(
        "peak_bytes", pa.array([bytes_ for bytes_, _ in found], pa.int64())
    ).append_column("peak_time", pa.array([time for _, time in found], pa.int32()))


def _held(times: Ints, sums: Ints, at: Ints) -> Ints:
    """The sum at each time: the sum after the last change so far, 0 before the first."""
    return np.concatenate([[0], sums])[np.searchsorted(times, at, side="right")]


def _always_occupied(allocations: pa.Table) -> int:
    """Bytes of the allocations that are neither temp nor thread-local."""
    shared = pc.or_(allocations["is_temp"], allocations["is_thread_local"])
    return int(pc.sum(allocations["size_bytes"].filter(pc.invert(shared))).as_py() or 0)


def _peak_figures(
    row: dict[str, object],
    step: pa.Table,
    allocations: pa.Table,
    lives: Columns,
    schedule: pa.Table,
) -> dict[str, object]:
    occupied = step["occupied_bytes"].to_numpy()
    peak = int(np.argmax(occupied))
    time = step["start_time"][peak].as_py()
    wasted = int(row["total_bytes"]) - int(row["thread_local_bytes"]) - int(occupied[peak])  # type: ignore[call-overload]
    temp = int(row["temp_bytes"])  # type: ignore[call-overload]
    return {
        "peak_bytes": int(occupied[peak]),
        "peak_time": time,
        "peak_live_bytes": step["live_bytes"][peak].as_py(),
        "peak_instruction_id": schedule["instruction_id"][time].as_py(),
        "fragmentation_bytes": wasted,
        "fragmentation": wasted / temp if temp else None,
        "padding_bytes": _padding_at(time, step["memory_space"][0].as_py(), allocations, lives),
    }


def _padding_at(time: int, space: int, allocations: pa.Table, lives: Columns) -> int | None:
    """size - logical size of what is live in the space, an aliased extent counted once.

    An allocation that is occupied throughout counts for the value that it is for. None if the
    logical size of one of them is not known.
    """
    here = lives["space"] == space
    temp = lives["is_temp"].astype(bool)
    live = here & temp & (lives["start"] <= time) & (lives["end"] >= time)
    shown = here & lives["is_shown"].astype(bool)
    if (lives["logical"][live | shown] == _UNKNOWN).any():
        return None
    of_shown = lives["high"][shown] - lives["low"][shown] - lives["logical"][shown]
    return _counted_padding(lives, live) + int(of_shown.sum())


def _counted_padding(lives: Columns, chosen: npt.NDArray[np.bool_]) -> int:
    """The padding in address order; bytes that an earlier extent covers are not counted."""
    low, high = lives["low"][chosen], lives["high"][chosen]
    allocation = lives["allocation"][chosen]
    order = np.lexsort((lives["value_id"][chosen], low - high, low, allocation))
    if not len(order):
        return 0
    low, high, allocation = low[order], high[order], allocation[order]
    lift = np.cumsum(np.concatenate([[0], np.diff(allocation) != 0])) * (int(high.max()) + 1)
    covered = np.concatenate([[0], (np.maximum.accumulate(high + lift) - lift)[:-1]])
    counted = np.maximum(high - np.maximum(low, covered), 0)
    padding = high - low - lives["logical"][chosen][order]
    return int(np.minimum(counted, padding).sum())
