"""Joins what the readers found in a module's files into the rows of the warehouse's tables."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..readers.buffer_assignment import BufferAssignment
from ..readers.hlo_text import HloText
from ..readers.live_range import LiveRange
from ..readers.sections import BUFFER_ASSIGNMENT, LIVE_RANGE, USED_VALUES
from ..readers.used_values import UsedValues
from .metrics import memory_tables


@dataclass
class Parts:
    """What was read of one module; a part that is missing or unreadable is None.

    `sections` names the parts of buffer assignment that its files hold: one may stand in two.
    """

    buffer_assignment: BufferAssignment | None = None
    used_values: UsedValues | None = None
    live_range: LiveRange | None = None
    space_names: pa.Table | None = None
    hlo: HloText | None = None
    sections: list[str] = field(default_factory=list)


class Contradiction(NamedTuple):
    """What one part of a dump, by its name in `sections`, says against the others."""

    part: str
    message: str


@dataclass
class Module:
    """A module's rows by table, without their module_id, and what contradicts what.

    `header` has the columns of its row in `modules`.
    """

    header: dict[str, object]
    tables: dict[str, pa.Table]
    contradictions: list[Contradiction] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The memory its rows take."""
        return sum(table.nbytes for table in self.tables.values())


def join_parts(parts: Parts) -> Module:
    """Number the instructions, find each live range's value, and work out the figures.

    Figures that the parts do not support, because one is missing or contradicts another,
    are null.
    """
    names = _Names(parts)
    values = _values(parts, names)
    ranges, lost = _live_ranges(parts.live_range, values, names)
    tables: dict[str, pa.Table] = {"instructions": _instructions(parts, names)}
    if len(values):
        tables["values"] = values
    if parts.used_values is not None:
        tables["positions"] = names.numbered(parts.used_values.positions, "positions")
        tables["uses"] = names.numbered(parts.used_values.uses, "uses")
    if ranges is not None:
        tables["live_ranges"] = ranges
    if parts.live_range is not None:
        tables["reported_peak"] = parts.live_range.peak
    if parts.hlo is not None:
        tables |= _hlo_tables(parts.hlo, names)
    contradictions = _doubled(parts.sections)
    if parts.buffer_assignment is not None:
        tables["allocations"] = parts.buffer_assignment.allocations
        contradictions += [
            *_allocation_contradictions(parts, names),
            *_misplaced(parts.buffer_assignment),
            *lost,
            *_lifeless(parts.buffer_assignment, ranges),
            *_beyond_schedule(parts.live_range),
        ]
        complete = not contradictions
        schedule = (
            names.numbered(parts.live_range.schedule, "schedule") if parts.live_range else None
        )
        tables |= memory_tables(
            tables["allocations"],
            values,
            ranges if complete else None,
            schedule,
            complete=complete,
        )
    tables["memory_spaces"] = _memory_spaces(parts)
    filled = {name: table for name, table in tables.items() if len(table)}
    return Module(_header(parts), filled, contradictions)


def _header(parts: Parts) -> dict[str, object]:
    header: dict[str, object] = {}
    if parts.hlo is not None:
        header |= parts.hlo.header
    if parts.used_values is not None:
        header["reported_total_bytes"] = parts.used_values.total_bytes
    if parts.live_range is not None:
        header["schedule_length"] = parts.live_range.schedule_length
        header["reported_peak_time"] = parts.live_range.peak_time
        if parts.live_range.peak_time is not None:
            header["reported_peak_bytes"] = pc.sum(parts.live_range.peak["size_bytes"]).as_py() or 0
    return header


class _Names:
    """The module's instruction names, numbered in the order in which they are first seen.

    Names are the same text in all of a module's files, so the number is the key by which
    everything joins from here on.
    """

    def __init__(self, parts: Parts) -> None:
        columns = _name_columns(parts)
        chunks = [chunk for column in columns.values() for chunk in column.chunks]
        # All columns at once: each name is looked up once.
        encoded = pa.concat_arrays(chunks or [pa.array([], pa.large_string())]).dictionary_encode()
        self.unique = encoded.dictionary
        ends = np.cumsum([len(column) for column in columns.values()])
        self.numbers = {
            name: encoded.indices[end - len(column) : end]
            for (name, column), end in zip(columns.items(), ends.tolist(), strict=True)
        }

    def numbered(self, table: pa.Table, column: str) -> pa.Table:
        """The table with instruction_id in the place of the instruction's name."""
        at = table.schema.get_field_index("instruction")
        return table.set_column(at, "instruction_id", self.numbers[column])


