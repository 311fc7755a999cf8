"""A module's figures: `occupancy` and `module_memory`, as the tables' comments define them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .occupancy import Extents, Ints, accumulated, changes, occupied_changes
from .runs import rows_of

_UNKNOWN = -1

Columns = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Space:
    """A memory space of a module, of which its figures are worked out.

    allocations: those of the space; with the peaks of temps if the `bounds` are known
    steps: the space's rows of `occupancy`, if the `peak` is known
    """

    memory_space: int
    allocations: pa.Table
    lives: Columns
    schedule: pa.Table
    steps: pa.Table

    @cached_property
    def peak(self) -> dict[str, int]:
        """The row of `steps` with the most occupied bytes, the first of several."""
        at = int(np.argmax(self.steps["occupied_bytes"].to_numpy()))
        return {name: self.steps[name][at].as_py() for name in self.steps.column_names}

    def sum(self, *masks: str, of: str = "size_bytes") -> int:
        """The sum of a column over the allocations for which all the masks are true."""
        column = self.allocations[of]
        if masks:
            column = column.filter(reduce(pc.and_, (self.allocations[mask] for mask in masks)))
        return pc.sum(column).as_py() or 0


_Figure = Callable[[Space], float | None]
_F = TypeVar("_F", bound=_Figure)
# Each figure, with what has to be known for it, and whether XLA's packing decides it.
_FIGURES: list[tuple[_Figure, str, bool]] = []


def _figure(needs: str, *, packed: bool = False) -> Callable[[_F], _F]:
    """Make a function the figure in the column of its name.

    needs: without it the figure is null: the `sizes` of the allocations, the `peak`, or the
        `bounds`, which are the peaks of the temps
    packed: XLA's packing decides the figure, so that an estimate leaves it null.
    """

    def register(figure: _F) -> _F:
        _FIGURES.append((figure, needs, packed))
        return figure

    return register


@_figure("sizes", packed=True)
def total_bytes(space: Space) -> int:
    """All allocations."""
    return space.sum()


@_figure("sizes")
def argument_bytes(space: Space) -> int:
    """Parameters."""
    return space.sum("is_parameter")


@_figure("sizes")
def output_bytes(space: Space) -> int:
    """What may live out."""
    return space.sum("maybe_live_out")


@_figure("sizes")
def alias_bytes(space: Space) -> int:
    """Parameters that may live out."""
    return space.sum("is_parameter", "maybe_live_out")


@_figure("sizes")
def constant_bytes(space: Space) -> int:
    """Constants."""
    return space.sum("is_constant")


@_figure("sizes", packed=True)
def thread_local_bytes(space: Space) -> int:
    """Thread-local allocations."""
    return space.sum("is_thread_local")


@_figure("sizes", packed=True)
def temp_bytes(space: Space) -> int:
    """Preallocated temps."""
    return space.sum("is_temp")


@_figure("peak")
def peak_bytes(space: Space) -> int:
    """The most that is occupied at one time."""
    return space.peak["occupied_bytes"]


@_figure("peak")
def peak_time(space: Space) -> int:
    """The first time of the peak."""
    return space.peak["start_time"]


@_figure("peak")
def peak_live_bytes(space: Space) -> int:
    """What is live at the peak."""
    return space.peak["live_bytes"]


@_figure("peak")
def peak_instruction_id(space: Space) -> int | None:
    """The instruction at the peak."""
    instruction_id: int | None = space.schedule["instruction_id"][peak_time(space)].as_py()
    return instruction_id


@_figure("peak", packed=True)
def fragmentation_bytes(space: Space) -> int:
    """What is allocated above the peak."""
    return total_bytes(space) - thread_local_bytes(space) - peak_bytes(space)


@_figure("peak", packed=True)
def fragmentation(space: Space) -> float | None:
    """The share of that in the temps."""
    temp = temp_bytes(space)
    return fragmentation_bytes(space) / temp if temp else None


@_figure("bounds")
def live_bound_bytes(space: Space) -> int:
    """What the temps hold at their fullest."""
    return space.sum("is_temp", of="peak_bytes")


@_figure("bounds", packed=True)
def packing_bytes(space: Space) -> int:
    """What packing adds to that."""
    return temp_bytes(space) - live_bound_bytes(space)


@_figure("peak")
def padding_bytes(space: Space) -> int | None:
    """size - logical size of what is live at the peak, an aliased extent counted once.

    An allocation that is occupied throughout counts for the value that it is for. None if the
    logical size of one of them is not known.
    """
    lives, time = space.lives, peak_time(space)
    here = lives["space"] == space.memory_space
    temp = lives["is_temp"].astype(bool)
    live = here & temp & (lives["start"] <= time) & (lives["end"] >= time)
    shown = here & lives["is_shown"].astype(bool)
    if (lives["logical"][live | shown] == _UNKNOWN).any():
        return None
    of_shown = lives["high"][shown] - lives["low"][shown] - lives["logical"][shown]
    return _counted_padding(lives, live) + int(of_shown.sum())


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
    lives: Columns = {}
    unions: dict[int, tuple[Ints, Ints]] = {}
    length, known = 0, {"sizes"} if complete else set()
    if live_ranges is not None and schedule is not None:
        lives = _lives(allocations, values, live_ranges)
        unions = _temp_unions(allocations, lives)
        length = len(schedule)
        allocations = _temp_peaks(allocations, unions, length)
        known |= {"bounds", "peak"} if length else {"bounds"}
    rows: list[dict[str, object]] = []
    steps = []
    for memory_space in np.unique(allocations["memory_space"].to_numpy()).tolist():
        within = allocations.filter(pc.equal(allocations["memory_space"], memory_space))
        if "peak" in known:
            steps.append(_occupancy(memory_space, within, lives, unions, length))
        here = steps[-1] if steps else None
        space = Space(memory_space, within, lives, schedule, here)
        figures = {
            figure.__name__: figure(space)
            for figure, needs, packed in _FIGURES
            if needs in known and not (packed and estimated)
        }
        rows.append({"memory_space": memory_space, **figures})
    if estimated:
        allocations = _bounded(allocations)
    tables = {"allocations": allocations}
    if steps:
        tables["occupancy"] = pa.concat_tables(steps)
    return tables, rows


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
