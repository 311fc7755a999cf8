"""Finds contradictions between a dump's parts before figures are computed from them."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .instruction_names import Names
from .parts import BUFFER_ASSIGNMENT, LIVE_RANGE, USED_VALUES, BufferAssignment, LiveRange, Parts
from .value_ids import rows_of


class Contradiction(NamedTuple):
    """A part, by its name in `parts`, and how it contradicts the other parts."""

    part: str
    message: str


def contradictions(
    parts: Parts, names: Names, ranges: pa.Table | None, lost: list[Contradiction]
) -> list[Contradiction]:
    """All contradictions between the parts.

    ranges: the live ranges that have a value, by value_id; lost: the contradictions of the
    live ranges without a value.
    """
    found = _doubled(parts.doubled)
    if parts.buffer_assignment is not None:
        found += [
            *_allocation_contradictions(parts, names),
            *_misplaced(parts.buffer_assignment),
            *lost,
            *_lifeless(parts.buffer_assignment, ranges),
            *_beyond_schedule(parts.live_range),
        ]
    return found


def _doubled(doubled: list[str]) -> list[Contradiction]:
    """Each part that is in two files, because the files may be of two dumps."""
    return [
        Contradiction(part, f"{part} is in two files: keep only this dump's")
        for part in sorted(set(doubled))
    ]


def _allocation_contradictions(parts: Parts, names: Names) -> list[Contradiction]:
    """How Used values contradicts BufferAssignment."""
    assignment, used = parts.buffer_assignment, parts.used_values
    if assignment is None or used is None:
        return []
    found = []
    total = pc.sum(assignment.allocations["size_bytes"]).as_py()
    if used.total_bytes not in (None, total):
        found.append(
            f"the allocations add up to {total} bytes, 'Total bytes used' says {used.total_bytes}"
        )
    ids, used_ids = assignment.values["value_id"], used.values["value_id"]
    missing = rows_of(used_ids, ids).null_count
    extra = rows_of(ids, used_ids).null_count
    if missing:
        found.append(f"{missing} values of BufferAssignment are not in Used values")
    if extra:
        found.append(f"{extra} values of Used values are not in BufferAssignment")
    other = _otherwise_named(parts, names)
    if other:
        found.append(f"{other} values have another name or space than in BufferAssignment")
    return [Contradiction(USED_VALUES, why) for why in found]


def _otherwise_named(parts: Parts, names: Names) -> int:
    """The number of value_ids that mean different values in the two parts."""
    assert parts.buffer_assignment is not None
    assert parts.used_values is not None
    assigned = names.numbered(parts.buffer_assignment.values, "values")
    used = names.numbered(parts.used_values.values, "used_values")
    at = rows_of(used["value_id"], assigned["value_id"])
    differs = pa.scalar(False)
    for column in ("instruction_id", "shape_index", "memory_space"):
        differs = pc.or_(differs, pc.not_equal(assigned[column], used[column].take(at)))
    return pc.sum(differs).as_py() or 0


def _lifeless(assignment: BufferAssignment, ranges: pa.Table | None) -> list[Contradiction]:
    """Values in temp allocations that have no live range.

    Thread-local values and some constants have none (`tpu/decode-v5e`, constant.200).
    """
    if ranges is None:
        return []
    allocations = assignment.allocations
    temp = allocations["allocation_index"].filter(allocations["is_temp"]).combine_chunks()
    values = assignment.values.filter(
        pc.is_in(assignment.values["allocation_index"], value_set=temp)
    )
    lifeless = values.filter(pc.is_null(rows_of(ranges["value_id"], values["value_id"])))
    if not len(lifeless):
        return []
    first = f"{lifeless['instruction'][0]}{lifeless['shape_index'][0]}"
    why = f"{len(lifeless)} values have no live range, the first is {first}"
    return [Contradiction(LIVE_RANGE, why)]


def _misplaced(assignment: BufferAssignment) -> list[Contradiction]:
    """Values that are not within their allocation."""
    values, allocations = assignment.values, assignment.allocations
    at = pc.index_in(
        values["allocation_index"], value_set=allocations["allocation_index"].combine_chunks()
    )
    end = pc.add(values["offset_bytes"], values["size_bytes"])
    beyond = values.filter(pc.greater(end, allocations["size_bytes"].take(at)))
    if not len(beyond):
        return []
    first = f"{beyond['instruction'][0]}{beyond['shape_index'][0]}"
    why = f"{len(beyond)} values reach beyond their allocation, the first is {first}"
    return [Contradiction(BUFFER_ASSIGNMENT, why)]


def _beyond_schedule(live_range: LiveRange | None) -> list[Contradiction]:
    """Live ranges that end after the schedule."""
    if live_range is None:
        return []
    beyond = live_range.ranges.filter(
        pc.greater(live_range.ranges["end_time"], live_range.schedule_length)
    )
    if not len(beyond):
        return []
    first = f"{beyond['instruction'][0]}{beyond['shape_index'][0]}"
    why = f"{len(beyond)} live ranges end after the schedule, the first is that of {first}"
    return [Contradiction(LIVE_RANGE, why)]


def disagreements(header: Mapping[str, object], tables: Mapping[str, pa.Table]) -> list[str]:
    """Where a module's rows are at odds with its HLO text, the first of each kind.

    These leave the figures as they are: `memhouse verify` would name them as breaches.
    """
    found = []
    if (difference := header.get("liveness_difference")) is not None:
        found.append(str(difference))
    instructions = tables.get("instructions")
    if instructions is None or "computations" not in tables:
        return found
    nowhere = instructions.filter(pc.is_null(instructions["computation"]))
    if len(nowhere):
        first = nowhere["instruction"][0]
        found.append(f"{len(nowhere)} names are not in the HLO text, the first is {first}")
    computations = tables["computations"]
    called = tables["calls"]["computation"] if "calls" in tables else pa.array([], pa.string())
    idle = computations.filter(
        pc.invert(pc.or_(computations["is_entry"], _is_in(computations["computation"], called)))
    )
    if len(idle):
        found.append(f"computation {idle['computation'][0]} is not called")
    if "stack_frame_id" in instructions.column_names:
        found += _frameless(instructions, tables.get("stack_frames"))
    values = tables.get("values")
    if values is not None and "shape" in values.column_names:
        whole = values.filter(pc.equal(values["shape_index"], "{}"))
        shape = instructions["shape"].take(whole["instruction_id"])
        differs = pc.not_equal(whole["shape"].cast(shape.type), shape)
        other, shape = whole.filter(differs), shape.filter(differs)
        # Some writers of texts leave the numbers of a tuple's elements out.
        same = pc.equal(_unnumbered(other["shape"]), _unnumbered(shape))
        other = other.filter(pc.invert(same))
        if len(other):
            found.append(f"value {other['value_id'][0]} has not the shape of its instruction")
        small = values.filter(pc.less(values["size_bytes"], values["logical_bytes"]))
        if len(small):
            first = small.slice(0, 1).to_pylist()[0]
            found.append(
                f"value {first['value_id']} takes {first['size_bytes']} bytes, and its elements "
                f"{first['logical_bytes']}"
            )
    return found


def _frameless(instructions: pa.Table, frames: pa.Table | None) -> list[str]:
    """The stack frames that are referred to and not there, or that lack a file or a function."""
    ids = frames["stack_frame_id"] if frames is not None else pa.array([], pa.int32())
    used = instructions.filter(pc.is_valid(instructions["computation"]))["stack_frame_id"]
    missing = used.filter(pc.invert(_is_in(used, ids))).drop_null()
    found = [f"stack frame {missing[0]} is not there"] if len(missing) else []
    if frames is not None:
        callers = frames["parent_frame_id"]
        missing = callers.filter(pc.invert(_is_in(callers, ids))).drop_null()
        if len(missing):
            found.append(f"stack frame {missing[0]}, which calls another, is not there")
        empty = pc.or_(pc.is_null(frames["file"]), pc.is_null(frames["function"]))
        if pc.any(empty).as_py():
            found.append(f"stack frame {ids.filter(empty)[0]} has no file or no function")
    return found


def _unnumbered(shapes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Shapes without the comments that number a tuple's elements."""
    return pc.replace_substring_regex(shapes.cast(pa.string()), r"/\*index=\d+\*/", "")


def _is_in(column: pa.ChunkedArray, known: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    whole = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    return pc.is_in(column, value_set=whole.cast(column.type))