def _name_columns(parts: Parts) -> dict[str, pa.ChunkedArray]:
    """Every column of instruction names."""
    hlo, used, assignment = parts.hlo, parts.used_values, parts.buffer_assignment
    columns = {}
    if hlo is not None:
        # First, so that numbers follow the text's order: computation by computation.
        columns["definitions"] = hlo.instructions["instruction"]
        columns["operand"] = hlo.operands["operand"]
        columns["operands"] = hlo.operands["instruction"]
        columns["calls"] = hlo.calls["instruction"]
    if parts.live_range is not None:
        columns["schedule"] = parts.live_range.schedule["instruction"]
    if used is not None:
        columns["used_values"] = used.values["instruction"]
        columns["positions"] = used.positions["instruction"]
        columns["uses"] = used.uses["instruction"]
    if assignment is not None:
        columns["values"] = assignment.values["instruction"]
    if parts.live_range is not None:
        columns["ranges"] = parts.live_range.ranges["instruction"]
    return columns


def _values(parts: Parts, names: _Names) -> pa.Table:
    """All values, in order of their ids; sizes are null without BufferAssignment."""
    tables = []
    if parts.buffer_assignment is not None:
        assigned = names.numbered(parts.buffer_assignment.values, "values")
        tables.append(assigned)
    if parts.used_values is not None:
        used = names.numbered(parts.used_values.values, "used_values")
        if tables:
            known = pc.is_in(used["value_id"], value_set=tables[0]["value_id"].combine_chunks())
            used = used.filter(pc.invert(known))
        tables.append(used)
    if not tables:
        return pa.table({"value_id": pa.array([], pa.int32())})
    return pa.concat_tables(tables, promote_options="default").sort_by("value_id")


def _live_ranges(
    live_range: LiveRange | None, values: pa.Table, names: _Names
) -> tuple[pa.Table | None, list[Contradiction]]:
    """The ranges by value_id, and a word about those that find no value.

    XLA prints no value numbers here: (instruction, shape index) finds the value.
    """
    if live_range is None or "instruction_id" not in values.column_names:
        return None, []
    ranges = live_range.ranges
    indices = pc.unique(
        pa.chunked_array([*values["shape_index"].chunks, *ranges["shape_index"].chunks])
    )

    def key(instruction_id: pa.Array, shape_index: pa.ChunkedArray) -> pa.Array:
        code = pc.index_in(shape_index, value_set=indices).combine_chunks()
        return pc.add(
            pc.multiply(instruction_id.cast(pa.int64()), len(indices)), code.cast(pa.int64())
        )

    at = pc.index_in(
        key(names.numbers["ranges"], ranges["shape_index"]),
        value_set=key(values["instruction_id"].combine_chunks(), values["shape_index"]),
    )
    found = pa.table(
        {
            "value_id": values["value_id"].take(at),
            "start_time": ranges["start_time"],
            "end_time": ranges["end_time"],
        }
    )
    if at.null_count:
        row = int(np.argmax(pc.is_null(at).to_numpy(zero_copy_only=False)))
        name = f"{ranges['instruction'][row]}{ranges['shape_index'][row]}"
        why = f"{at.null_count} live ranges have no value, the first is that of {name}"
        return found.drop_null().sort_by("value_id"), [Contradiction(LIVE_RANGE, why)]
    return found.sort_by("value_id"), []


def _doubled(sections: list[str]) -> list[Contradiction]:
    """A word about each part that stands in two files: they may be of two dumps."""
    return [
        Contradiction(part, f"{part} stands in two files: keep only this dump's")
        for part in sorted(set(sections))
        if sections.count(part) > 1
    ]


def _allocation_contradictions(parts: Parts, names: _Names) -> list[Contradiction]:
    """What Used values says against BufferAssignment."""
    assignment, used = parts.buffer_assignment, parts.used_values
    if assignment is None or used is None:
        return []
    found = []
    total = pc.sum(assignment.allocations["size_bytes"]).as_py()
    if total != used.total_bytes:
        found.append(
            f"the allocations add up to {total} bytes, 'Total bytes used' says {used.total_bytes}"
        )
    ids, used_ids = assignment.values["value_id"], used.values["value_id"]
    missing = pc.sum(pc.invert(pc.is_in(ids, value_set=used_ids.combine_chunks()))).as_py() or 0
    extra = pc.sum(pc.invert(pc.is_in(used_ids, value_set=ids.combine_chunks()))).as_py() or 0
    if missing:
        found.append(f"{missing} values of BufferAssignment are not in Used values")
    if extra:
        found.append(f"{extra} values of Used values are not in BufferAssignment")
    other = _otherwise_named(parts, names)
    if other:
        found.append(f"{other} values have another name or space than in BufferAssignment")
    return [Contradiction(USED_VALUES, why) for why in found]


