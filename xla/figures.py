"""Figures of a module by memory space: the rows of `module_memory` and `occupancy`.

The comments in `schema/tables.py` define each column.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from .occupancy import Changes, Extent, add_changes, occupied_changes, sum_changes
from .parts import Allocation, AssignedValue, BufferAssignment

# First and last time at which a value is live, both inclusive, by value_id.
Ranges = dict[int, tuple[int, int]]
# Some constants have no live range (`tpu/decode-v5e`, constant.200): empty, it adds to no sum.
NO_RANGE = (0, -1)


class OccupancyStep(NamedTuple):
    """A row of `occupancy`: valid from `start_time` to the next step of the memory space."""

    memory_space: int
    start_time: int
    live_bytes: int
    occupied_bytes: int


class SpaceMemory(NamedTuple):
    """A row of `module_memory`; None if the parts do not determine a figure."""

    memory_space: int
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    constant_bytes: int | None = None
    thread_local_bytes: int | None = None
    temp_bytes: int | None = None
    peak_bytes: int | None = None
    peak_time: int | None = None
    peak_live_bytes: int | None = None
    peak_instruction_id: int | None = None
    fragmentation_bytes: int | None = None
    fragmentation: float | None = None
    live_bound_bytes: int | None = None
    padding_bytes: int | None = None
    peak_upper_bytes: int | None = None


# XLA's packing decides these: an estimate has none of them.
_PACKED_FIGURES = (
    "total_bytes",
    "reserved_bytes",
    "thread_local_bytes",
    "temp_bytes",
    "fragmentation_bytes",
    "fragmentation",
)


class TempPeak(NamedTuple):
    """The most bytes of a temp allocation that are occupied, and the first such time."""

    peak_bytes: int | None = None
    peak_time: int | None = None


@dataclass
class MemoryFigures:
    """The figures of a module.

    Attributes:
        allocations: those of the assignment; in an estimate a temp is as large as its peak.
        temp_peaks: by allocation, without bytes if it is no temp; None without live ranges.
        spaces: ascending.
        steps: by memory space and time; none without live ranges or a schedule.
    """

    allocations: list[Allocation]
    temp_peaks: list[TempPeak] | None
    spaces: list[SpaceMemory]
    steps: list[OccupancyStep]


@dataclass(slots=True)
class _Filled:
    """An allocation that is not thread-local, with its values.

    Attributes:
        extents: by value, its addresses and live range; empty without live ranges.
        occupied: changes of the bytes that live values occupy; none unless it is a temp.
    """

    allocation: Allocation
    values: list[AssignedValue]
    extents: list[Extent]
    occupied: Changes


def memory_figures(
    assignment: BufferAssignment,
    shown_values: Sequence[int],
    ranges: Ranges | None,
    schedule: Sequence[int] | None,
    *,
    is_complete: bool,
) -> MemoryFigures:
    """Compute the figures of all memory spaces that have an allocation.

    Args:
        shown_values: by allocation, the id of the value that it is for, or NONE.
        ranges: None without live ranges, or if the parts contradict each other.
        schedule: instruction ids by time.
        is_complete: whether all allocations are known and no part contradicts them.
    """
    if ranges is None or schedule is None:
        ranges = schedule = None
    filled = _fill(assignment, ranges)
    temp_peaks = None
    if schedule is not None:
        temp_peaks = [_first_peak(row.occupied, len(schedule)) for row in filled]
    rows_by_space: defaultdict[int, list[int]] = defaultdict(list)
    for row, allocation in enumerate(assignment.allocations):
        rows_by_space[allocation.memory_space].append(row)
    figures = MemoryFigures(assignment.allocations, temp_peaks, [], [])
    shown = set(shown_values)
    for space, rows in sorted(rows_by_space.items()):
        allocations = [assignment.allocations[row] for row in rows]
        memory = _size_figures(space, allocations) if is_complete else SpaceMemory(space)
        memory = memory._replace(peak_upper_bytes=assignment.peak_high.get(space))
        if temp_peaks is not None:
            bound = sum(temp_peaks[row].peak_bytes or 0 for row in rows)
            memory = memory._replace(live_bound_bytes=bound)
        if schedule:
            in_space = [filled[row] for row in rows]
            steps = _occupancy_steps(space, in_space, len(schedule))
            memory = _with_peak(memory, max(steps, key=lambda step: step.occupied_bytes), schedule)
            memory = memory._replace(padding_bytes=_padding(in_space, memory.peak_time, shown))
            figures.steps += steps
        figures.spaces.append(memory)
    return _without_packing(figures) if assignment.origin == "estimated" else figures


def _fill(assignment: BufferAssignment, ranges: Ranges | None) -> list[_Filled]:
    """The allocations with their values; thread-local ones, which have no times, have none."""
    filled = [_Filled(allocation, [], [], []) for allocation in assignment.allocations]
    by_index = {row.allocation.allocation_index: row for row in reversed(filled)}
    for value in assignment.values:
        index = value.allocation_index
        row = None if index is None else by_index.get(index)
        if row is not None and not row.allocation.is_thread_local:
            row.values.append(value)
    if ranges is not None:
        for row in filled:
            for value in row.values:
                low = value.offset_bytes or 0
                start, end = ranges.get(value.value_id, NO_RANGE)
                row.extents.append(Extent(low, low + (value.size_bytes or 0), start, end))
            if row.allocation.is_temp:
                row.occupied = occupied_changes(row.extents)
    return filled


def _first_peak(changes: Changes, length: int) -> TempPeak:
    """The largest amount before the end of the schedule, and the first time of it."""
    peaks = [TempPeak(amount, time) for time, amount in changes if time < length]
    return max(peaks, key=itemgetter(0), default=TempPeak())


def _size_figures(space: int, allocations: Iterable[Allocation]) -> SpaceMemory:
    """The figures that add up sizes of allocations."""
    total = argument = output = alias = constant = thread_local = temp = 0
    for allocation in allocations:
        size = allocation.size_bytes
        total += size
        argument += size * allocation.is_parameter
        output += size * allocation.maybe_live_out
        alias += size * (allocation.is_parameter and allocation.maybe_live_out)
        constant += size * allocation.is_constant
        thread_local += size * allocation.is_thread_local
        temp += size * allocation.is_temp
    reserved = total - thread_local
    return SpaceMemory(
        space, total, reserved, argument, output, alias, constant, thread_local, temp
    )


def _occupancy_steps(space: int, filled: Sequence[_Filled], length: int) -> list[OccupancyStep]:
    """The rows of `occupancy` of a space: one at time 0 and one for each change before the end."""
    fixed = sum(
        row.allocation.size_bytes
        for row in filled
        if not row.allocation.is_temp and not row.allocation.is_thread_local
    )
    live_at = dict(
        sum_changes(
            (extent.start, extent.end, extent.high - extent.low)
            for row in filled
            for extent in row.extents
        )
    )
    occupied_at = dict(add_changes([row.occupied for row in filled]))
    live = occupied = 0
    steps: list[OccupancyStep] = []
    for time in sorted({0} | live_at.keys() | occupied_at.keys()):
        if time >= length:
            break
        live, occupied = live_at.get(time, live), occupied_at.get(time, occupied)
        step = OccupancyStep(space, time, live, fixed + occupied)
        if not steps or step[2:] != steps[-1][2:]:
            steps.append(step)
    return steps


def _with_peak(memory: SpaceMemory, peak: OccupancyStep, schedule: Sequence[int]) -> SpaceMemory:
    """Add the peak, and what XLA allocates beyond it."""
    memory = memory._replace(
        peak_bytes=peak.occupied_bytes,
        peak_time=peak.start_time,
        peak_live_bytes=peak.live_bytes,
        peak_instruction_id=schedule[peak.start_time],
    )
    if memory.reserved_bytes is None:
        return memory
    wasted = memory.reserved_bytes - peak.occupied_bytes
    share = wasted / memory.temp_bytes if memory.temp_bytes else None
    return memory._replace(fragmentation_bytes=wasted, fragmentation=share)


def _padding(filled: Iterable[_Filled], peak_time: int | None, shown: set[int]) -> int | None:
    """Size less logical size of the values at the peak; bytes that several share count once.

    These are the live values of temps, and for each other allocation the value that it is for.
    None if the logical size of one of them is not known.
    """
    padding = 0
    for row in filled:
        live = []
        for value, extent in zip(row.values, row.extents, strict=True):
            is_shown = value.value_id in shown
            is_live = (
                row.allocation.is_temp
                and peak_time is not None
                and extent.start <= peak_time <= extent.end
            )
            if not (is_shown or is_live):
                continue
            logical = value.logical_bytes
            if logical is None:
                return None
            if is_shown:
                padding += extent.high - extent.low - logical
            if is_live:
                live.append((extent.low, extent.low - extent.high, value.value_id, logical))
        covered = 0
        for low, negative_size, _, logical in sorted(live):
            high = low - negative_size
            counted = max(high - max(low, covered), 0)
            padding += min(counted, high - low - logical)
            covered = max(covered, high)
    return padding


def _without_packing(figures: MemoryFigures) -> MemoryFigures:
    """The figures of an estimate: without those that XLA's packing decides."""
    unknown: dict[str, Any] = dict.fromkeys(_PACKED_FIGURES)
    figures.spaces = [memory._replace(**unknown) for memory in figures.spaces]
    if figures.temp_peaks is not None:
        figures.allocations = [
            allocation._replace(size_bytes=peak.peak_bytes or 0)
            if allocation.is_temp
            else allocation
            for allocation, peak in zip(figures.allocations, figures.temp_peaks, strict=True)
        ]
    return figures
