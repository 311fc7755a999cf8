"""The parts that a dump lacks, filled in from its scheduled HLO text.

A dump with a buffer assignment gets exact live ranges, positions and uses ("derived"). HLO text
alone also gets an estimate of the buffer assignment ("estimated").
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from .analysis import Analysis
from .errors import DumpError
from .estimate import estimate_assignment, with_heap_ends
from .figures import memory_figures
from .list_schedule import list_schedule
from .occupancy import sum_changes
from .parts import (
    AssignedValue,
    BufferAssignment,
    LiveRange,
    LiveRanges,
    Parts,
    PeakValue,
    Position,
    Use,
    UsedValues,
)
from .program import NONE
from .shapes import logical_bytes
from .sizes import platform_of
from .slots import ShapeTree

_POINTER_BYTES: Final = 8
_NOT_SCHEDULED: Final = (
    "the HLO text is not scheduled (no is_scheduled=true): "
    "dump the text after optimizations, or use compiled.as_text()"
)


def fill_missing_parts(
    parts: Parts, analysis: Analysis, platform: str | None = None
) -> tuple[Parts, Analysis, str | None]:
    """Add the parts that the dump lacks: derived from its assignment, or from an estimated one.

    Dumped parts stay as they are. HLO text alone that is not scheduled gets a schedule. Without an
    assignment, but with other parts, nothing is added.

    Args:
        platform: cpu, gpu or tpu, if the file names state it; default: as the text suggests.

    Returns:
        The parts; the analysis in the schedule that was chosen; and the reason if the HLO text
        does not determine the missing parts, or None.
    """
    program = analysis.program
    dumped = (parts.assignment, parts.used_values, parts.live_ranges)
    if None not in dumped:
        return parts, analysis, None
    has_text_only = dumped == (None, None, None)
    if not program.header.is_scheduled and not has_text_only:
        return parts, analysis, _NOT_SCHEDULED
    if parts.assignment is None and not has_text_only:
        return parts, analysis, None
    if parts.assignment is not None:
        flow_values = match_values(analysis, parts.assignment.values)
        start = analysis.liveness.start
        n_live = len(start) - start.count(NONE)
        n_matched = sum(value != NONE and start[value] != NONE for value in flow_values)
        if (n_lost := n_live - n_matched) > 0:
            reason = f"{n_lost} values of the HLO text are not in BufferAssignment"
            return parts, analysis, reason
        return _add_derived(parts, parts.assignment, analysis, flow_values), analysis, None
    platform = platform or platform_of(program)
    try:
        assignment = estimate_assignment(analysis, platform)
        if not program.header.is_scheduled:
            analysis, assignment = _choose_schedule(analysis, assignment, platform)
    except DumpError as error:
        return parts, analysis, str(error)
    analysis_with_heap_ends = with_heap_ends(analysis, platform)
    # In an estimate the value_id is the value of the dataflow.
    flow_values = [value.value_id for value in assignment.values]
    parts = _add_derived(parts, assignment, analysis_with_heap_ends, flow_values)
    return parts, analysis, None


def _choose_schedule(
    analysis: Analysis, assignment: BufferAssignment, platform: str
) -> tuple[Analysis, BufferAssignment]:
    """The better of two schedules of a text without one: text order and a list schedule.

    The better one has the lower peak in the main memory, the only space that XLA's schedulers
    look at. The assignment also has the peaks in the worse schedule.
    """
    other = list_schedule(analysis, platform)
    other_assignment = estimate_assignment(other, platform)
    peaks = _peaks(analysis, assignment, platform)
    other_peaks = _peaks(other, other_assignment, platform)
    if other_peaks.get(0, 0) < peaks.get(0, 0):
        analysis, assignment, peaks, other_peaks = other, other_assignment, other_peaks, peaks
    peak_high = {space: max(peaks[space], other_peaks.get(space, 0)) for space in peaks}
    return analysis, replace(assignment, peak_high=peak_high)


def _peaks(analysis: Analysis, assignment: BufferAssignment, platform: str) -> dict[int, int]:
    """The peak of each memory space in bytes, of an estimate."""
    liveness = with_heap_ends(analysis, platform).liveness
    ranges = dict(enumerate(zip(liveness.start, liveness.end, strict=True)))
    figures = memory_figures(assignment, (), ranges, analysis.schedule.order, is_complete=True)
    return {row.memory_space: row.peak_bytes or 0 for row in figures.spaces}


def match_values(analysis: Analysis, values: Iterable[AssignedValue]) -> list[int]:
    """For each value of a dump, its index in the dataflow; NONE if the text does not define it.

    They are matched by the defining instruction and the part of its result.
    """
    flow, slots = analysis.flow, analysis.flow.slots
    part_of_text: dict[ShapeTree, dict[str, int]] = {}
    flow_values = []
    for value in values:
        flow_value = NONE
        row = analysis.program.row_of.get(value.instruction, NONE)
        if row != NONE and slots.start[row] != NONE:
            tree = slots.tree(row)
            if tree not in part_of_text:
                part_of_text[tree] = {text: part for part, text in enumerate(tree.index_texts)}
            part = part_of_text[tree].get(value.shape_index)
            if part is not None:
                slot = slots.start[row] + part
                flow_value = flow.value[slot]
                if flow_value != NONE and flow.defined_at[flow_value] != slot:
                    flow_value = NONE
        flow_values.append(flow_value)
    return flow_values


def _add_derived(
    parts: Parts, assignment: BufferAssignment, analysis: Analysis, flow_values: Sequence[int]
) -> Parts:
    """The parts with live ranges, positions and uses of the assigned values.

    Args:
        flow_values: as `match_values` returns them.
    """
    parts = replace(parts, assignment=assignment)
    values = assignment.values
    # XLA prints a total and a peak only for its own assignment.
    is_dumped = assignment.origin == "dumped"
    if parts.live_ranges is None:
        schedule = [analysis.program.names[row] for row in analysis.schedule.order]
        ranges = derive_ranges(analysis, values, flow_values)
        peak_time, peak = reported_peak(analysis) if is_dumped else (None, [])
        parts.live_ranges = LiveRanges(schedule, ranges, peak_time, peak, origin="derived")
    if parts.used_values is None:
        total = sum(allocation.size_bytes for allocation in assignment.allocations)
        rows = derive_positions_and_uses(analysis, values, flow_values)
        parts.used_values = UsedValues(
            total if is_dumped else None, values, *rows, origin="derived"
        )
    return parts


def derive_ranges(
    analysis: Analysis, values: Iterable[AssignedValue], flow_values: Iterable[int]
) -> list[LiveRange]:
    """The live ranges of the values, in their order."""
    start, end = analysis.liveness.start, analysis.liveness.end
    return [
        LiveRange(value.instruction, value.shape_index, start[flow_value], end[flow_value])
        for value, flow_value in zip(values, flow_values, strict=True)
        if flow_value != NONE and start[flow_value] != NONE
    ]


def derive_positions_and_uses(
    analysis: Analysis, values: Iterable[AssignedValue], flow_values: Iterable[int]
) -> tuple[list[Position], list[Use]]:
    """The positions and uses of the values, by their ids; values are in text order."""
    names, flow = analysis.program.names, analysis.flow
    value_ids = [NONE] * len(flow)
    for value, flow_value in zip(values, flow_values, strict=True):
        if flow_value != NONE:
            value_ids[flow_value] = value.value_id
    slots_by_value: list[list[int]] = [[slot] for slot in flow.defined_at]
    for slot, flow_value in enumerate(flow.value):
        if flow_value != NONE and slot != flow.defined_at[flow_value]:
            slots_by_value[flow_value].append(slot)
    uses_by_value: list[list[int]] = [[] for _ in value_ids]
    for use, flow_value in enumerate(flow.use_value):
        uses_by_value[flow_value].append(use)
    index_texts = flow.slots.index_texts()
    positions: list[Position] = []
    uses: list[Use] = []
    for flow_value, value_id in enumerate(value_ids):
        if value_id == NONE:
            continue
        for number, slot in enumerate(slots_by_value[flow_value]):
            name = names[flow.slots.row[slot]]
            positions.append(Position(value_id, number, name, index_texts[slot]))
        for number, use in enumerate(uses_by_value[flow_value]):
            name, text = names[flow.use_row[use]], index_texts[flow.use_slot[use]]
            uses.append(Use(value_id, number, name, flow.use_operand[use], text))
    return positions, uses


def reported_peak(analysis: Analysis) -> tuple[int | None, list[PeakValue]]:
    """The peak's time and the values live then, the largest first, as XLA prints them.

    HloLiveRange adds up logical sizes over the schedule, in all memory spaces together. A value
    counts as the whole result of its defining instruction, and a tuple as its table of pointers,
    so that this is not the peak of any memory. Without a time if a shape has no size.
    """
    flow, liveness = analysis.flow, analysis.liveness
    live = [value for value, start in enumerate(liveness.start) if start != NONE]
    reported_bytes = cache(_reported_bytes)
    peak: list[PeakValue] = []
    try:
        sizes = {value: reported_bytes(flow.slots.tree(flow.row[value]), 0) for value in live}
        # XLA removes a value one time after its end, and after adding those that start then.
        intervals = [(liveness.start[v], liveness.end[v] + 1, size) for v, size in sizes.items()]
        changes = [(0, 0), *sum_changes(intervals)]
        peak_time, _ = max(changes, key=lambda change: change[1])
        for value in live:
            if liveness.start[value] <= peak_time <= liveness.end[value]:
                slot, row = flow.defined_at[value], flow.row[value]
                size = reported_bytes(flow.slots.tree(row), flow.slots.part(slot))
                name = analysis.program.names[row]
                peak.append(PeakValue(name, flow.slots.index_text(slot), size))
    except ValueError:
        return None, []
    peak.sort(key=lambda value: (-value.size_bytes, value.instruction))
    return (peak_time, peak) if live else (None, [])


def _reported_bytes(tree: ShapeTree, part: int) -> int:
    """The size of a part of a shape in HloLiveRange's account. Raises ValueError if it has none."""
    array = tree.arrays[part]
    return _POINTER_BYTES * len(tree.children[part]) if array is None else logical_bytes(array)