def _otherwise_named(parts: Parts, names: _Names) -> int:
    """How many values both parts list under one number, but not as the same value."""
    assert parts.buffer_assignment is not None
    assert parts.used_values is not None
    assigned = names.numbered(parts.buffer_assignment.values, "values")
    used = names.numbered(parts.used_values.values, "used_values")
    at = pc.index_in(assigned["value_id"], value_set=used["value_id"].combine_chunks())
    differs = pa.scalar(False)
    for column in ("instruction_id", "shape_index", "memory_space"):
        differs = pc.or_(differs, pc.not_equal(assigned[column], used[column].take(at)))
    return pc.sum(differs).as_py() or 0


def _lifeless(assignment: BufferAssignment, ranges: pa.Table | None) -> list[Contradiction]:
    """A word about values that share memory over time and have no live range.

    Thread-local values have none, nor have some constants (`tpu/decode-v5e`, constant.200).
    """
    if ranges is None:
        return []
    allocations = assignment.allocations
    temp = allocations["allocation_index"].filter(allocations["is_temp"]).combine_chunks()
    values = assignment.values.filter(
        pc.is_in(assignment.values["allocation_index"], value_set=temp)
    )
    lives = ranges["value_id"].combine_chunks()
    lifeless = values.filter(pc.invert(pc.is_in(values["value_id"], value_set=lives)))
    if not len(lifeless):
        return []
    first = f"{lifeless['instruction'][0]}{lifeless['shape_index'][0]}"
    why = f"{len(lifeless)} values have no live range, the first is {first}"
    return [Contradiction(LIVE_RANGE, why)]


def _misplaced(assignment: BufferAssignment) -> list[Contradiction]:
    """A word about values that do not lie within their allocation."""
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
    """A word about lives that end after the program does."""
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


def _instructions(parts: Parts, names: _Names) -> pa.Table:
    """A row per name, with what its definition says and its time in the schedule."""
    table = pa.table(
        {
            "instruction_id": pa.array(np.arange(len(names.unique)), pa.int32()),
            "instruction": names.unique,
        }
    )
    if parts.live_range is not None:
        times = _first_rows(names.numbers["schedule"], len(table))
        table = table.append_column(
            "schedule_time", parts.live_range.schedule["schedule_time"].take(times)
        )
    if parts.hlo is not None:
        defined = parts.hlo.instructions
        at = _first_rows(names.numbers["definitions"], len(table))
    elif parts.used_values is not None and parts.used_values.definitions is not None:
        # Used values repeat the definitions of HLO text.
        defined = parts.used_values.definitions
        at = pc.index_in(names.unique, value_set=defined["instruction"].combine_chunks())
    else:
        return table
    for column in defined.column_names:
        if column != "instruction":
            table = table.append_column(column, defined[column].take(at))
    return table


def _first_rows(numbers: pa.Int32Array, count: int) -> pa.Int64Array:
    """Of each number up to `count`, the first row that has it; null if none has."""
    rows = np.full(count, -1)
    rows[numbers.to_numpy()[::-1]] = np.arange(len(numbers))[::-1]
    return pa.array(rows, mask=rows < 0)


def _hlo_tables(hlo: HloText, names: _Names) -> dict[str, pa.Table]:
    """The tables that only HLO text fills."""
    operands = names.numbered(hlo.operands, "operands")
    operand_at = operands.schema.get_field_index("operand")
    tables = {
        "computations": hlo.computations,
        "operands": operands.set_column(
            operand_at, "operand_instruction_id", names.numbers["operand"]
        ),
        "calls": names.numbered(hlo.calls, "calls"),
        "stack_frames": hlo.stack_frames,
    }
    if hlo.entry_shapes is not None:
        tables["entry_shapes"] = hlo.entry_shapes
    return tables


def _memory_spaces(parts: Parts) -> pa.Table:
    """Every space that an allocation is in or the usage report names."""
    none = pa.table(
        {"memory_space": pa.array([], pa.int32()), "space_name": pa.array([], pa.large_string())}
    )
    named = parts.space_names if parts.space_names is not None else none
    if parts.buffer_assignment is None:
        return named
    used = pc.unique(parts.buffer_assignment.allocations["memory_space"])
    unnamed = used.filter(
        pc.invert(pc.is_in(used, value_set=named["memory_space"].combine_chunks()))
    )
    rest = pa.table(
        {"memory_space": unnamed, "space_name": pa.nulls(len(unnamed), pa.large_string())}
    )
    return pa.concat_tables([named, rest]).sort_by("memory_space")
