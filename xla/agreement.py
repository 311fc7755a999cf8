"""Holds a dump's parts against each other, and against what follows from its HLO text."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.liveness import Derived
from .columns.parts import (
    BUFFER_ASSIGNMENT,
    LIVE_RANGE,
    USED_VALUES,
    BufferAssignment,
    LiveRange,
    Parts,
)
from .columns.program import NONE, Ints, Names
from .estimate import ranges_of, used_values
from .runs import rows_of

# Finds contradictions between a dump's parts before figures are computed from them.


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


# Holds a dump's live ranges, positions and uses against what follows from its HLO text.


def agrees(
    derived: Derived, number: Ints, values: pa.Table, tables: Mapping[str, pa.Table]
) -> bool:
    """Whether a module's live ranges, positions and uses are those of its HLO text.

    `values` are the module's values by value_id, `number` their numbers in the text;
    `tables` has live_ranges, positions and uses. Nearly all modules agree, so this compares
    numbers only; `difference` says where a module differs.
    """
    flow, liveness = derived.dataflow, derived.liveness
    ranges = tables["live_ranges"]
    named = _numbers(values, number, ranges)
    if (named == NONE).any():
        return False
    if not (
        np.array_equal(liveness.start[named], ranges["start_time"].to_numpy())
        and np.array_equal(liveness.end[named], ranges["end_time"].to_numpy())
    ):
        return False
    is_assigned = np.zeros(len(flow) + 1, bool)
    is_assigned[number] = True
    is_assigned[NONE] = False
    slots = flow.slots
    index = slots.trees.index[slots.node]
    held = np.flatnonzero(is_assigned[flow.value])
    used = np.flatnonzero(is_assigned[flow.use_value])
    positions, uses = tables["positions"], tables["uses"]
    return _same(
        (flow.value[held], slots.instruction[held], index[held]),
        (
            _numbers(values, number, positions),
            positions["instruction_id"].to_numpy(),
            _codes(slots.trees.index_texts, positions["shape_index"]),
        ),
    ) and _same(
        (
            flow.use_value[used],
            flow.use_instruction[used],
            flow.use_operand[used],
            index[flow.use_slot[used]],
        ),
        (
            _numbers(values, number, uses),
            uses["instruction_id"].to_numpy(),
            uses["operand_number"].to_numpy(),
            _codes(slots.trees.index_texts, uses["operand_shape_index"]),
        ),
    )


def _numbers(values: pa.Table, number: Ints, rows: pa.Table) -> Ints:
    """The number in the text of each row's value; NONE of a value that is not there."""
    ids, wanted = values["value_id"].to_numpy(), rows["value_id"].to_numpy()
    at = np.minimum(np.searchsorted(ids, wanted), max(len(ids) - 1, 0))
    return np.where(ids[at] == wanted, number[at], NONE)


def _codes(texts: list[str], column: pa.ChunkedArray) -> Ints:
    found = pc.index_in(column, value_set=pa.array(texts, pa.large_string()))
    codes: Ints = pc.fill_null(found, NONE).to_numpy()
    return codes


def _same(ours: tuple[Ints, ...], theirs: tuple[Ints, ...]) -> bool:
    """Whether two lists of rows, given by columns, are the same in whatever order."""
    if len(ours[0]) != len(theirs[0]) or any((column == NONE).any() for column in theirs):
        return False
    keys = [np.zeros(len(ours[0]), np.int64), np.zeros(len(ours[0]), np.int64)]
    for mine, other in zip(ours, theirs, strict=True):
        width = int(max(mine.max(initial=0), other.max(initial=0))) + 1
        keys = [key * width + column for key, column in zip(keys, (mine, other), strict=True)]
    return np.array_equal(np.sort(keys[0]), np.sort(keys[1]))


def difference(parts: Parts, derived: Derived) -> str | None:
    """The first value whose live range, positions or uses differ; None if all agree.

    None too if a part is missing.
    """
    if parts.buffer_assignment is None:
        return None
    if parts.live_range is None or parts.used_values is None:
        return None
    return _ranges(parts, derived) or _places(parts, derived)


def _ranges(parts: Parts, derived: Derived) -> str | None:
    assert parts.buffer_assignment is not None
    assert parts.live_range is not None
    values = parts.buffer_assignment.values
    ours = ranges_of(derived, values)
    at = pc.index_in(values["value_id"], value_set=ours["value_id"].combine_chunks())
    named = values.filter(pc.is_valid(at)).select(["instruction", "shape_index"])
    found = ours.take(at.drop_null())
    worked_out = named.append_column("start_time", found["start_time"]).append_column(
        "end_time", found["end_time"]
    )
    # Constants may lack a live range in the dump.
    differing = _only_in(parts.live_range.ranges, worked_out)
    if differing is None:
        return None
    name = f"{differing['instruction']}{differing['shape_index']}"
    lives = f"{differing['start_time']} to {differing['end_time']}"
    return f"{name} lives from {lives} in the dump, otherwise by the HLO text"


def _places(parts: Parts, derived: Derived) -> str | None:
    assert parts.buffer_assignment is not None
    assert parts.used_values is not None
    ours = used_values(parts.buffer_assignment, derived)
    for what, theirs, worked_out, number in (
        ("position", parts.used_values.positions, ours.positions, "position_index"),
        ("use", parts.used_values.uses, ours.uses, "use_index"),
    ):
        # The text does not say in which order XLA lists them.
        theirs, worked_out = theirs.drop_columns(number), worked_out.drop_columns(number)
        if _equal(theirs, worked_out):
            continue
        for row, where in (
            (_only_in(theirs, worked_out), "is in the dump and does not follow from the HLO text"),
            (_only_in(worked_out, theirs), "follows from the HLO text and is not in the dump"),
        ):
            if row is not None:
                return f"value {row['value_id']}: {what} {row['instruction']} {where}"
    return None


def _equal(rows: pa.Table, others: pa.Table) -> bool:
    """Whether two tables have the same rows, in whatever order.

    Nearly all modules agree, so this is quicker than to look for a row that differs.
    """
    if len(rows) != len(others):
        return False
    keys = np.zeros(len(rows) + len(others), np.int64)
    for name in rows.column_names:
        both = pa.chunked_array([*rows[name].chunks, *others[name].cast(rows[name].type).chunks])
        codes = both.combine_chunks().dictionary_encode().indices.to_numpy()
        keys = keys * (int(codes.max(initial=0)) + 1) + codes
        # Small numbers again, so that the next column has room.
        keys = np.unique(keys, return_inverse=True)[1]
    return np.array_equal(np.sort(keys[: len(rows)]), np.sort(keys[len(rows) :]))


def _only_in(rows: pa.Table, others: pa.Table) -> dict[str, object] | None:
    """The first row, by its order, that is not among the others; None if all are."""
    keys = rows.column_names
    counted = pa.Table.from_arrays(rows.columns, names=keys)
    numbered = counted.append_column("row", pa.array(range(len(rows)), pa.int64()))
    aligned = others.select(keys).cast(counted.schema)
    left = numbered.join(aligned, keys=keys, join_type="left anti")
    if not len(left):
        return None
    first = int(pc.min(left["row"]).as_py())
    found: dict[str, object] = rows.slice(first, 1).to_pylist()[0]
    return found
