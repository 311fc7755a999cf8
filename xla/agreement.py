"""Contradictions between the parts of a dump, and between them and its HLO text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from .analysis import Analysis
from .complete import derive_positions_and_uses, derive_ranges
from .parts import (
    BUFFER_ASSIGNMENT,
    LIVE_RANGE,
    USED_VALUES,
    AssignedValue,
    BufferAssignment,
    LiveRange,
    LiveRanges,
    Parts,
    Position,
    Use,
    UsedValues,
)
from .program import NONE, Program

_ELEMENT_NUMBER = re.compile(r"/\*index=\d+\*/")


class Contradiction(NamedTuple):
    """A contradiction of a part, by its name in `parts`, to the other parts."""

    part: str
    message: str


def match_live_ranges(
    live_ranges: Iterable[LiveRange], values: Iterable[AssignedValue]
) -> tuple[dict[int, LiveRange], list[LiveRange]]:
    """The live ranges by value_id, ascending, and those without a value in the assignment.

    XLA prints no value ids there: the instruction and the shape index identify the value.

    Args:
        values: in ascending order of value_id.
    """
    value_ids: dict[tuple[str, str], int] = {}
    for value in values:
        value_ids.setdefault((value.instruction, value.shape_index), value.value_id)
    range_by_value_id: dict[int, LiveRange] = {}
    ranges_without_value: list[LiveRange] = []
    for live_range in live_ranges:
        value_id = value_ids.get((live_range.instruction, live_range.shape_index))
        if value_id is None:
            ranges_without_value.append(live_range)
        else:
            range_by_value_id.setdefault(value_id, live_range)
    return dict(sorted(range_by_value_id.items())), ranges_without_value


def contradictions(
    parts: Parts,
    range_by_value_id: Mapping[int, LiveRange],
    ranges_without_value: Sequence[LiveRange],
) -> list[Contradiction]:
    """All contradictions between the parts.

    Args:
        range_by_value_id, ranges_without_value: as `match_live_ranges` returns them.
    """
    result = [
        Contradiction(part, f"{part} is in two files: keep only this dump's")
        for part in sorted(set(parts.duplicated))
    ]
    assignment = parts.assignment
    if assignment is None:
        return result
    if parts.used_values is not None:
        messages = _differing_values(assignment, parts.used_values)
        result += [Contradiction(USED_VALUES, message) for message in messages]
    result += [Contradiction(BUFFER_ASSIGNMENT, text) for text in _oversized_values(assignment)]
    if parts.live_ranges is not None:
        messages = _live_range_contradictions(
            assignment, parts.live_ranges, range_by_value_id, ranges_without_value
        )
        result += [Contradiction(LIVE_RANGE, message) for message in messages]
    return result


def _differing_values(assignment: BufferAssignment, used: UsedValues) -> list[str]:
    """Contradictions of Used values with BufferAssignment, as messages."""
    messages = []
    total = sum(allocation.size_bytes for allocation in assignment.allocations)
    if used.total_bytes not in (None, total):
        messages.append(
            f"the allocations add up to {total} bytes, 'Total bytes used' says {used.total_bytes}"
        )
    used_by_id: dict[int, AssignedValue] = {}
    for value in used.values:
        used_by_id.setdefault(value.value_id, value)
    assigned_ids = {value.value_id for value in assignment.values}
    missing = sum(value.value_id not in used_by_id for value in assignment.values)
    extra = sum(value.value_id not in assigned_ids for value in used.values)
    if missing:
        messages.append(f"{missing} values of BufferAssignment are not in Used values")
    if extra:
        messages.append(f"{extra} values of Used values are not in BufferAssignment")
    identity = attrgetter("instruction", "shape_index", "memory_space")
    differing = sum(
        identity(value) != identity(used_by_id[value.value_id])
        for value in assignment.values
        if value.value_id in used_by_id
    )
    if differing:
        messages.append(f"{differing} values have another name or space than in BufferAssignment")
    return messages


def _oversized_values(assignment: BufferAssignment) -> list[str]:
    """A message about the values that are not within their allocation, if there are any."""
    sizes = {
        allocation.allocation_index: allocation.size_bytes for allocation in assignment.allocations
    }
    beyond = [
        value
        for value in assignment.values
        if value.allocation_index is not None
        and value.offset_bytes is not None
        and value.size_bytes is not None
        and value.offset_bytes + value.size_bytes
        > sizes.get(value.allocation_index, value.offset_bytes + value.size_bytes)
    ]
    return _counted(beyond, "values reach beyond their allocation, the first is")


def _live_range_contradictions(
    assignment: BufferAssignment,
    dumped: LiveRanges,
    range_by_value_id: Mapping[int, LiveRange],
    ranges_without_value: Sequence[LiveRange],
) -> list[str]:
    """Contradictions of the live ranges with the assignment and the schedule, as messages.

    Every value in a temp allocation must have a live range. Thread-local values and some constants
    have none (constant.200 in the sample dump `tpu/decode-v5e`). A range may end at the program's
    end, `len(schedule)`.

    Args:
        dumped: the part with the schedule and all ranges.
        range_by_value_id, ranges_without_value: as `match_live_ranges` returns them.
    """
    temps = {
        allocation.allocation_index for allocation in assignment.allocations if allocation.is_temp
    }
    missing = [
        value
        for value in assignment.values
        if value.allocation_index in temps and value.value_id not in range_by_value_id
    ]
    late = [row for row in dumped.ranges if row.end_time > len(dumped.schedule)]
    return [
        *_counted(ranges_without_value, "live ranges have no value, the first is that of"),
        *_counted(missing, "values have no live range, the first is"),
        *_counted(late, "live ranges end after the schedule, the first is that of"),
    ]


def _counted(rows: Sequence[LiveRange | AssignedValue], phrase: str) -> list[str]:
    """A message with the number of the rows and the name of the first; none without rows."""
    if not rows:
        return []
    return [f"{len(rows)} {phrase} {rows[0].instruction}{rows[0].shape_index}"]


def disagreements(
    program: Program, names: Sequence[str], values: Iterable[AssignedValue]
) -> list[str]:
    """Messages about names, calls, frames and values that do not fit the HLO text.

    One message of a kind, about its first case. None of these changes a metric; `memhouse verify`
    would list them as violations.

    Args:
        names: all instruction names of the dump: those of the text, in its order, then the names
            that only other parts have.
    """
    messages = []
    unknown = names[len(program) :]
    if unknown:
        messages.append(f"{len(unknown)} names are not in the HLO text, the first is {unknown[0]}")
    called = {callee for calls in program.calls.values() for _, callee in calls}
    for computation, name in enumerate(program.computation_names):
        if computation != program.entry and computation not in called:
            messages.append(f"computation {name} is not called")
            break
    messages += _frame_disagreements(program)
    messages += _value_disagreements(program, values)
    return messages


def _frame_disagreements(program: Program) -> list[str]:
    """Messages about the first stack frame of each kind that is missing or incomplete."""
    frames = program.frames
    messages = []
    used = (metadata.stack_frame_id for metadata in program.metadata)
    for frame_id in used:
        if frame_id is not None and frame_id not in frames:
            messages.append(f"stack frame {frame_id} is missing")
            break
    for frame in frames.values():
        parent = frame.parent_frame_id
        if parent is not None and parent not in frames:
            messages.append(f"stack frame {parent}, which calls another, is missing")
            break
    for frame_id, frame in frames.items():
        if frame.file is None or frame.function is None:
            messages.append(f"stack frame {frame_id} has no file or no function")
            break
    return messages


def _value_disagreements(program: Program, values: Iterable[AssignedValue]) -> list[str]:
    """Messages about the first value whose shape is not its instruction's, and the first too small.

    Too small is a value that takes fewer bytes than its elements.
    """
    reshaped = small = None
    for value in values:
        row = program.row_of.get(value.instruction, NONE)
        if reshaped is None and row != NONE and value.shape_index == "{}":
            shape = program.shape[row]
            # Some writers of texts leave out the comments that number a tuple's elements.
            if value.shape not in (None, shape) and _ELEMENT_NUMBER.sub(
                "", value.shape
            ) != _ELEMENT_NUMBER.sub("", shape):
                reshaped = f"value {value.value_id} has not the shape of its instruction"
        if (
            small is None
            and value.size_bytes is not None
            and value.logical_bytes is not None
            and value.size_bytes < value.logical_bytes
        ):
            small = (
                f"value {value.value_id} takes {value.size_bytes} bytes, and its elements "
                f"{value.logical_bytes}"
            )
    return [message for message in (reshaped, small) if message is not None]


def difference(
    parts: Parts, analysis: Analysis, values: Sequence[AssignedValue], flow_values: Sequence[int]
) -> str | None:
    """A message about the first live range, position or use in which dump and text differ.

    None if all agree, or a part is missing. The dump may lack the live ranges of constants. A live
    range without a value is a contradiction of its own.

    Args:
        values, flow_values: as `match_values` takes and returns them.
    """
    if parts.live_ranges is None or parts.used_values is None:
        return None
    names = {(value.instruction, value.shape_index) for value in values}
    derived_ranges = {row[:2]: row for row in derive_ranges(analysis, values, flow_values)}
    for row in parts.live_ranges.ranges:
        if row[:2] in names and derived_ranges.get(row[:2]) != row:
            name, index, start, end = row
            return (
                f"{name}{index} lives from {start} to {end} in the dump, otherwise by the HLO text"
            )
    positions, uses = derive_positions_and_uses(analysis, values, flow_values)
    return _row_difference("position", parts.used_values.positions, positions) or _row_difference(
        "use", parts.used_values.uses, uses
    )


def _row_difference(
    kind: str, dumped: Sequence[Position | Use], derived: Sequence[Position | Use]
) -> str | None:
    """A message about the first row that is on one side only, its index aside.

    The text does not determine the order in which XLA lists the rows.
    """
    # A dict keeps the order of its keys, a set does not.
    dumped_rows, derived_rows = (
        dict.fromkeys((row[0], *row[2:]) for row in rows) for rows in (dumped, derived)
    )
    if dumped_rows.keys() == derived_rows.keys():
        return None
    for rows, others, phrase in (
        (dumped_rows, derived_rows, "is in the dump and does not follow from the HLO text"),
        (derived_rows, dumped_rows, "follows from the HLO text and is not in the dump"),
    ):
        for row in rows:
            if row not in others:
                return f"value {row[0]}: {kind} {row[1]} {phrase}"
    return None
