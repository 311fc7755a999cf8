"""The rows of `alias_sets` and `residuals`: buffers in temps, and when they are idle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .attribution import Attribution
from .idle import Accesses, longest_idle
from .parts import Allocation, AssignedValue
from .program import NONE
from .value_columns import alias_set_ids


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
        value_id: the largest of the values.
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


class AliasSetRow(NamedTuple):
    """A row of `alias_sets`."""

    alias_set: int
    use: BufferUse


class ResidualRow(NamedTuple):
    """A row of `residuals`."""

    residual_id: int
    layers: int
    made_instruction_id: int
    read_instruction_id: int | None
    use: BufferUse


def find_temp_values(
    attribution: Attribution,
    values: Sequence[AssignedValue],
    indices: Sequence[int],
    allocations: Iterable[Allocation],
    live_ranges: Mapping[int, tuple[int, int]],
    peak_times: Mapping[int, int],
) -> list[TempValue]:
    """The values in temp allocations that have a live range and are in the HLO text.

    Args:
        indices: for each value, its index in the dataflow, see `match_values`.
        live_ranges: by value_id, the first and last time at which the value is live.
        peak_times: by memory space, the time of its peak.
    """
    temps = {row.allocation_index for row in allocations if row.is_temp}
    set_ids = alias_set_ids(attribution.analysis, values, indices)
    temp_values = []
    for value, index, set_id in zip(values, indices, set_ids, strict=True):
        live_range = live_ranges.get(value.value_id)
        if index != NONE and live_range is not None and value.allocation_index in temps:
            size, peak_time = value.size_bytes or 0, peak_times.get(value.memory_space, NONE)
            temp_values.append(
                TempValue(index, value.value_id, set_id, size, *live_range, peak_time)
            )
    return temp_values


def alias_set_rows(attribution: Attribution, temps: Iterable[TempValue]) -> list[AliasSetRow]:
    """The rows of `alias_sets`: those with a value in temps. None if times are not known."""
    if attribution.accesses is None:
        return []
    members: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        members[temp.alias_set].append(temp)
    last = _last_time(attribution)
    return [
        AliasSetRow(alias_set, _buffer_use(attribution.accesses, last, group, group))
        for alias_set, group in sorted(members.items())
    ]


def residual_rows(attribution: Attribution, temps: Iterable[TempValue]) -> list[ResidualRow]:
    """The rows of `residuals`: those with a value in temps. None if times are not known."""
    if attribution.accesses is None:
        return []
    members: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        if attribution.residual[temp.value] != NONE:
            members[attribution.residual[temp.value]].append(temp)
    owner, last = attribution.owners.row, _last_time(attribution)
    rows = []
    for residual_id, group in sorted(members.items()):
        residual = attribution.residuals[residual_id]
        # A buffer may also hold results of the backward pass: these are not the residual.
        forward = [temp for temp in group if owner[temp.value] == owner[residual.value]]
        rows.append(
            ResidualRow(
                residual_id,
                residual.layers,
                made_instruction_id=owner[residual.value],
                read_instruction_id=None if residual.reader == NONE else residual.reader,
                use=_buffer_use(attribution.accesses, last, group, forward or group),
            )
        )
    return rows


def _last_time(attribution: Attribution) -> int:
    """The time of the program's last instruction."""
    analysis = attribution.analysis
    return analysis.schedule.span_end[analysis.program.entry] - 1


def _buffer_use(
    accesses: Accesses, last: int, group: list[TempValue], candidates: list[TempValue]
) -> BufferUse:
    """The use of the buffer of a group of values.

    Args:
        last: the time of the program's last instruction. A live-out value is live after it, but
            not read.
        candidates: the values of the group of which the largest describes the buffer.
    """
    largest = max(candidates, key=lambda temp: temp.size_bytes)
    start, end = min(temp.start for temp in group), max(temp.end for temp in group)
    intervals = [interval for temp in group for interval in accesses.intervals[temp.value]]
    idle = longest_idle(intervals, min(end, last), largest.peak_time)
    return BufferUse(largest.value_id, start, end, *idle)
