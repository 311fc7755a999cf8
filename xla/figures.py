"""A module's figures: `occupancy` and `module_memory`, as the tables' comments define them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .occupancy import Extents, Ints, accumulated, changes, occupied_changes
from .runs import ints, masked, places_of
from .shifts import Shifts

_UNKNOWN = -1

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Spaces:
    """The memory spaces of which figures are worked out: a figure has a row for each, in order.

    memory_space: their numbers; allocations, lives: in all of them, with the row of their `space`,
    and the peaks of temps if the `bounds` are known; instruction: what runs at each time; steps:
    the rows of `occupancy`, by space and time, if the `peak` is known
    """

    memory_space: Ints
    allocations: Columns
    lives: Columns
    instruction: Ints
    steps: Columns

    @cached_property
    def peak(self) -> Columns:
        """Of each space the row of `steps` with the most occupied bytes, the first of several."""
        space = self.steps["space"]
        order = np.lexsort((-self.steps["occupied_bytes"], space))
        at = order[np.searchsorted(space[order], np.arange(len(self.memory_space)))]
        return {name: column[at] for name, column in self.steps.items()}

    def sum(self, *masks: str, of: str = "size_bytes") -> Ints:
        """The sum of a column over the allocations for which all the masks are true."""
        chosen = np.ones(len(self.allocations[of]), bool)
        for mask in masks:
            chosen &= self.allocations[mask]
        return self.added(self.allocations["space"][chosen], self.allocations[of][chosen])

    def added(self, space: Ints, amounts: Ints) -> Ints:
        """The sum of amounts in each space."""
        sums = np.zeros(len(self.memory_space), np.int64)
        np.add.at(sums, space, amounts)
        return sums


_Figure = Callable[[Spaces], Ints | pa.Array]
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
def total_bytes(spaces: Spaces) -> Ints:
    """All allocations."""
    return spaces.sum()


@_figure("sizes")
def argument_bytes(spaces: Spaces) -> Ints:
    """Parameters."""
    return spaces.sum("is_parameter")


@_figure("sizes")
def output_bytes(spaces: Spaces) -> Ints:
    """What may live out."""
    return spaces.sum("maybe_live_out")


@_figure("sizes")
def alias_bytes(spaces: Spaces) -> Ints:
    """Parameters that may live out."""
    return spaces.sum("is_parameter", "maybe_live_out")


@_figure("sizes")
def constant_bytes(spaces: Spaces) -> Ints:
    """Constants."""
    return spaces.sum("is_constant")


@_figure("sizes", packed=True)
def thread_local_bytes(spaces: Spaces) -> Ints:
    """Thread-local allocations."""
    return spaces.sum("is_thread_local")


@_figure("sizes", packed=True)
def temp_bytes(spaces: Spaces) -> Ints:
    """Preallocated temps."""
    return spaces.sum("is_temp")


@_figure("peak")
def peak_bytes(spaces: Spaces) -> Ints:
    """The most that is occupied at one time."""
    return spaces.peak["occupied_bytes"]


@_figure("peak")
def peak_time(spaces: Spaces) -> Ints:
    """The first time of the peak."""
    return spaces.peak["start_time"]


@_figure("peak")
def peak_live_bytes(spaces: Spaces) -> Ints:
    """What is live at the peak."""
    return spaces.peak["live_bytes"]


@_figure("peak")
def peak_instruction_id(spaces: Spaces) -> Ints:
    """The instruction at the peak."""
    return spaces.instruction[peak_time(spaces)]


@_figure("peak", packed=True)
def fragmentation_bytes(spaces: Spaces) -> Ints:
    """What is allocated above the peak."""
    return total_bytes(spaces) - thread_local_bytes(spaces) - peak_bytes(spaces)


@_figure("peak", packed=True)
def fragmentation(spaces: Spaces) -> pa.Array:
    """The share of that in the temps."""
    temp = temp_bytes(spaces)
    return pa.array(fragmentation_bytes(spaces) / np.maximum(temp, 1), mask=temp == 0)


@_figure("bounds")
def live_bound_bytes(spaces: Spaces) -> Ints:
    """What the temps hold at their fullest."""
    return spaces.sum("is_temp", of="peak_bytes")


@_figure("bounds", packed=True)
def packing_bytes(spaces: Spaces) -> Ints:
    """What packing adds to that."""
    return temp_bytes(spaces) - live_bound_bytes(spaces)


@_figure("peak")
def padding_bytes(spaces: Spaces) -> pa.Array:
    """size - logical size of what is live at the peak, an aliased extent counted once.

    An allocation that is occupied throughout counts for the value that it is for. None if the
    logical size of one of them is not known.
    """
    lives, time = spaces.lives, peak_time(spaces)[spaces.lives["space"]]
    live = lives["is_temp"] & (lives["start"] <= time) & (lives["end"] >= time)
    shown = lives["is_shown"]
    is_unknown = np.zeros(len(spaces.memory_space), bool)
    is_unknown[lives["space"][(live | shown) & (lives["logical"] == _UNKNOWN)]] = True
    of_shown = lives["high"][shown] - lives["low"][shown] - lives["logical"][shown]
    padding = spaces.added(lives["space"][shown], of_shown)
    return pa.array(padding + spaces.added(*_counted_padding(lives, live)), mask=is_unknown)


def memory_tables(
    allocations: pa.Table,
    values: pa.Table,
    live_ranges: pa.Table | None,
    schedule: pa.Table | None,
    shifts: Shifts,
    *,
    complete: bool,
    estimated: bool = False,
) -> dict[str, pa.Table]:
    """The tables `allocations`, `occupancy` and `module_memory`.

    Without live ranges and schedule the peak is unknown: its figures are missing and occupancy
    has no rows. If the parts are not `complete`, all figures are missing. If they are `estimated`,
    the figures that XLA's packing decides are missing, and a temp has its live bound as its size.
    """
    known = {"sizes"} if complete else set()
    columns = _columns(allocations)
    memory_space, columns["space"] = np.unique(columns["memory_space"], return_inverse=True)
    spaces = Spaces(memory_space, columns, {}, np.zeros(0, np.int64), {})
    tables = {}
    if live_ranges is not None and schedule is not None:
        times = shifts.starts["time"]
        of = shifts.of("space", memory_space)
        span = times[:-1][of], times[1:][of]
        lives = _lives(columns, values, live_ranges)
        unions = _temp_unions(columns, lives)
        peaks = _temp_peaks(len(allocations), unions, span[1][columns["space"]])
        columns["peak_bytes"] = np.maximum(peaks["peak_bytes"], 0)
        for name, type_ in (("peak_bytes", pa.int64()), ("peak_time", pa.int32())):
            peak = pa.array(peaks[name], type_, mask=peaks[name] == _UNKNOWN)
            allocations = allocations.append_column(name, peak)
        known.add("bounds")
        instruction = ints(schedule["instruction_id"])
        spaces = replace(spaces, lives=lives, instruction=instruction)
        if len(schedule):
            known.add("peak")
            steps = _occupancy(columns, lives, unions, *span)
            spaces = replace(spaces, steps=steps)
            tables["occupancy"] = pa.table(
                {
                    "memory_space": pa.array(memory_space[steps["space"]], pa.int32()),
                    "start_time": pa.array(steps["start_time"], pa.int32()),
                    "live_bytes": steps["live_bytes"],
                    "occupied_bytes": steps["occupied_bytes"],
                }
            )
    if estimated:
        allocations = _bounded(allocations)
    figures = {
        figure.__name__: figure(spaces)
        for figure, needs, packed in _FIGURES
        if needs in known and not (packed and estimated)
    }
    tables["module_memory"] = pa.table({"memory_space": memory_space, **figures})
    return {"allocations": allocations, **tables}


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
        "space": allocations["space"][allocation],
        "is_temp": allocations["is_temp"][allocation],
        "is_shown": np.isin(value_id, allocations["value_id"]),
        "allocation": allocation,
        "low": low[held],
        "high": low[held] + size[held],
        "logical": logical[held],
        "start": np.append(ints(live_ranges["start_time"]), 0)[life],
        "end": np.append(ints(live_ranges["end_time"]), -1)[life],
        "value_id": value_id,
    }


def _temp_unions(allocations: Columns, lives: Columns) -> Columns:
    """When the occupied bytes of each temp allocation change, by its row, and the new bytes."""
    temps = np.flatnonzero(allocations["is_temp"])
    held = np.flatnonzero(lives["is_temp"])
    held = held[np.argsort(lives["allocation"][held], kind="stable")]
    bounds = np.searchsorted(lives["allocation"][held], np.append(temps, len(allocations["space"])))
    names = ("low", "high", "start", "end")
    none = np.zeros(0, np.int64)
    times, sums = [none], [none]
    for start, stop in pairwise(bounds.tolist()):
        chosen = held[start:stop]
        time, union = occupied_changes(Extents(*(lives[name][chosen] for name in names)))
        times.append(time)
        sums.append(union)
    return {
        "allocation": np.repeat(temps, [len(each) for each in times[1:]]),
        "time": np.concatenate(times),
        "bytes": np.concatenate(sums),
        "change": np.concatenate([np.diff(each, prepend=0) for each in sums]),
    }


def _occupancy(
    allocations: Columns, lives: Columns, unions: Columns, begin: Ints, stop: Ints
) -> Columns:
    """The rows of `occupancy` by space: one for each change within the schedule.

    `begin` and `stop` are where the schedule of each space's program starts and ends.
    """
    # The times of a space follow those of the spaces before it; nothing is live between them.
    last = max(int(stop.max(initial=0)), int(lives["end"].max(initial=0)))
    lift = np.arange(len(stop)) * (last + 2)
    size = lives["high"] - lives["low"]
    of_life = lift[lives["space"]]
    live_times, live = changes(lives["start"] + of_life, lives["end"] + of_life, size)
    union_times, union = accumulated(
        unions["time"] + lift[allocations["space"][unions["allocation"]]], unions["change"]
    )
    times = np.unique(np.concatenate([begin + lift, live_times, union_times]))
    space = times // (last + 2)
    times -= lift[space]
    within = (times >= begin[space]) & (times < stop[space])
    times, space = times[within], space[within]
    always = np.zeros(len(stop), np.int64)
    throughout = ~(allocations["is_temp"] | allocations["is_thread_local"])
    np.add.at(always, allocations["space"][throughout], allocations["size_bytes"][throughout])
    at = times + lift[space]
    occupied = _held(union_times, union, at) + always[space]
    live_bytes = _held(live_times, live, at)
    changed = np.ones(len(times), bool)
    for column in (live_bytes, occupied, space):
        changed[1:] &= np.diff(column) == 0
    changed[1:] = ~changed[1:]
    return {
        "space": space[changed],
        "start_time": times[changed],
        "live_bytes": live_bytes[changed],
        "occupied_bytes": occupied[changed],
    }


def _temp_peaks(count: int, unions: Columns, stop: Ints) -> Columns:
    """By allocation peak_bytes and peak_time; unknown but for temps.

    `stop` is where the schedule of each allocation's program ends.
    """
    peaks = {name: np.full(count, _UNKNOWN) for name in ("peak_bytes", "peak_time")}
    allocation, time, union = (unions[name] for name in ("allocation", "time", "bytes"))
    within = np.flatnonzero(time < stop[allocation])
    # Of several peaks the first: what is written last stays.
    order = within[np.lexsort((-time[within], union[within], allocation[within]))]
    peaks["peak_bytes"][allocation[order]] = union[order]
    peaks["peak_time"][allocation[order]] = time[order]
    return peaks


def _bounded(allocations: pa.Table) -> pa.Table:
    """The allocations with the live bound as the size of each temp."""
    sizes = pc.if_else(allocations["is_temp"], allocations["peak_bytes"], allocations["size_bytes"])
    at = allocations.schema.get_field_index("size_bytes")
    return allocations.set_column(at, "size_bytes", pc.fill_null(sizes, 0))


def _held(times: Ints, sums: Ints, at: Ints) -> Ints:
    """The sum at each time: the sum after the last change so far, 0 before the first."""
    return np.concatenate([[0], sums])[np.searchsorted(times, at, side="right")]


def _counted_padding(lives: Columns, chosen: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The padding in address order; bytes that an earlier extent covers are not counted.

    The space and the padding of each extent.
    """
    low, high = lives["low"][chosen], lives["high"][chosen]
    allocation = lives["allocation"][chosen]
    order = np.lexsort((lives["value_id"][chosen], low - high, low, allocation))
    low, high, allocation = low[order], high[order], allocation[order]
    lift = np.cumsum(np.diff(allocation, prepend=allocation[:1]) != 0) * (
        int(high.max(initial=0)) + 1
    )
    covered = np.concatenate([[0], np.maximum.accumulate(high + lift)])[:-1] - lift
    counted = np.maximum(high - np.maximum(low, covered), 0)
    padding = high - low - lives["logical"][chosen][order]
    return lives["space"][chosen][order], np.minimum(counted, padding)
