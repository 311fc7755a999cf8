"""A module's figures: `occupancy` and `module_memory`, as the tables' comments define them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .occupancy import Extents, Ints, accumulated, changes, occupied_changes
from .runs import ints, masked, places_of

_UNKNOWN = -1

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Space:
    """A memory space of a module, of which its figures are worked out.

    allocations: those of the space; with the peaks of temps if the `bounds` are known
    steps: the space's rows of `occupancy`, if the `peak` is known
    """

    memory_space: int
    allocations: Columns
    lives: Columns
    schedule: pa.Table
    steps: Columns

    @cached_property
    def peak(self) -> dict[str, int]:
        """The row of `steps` with the most occupied bytes, the first of several."""
        at = int(np.argmax(self.steps["occupied_bytes"]))
        return {name: int(column[at]) for name, column in self.steps.items()}

    def sum(self, *masks: str, of: str = "size_bytes") -> int:
        """The sum of a column over the allocations for which all the masks are true."""
        chosen = [self.allocations[mask] for mask in masks]
        return int(self.allocations[of].sum(where=np.logical_and.reduce(chosen)))


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
    columns = _columns(allocations)
    if live_ranges is not None and schedule is not None:
        lives = _lives(columns, values, live_ranges)
        unions = _temp_unions(columns, lives)
        length = len(schedule)
        peaks = _temp_peaks(columns["allocation_index"], unions, length)
        columns["peak_bytes"] = np.maximum(peaks["peak_bytes"], 0)
        for name, type_ in (("peak_bytes", pa.int64()), ("peak_time", pa.int32())):
            peak = pa.array(peaks[name], type_, mask=peaks[name] == _UNKNOWN)
            allocations = allocations.append_column(name, peak)
        known |= {"bounds", "peak"} if length else {"bounds"}
    rows: list[dict[str, object]] = []
    steps: list[Columns] = []
    for memory_space in np.unique(columns["memory_space"]).tolist():
        here = columns["memory_space"] == memory_space
        within = {name: column[here] for name, column in columns.items()}
        if "peak" in known:
            steps.append(_occupancy(memory_space, within, lives, unions, length))
        space = Space(memory_space, within, lives, schedule, steps[-1] if steps else {})
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
        tables["occupancy"] = pa.table(
            {name: np.concatenate([step[name] for step in steps]) for name in steps[0]}
        )
    return tables, rows


def _columns(allocations: pa.Table) -> Columns:
    """What the figures need of the allocations."""
    numbers = ("memory_space", "allocation_index", "size_bytes", "value_id")
    marks = ("is_parameter", "maybe_live_out", "is_constant", "is_thread_local", "is_temp")
    # A size that is not known adds nothing.
    return (
        {name: ints(allocations[name]) for name in numbers}
        | {name: masked(allocations[name]) for name in marks}
        | {"size_bytes": pc.fill_null(allocations["size_bytes"], 0).to_numpy()}
    )


def _lives(allocations: Columns, values: pa.Table, live_ranges: pa.Table) -> Columns:
    """The values outside thread-local memory, with their addresses and live ranges.

    Some constants have no live range (`tpu/decode-v5e`, constant.200). These get an empty
    live range, which adds nothing to any sum.
    """
    names = ("value_id", "allocation_index", "offset_bytes", "size_bytes", "logical_bytes")
    value_id, index, low, size, logical = (ints(values[name]) for name in names)
    shared = np.flatnonzero(~allocations["is_thread_local"])
    at = places_of(allocations["allocation_index"][shared], index)
    held = np.flatnonzero(at >= 0)
    allocation, value_id = shared[at[held]], value_id[held]
    life = places_of(ints(live_ranges["value_id"]), value_id)
    return {
        "space": allocations["memory_space"][allocation],
        "is_temp": allocations["is_temp"][allocation],
        "is_shown": np.isin(value_id, allocations["value_id"]),
        "allocation": index[held],
        "low": low[held],
        "high": low[held] + size[held],
        "logical": logical[held],
        "start": np.append(ints(live_ranges["start_time"]), 0)[life],
        "end": np.append(ints(live_ranges["end_time"]), -1)[life],
        "value_id": value_id,
    }


def _temp_unions(allocations: Columns, lives: Columns) -> dict[int, tuple[Ints, Ints]]:
    """For each temp allocation: when its occupied bytes change, and the new bytes."""
    names = ("low", "high", "start", "end")
    unions = {}
    for index in allocations["allocation_index"][allocations["is_temp"]].tolist():
        chosen = lives["allocation"] == index
        unions[index] = occupied_changes(Extents(*(lives[name][chosen] for name in names)))
    return unions


def _occupancy(
    space: int,
    allocations: Columns,
    lives: Columns,
    unions: dict[int, tuple[Ints, Ints]],
    length: int,
) -> Columns:
    """The space's rows of `occupancy`: one for each change within the schedule."""
    here = lives["space"] == space
    size = lives["high"] - lives["low"]
    live_times, live = changes(lives["start"][here], lives["end"][here], size[here])
    steps = [unions[i] for i in allocations["allocation_index"][allocations["is_temp"]].tolist()]
    none = np.array([], np.int64)
    union_times, union = accumulated(
        np.concatenate([none, *(times for times, _ in steps)]),
        np.concatenate([none, *(np.diff(sums, prepend=0) for _, sums in steps)]),
    )
    times = np.unique(np.concatenate([[0], live_times, union_times]))
    times = times[times < length]
    always = ~(allocations["is_temp"] | allocations["is_thread_local"])
    occupied = _held(union_times, union, times) + allocations["size_bytes"].sum(where=always)
    live_bytes = _held(live_times, live, times)
    changed = np.ones(len(times), bool)
    changed[1:] = (np.diff(live_bytes) != 0) | (np.diff(occupied) != 0)
    return {
        "memory_space": np.full(np.count_nonzero(changed), space, np.int32),
        "start_time": times[changed].astype(np.int32),
        "live_bytes": live_bytes[changed],
        "occupied_bytes": occupied[changed],
    }


def _temp_peaks(index: Ints, unions: dict[int, tuple[Ints, Ints]], length: int) -> Columns:
    """By allocation peak_bytes and peak_time; unknown but for temps."""
    peaks = {name: np.full(len(index), _UNKNOWN) for name in ("peak_bytes", "peak_time")}
    for allocation, (times, union) in unions.items():
        union = union[times < length]
        if len(union):
            at, rows = int(np.argmax(union)), index == allocation
            peaks["peak_bytes"][rows], peaks["peak_time"][rows] = union[at], times[at]
    return peaks


def _bounded(allocations: pa.Table) -> pa.Table:
    """The allocations with the live bound as the size of each temp."""
    sizes = pc.if_else(allocations["is_temp"], allocations["peak_bytes"], allocations["size_bytes"])
    at = allocations.schema.get_field_index("size_bytes")
    return allocations.set_column(at, "size_bytes", pc.fill_null(sizes, 0))


def _held(times: Ints, sums: Ints, at: Ints) -> Ints:
    """The sum at each time: the sum after the last change so far, 0 before the first."""
    return np.concatenate([[0], sums])[np.searchsorted(times, at, side="right")]


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
