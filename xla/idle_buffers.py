"""The rows of `alias_sets` and `residuals`: buffers in temps, and when they are idle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .analysis import Analysis
from .attribution import Attribution
from .idle import Accesses, longest_idle
from .parts import Allocation, AssignedValue
from .program import NONE


class TempValue(NamedTuple):
    """A value in a temp allocation, with its live range.

    Attributes:
        value: its index in the dataflow.
        value_id: its id in the dump.
        alias_set: the smallest value_id of the values that must share its buffer.
        start, end: schedule times, both inclusive.
        peak_time: when its memory space has its peak, or NONE.
    """

    value: int
    value_id: int
    alias_set: int
    size_bytes: int
    start: int
    end: int
    peak_time: int


class BufferUse(NamedTuple):
    """The live range of values that share a buffer, and its longest time without an access.

    Attributes:
        value_id: that of the largest of these values.
        start_time, end_time, idle_start_time, idle_end_time: schedule times, inclusive.
        peak_idle_time: length of the time without an access around the peak; 0 if the buffer is
            accessed or not live then.
    """

    value_id: int
    start_time: int
    end_time: int
    idle_start_time: int
    idle_end_time: int
    peak_idle_time: int


def alias_set_ids(
    analysis: Analysis, values: Sequence[AssignedValue], indices: Sequence[int]
) -> list[int]:
    """For each value of a dump, the smallest value_id in its alias set.

    NONE for a value that the HLO text lacks.

    Args:
        values: by value_id, ascending.
        indices: for each value, its index in the dataflow, see `complete.match_values`.
    """
    smallest_id: dict[int, int] = {}
    return [
        NONE
        if index == NONE
        else smallest_id.setdefault(analysis.liveness.alias_set[index], value.value_id)
        for value, index in zip(values, indices, strict=True)
    ]


def find_temp_values(
    values: Iterable[AssignedValue],
    indices: Iterable[int],
    alias_sets: Iterable[int],
    allocations: Iterable[Allocation],
    live_ranges: Mapping[int, tuple[int, int]],
    peak_times: Mapping[int, int],
) -> list[TempValue]:
    """The values in temp allocations that have a live range and are in the HLO text.

    Args:
        indices: for each value, its index in the dataflow, see `complete.match_values`.
        alias_sets: for each value, see `alias_set_ids`.
        live_ranges: by value_id, the first and last time at which the value is live.
        peak_times: by memory space, the time of its peak.
    """
    temps = {row.allocation_index for row in allocations if row.is_temp}
    temp_values = []
    for value, index, alias_set in zip(values, indices, alias_sets, strict=True):
        live_range = live_ranges.get(value.value_id)
        if index != NONE and live_range is not None and value.allocation_index in temps:
            size, peak_time = value.size_bytes or 0, peak_times.get(value.memory_space, NONE)
            temp = TempValue(index, value.value_id, alias_set, size, *live_range, peak_time)
            temp_values.append(temp)
    return temp_values


def alias_set_uses(
    analysis: Analysis, accesses: Accesses, temps: Iterable[TempValue]
) -> dict[int, BufferUse]:
    """By id, the use of the alias sets with a value in temps."""
    members: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        members[temp.alias_set].append(temp)
    return {
        alias_set: _buffer_use(analysis, accesses, group, group)
        for alias_set, group in sorted(members.items())
    }


def residual_uses(
    attribution: Attribution, accesses: Accesses, temps: Iterable[TempValue]
) -> dict[int, BufferUse]:
    """By index in `Attribution.residuals`, the use of the residuals with a value in temps."""
    members: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        if attribution.residual[temp.value] != NONE:
            members[attribution.residual[temp.value]].append(temp)
    owner, uses = attribution.owners.row, {}
    for residual, group in sorted(members.items()):
        # A buffer may also hold results of the backward pass: these are not the residual.
        owner_row = owner[attribution.residuals[residual].value]
        forward = [temp for temp in group if owner[temp.value] == owner_row]
        uses[residual] = _buffer_use(attribution.analysis, accesses, group, forward or group)
    return uses


def _buffer_use(
    analysis: Analysis, accesses: Accesses, group: list[TempValue], candidates: list[TempValue]
) -> BufferUse:
    """The use of the buffer of a group of values.

    Args:
        candidates: the values of the group of which the largest describes the buffer.
    """
    largest = max(candidates, key=lambda temp: temp.size_bytes)
    start, end = min(temp.start for temp in group), max(temp.end for temp in group)
    intervals = [interval for temp in group for interval in accesses.intervals[temp.value]]
    # A live-out value is live after the program's last instruction, but not read.
    last = analysis.schedule.span_end[analysis.program.entry] - 1
    idle = longest_idle(intervals, min(end, last), largest.peak_time)
    return BufferUse(largest.value_id, start, end, *idle)
