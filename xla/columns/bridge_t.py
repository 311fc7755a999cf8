"""Between the plain parts of a dump and their tables, in both directions, until all is plain."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from .. import parts as plain
from ..program import NotUnderstood, Program, Unread
from . import parts as columns
from .bridge_p import hlo_tables

_TEXT, _ID, _SIZE, _FLAG = pa.large_string(), pa.int32(), pa.int64(), pa.bool_()
_ALLOCATIONS = pa.schema(
    {
        "allocation_index": _ID,
        "memory_space": _ID,
        "size_bytes": _SIZE,
        "is_parameter": _FLAG,
        "parameter_number": _ID,
        "parameter_shape_index": _TEXT,
        "is_output": _FLAG,
        "is_constant": _FLAG,
        "is_thread_local": _FLAG,
        "maybe_live_out": _FLAG,
        "is_temp": _FLAG,
        "shape": _TEXT,
        "address": _SIZE,
    }
)
_VALUE_NAMES = {
    "value_id": _ID,
    "instruction": _TEXT,
    "shape_index": _TEXT,
    "is_phi": _FLAG,
    "memory_space": _ID,
}
_VALUES = pa.schema(
    {
        **_VALUE_NAMES,
        "allocation_index": _ID,
        "offset_bytes": _SIZE,
        "size_bytes": _SIZE,
        "logical_bytes": _SIZE,
        "shape": _TEXT,
        "element_type": pa.string(),
    }
)
_POSITIONS = pa.schema(
    {"value_id": _ID, "position_index": _SIZE, "instruction": _TEXT, "shape_index": _TEXT}
)
_USES = pa.schema(
    {
        "value_id": _ID,
        "use_index": _SIZE,
        "instruction": _TEXT,
        "operand_number": _ID,
        "operand_shape_index": _TEXT,
    }
)
_RANGES = pa.schema(
    {"instruction": _TEXT, "shape_index": _TEXT, "start_time": _ID, "end_time": _ID}
)
_PEAK = pa.schema({"instruction": _TEXT, "shape_index": _TEXT, "size_bytes": _SIZE})
_SPACES = pa.schema({"memory_space": _ID, "space_name": _TEXT})


def part_as_tables(part: Any) -> Any:
    """A plain part, or the names of the memory spaces, as tables; any other object as it is."""
    match part:
        case Program():
            return hlo_tables(part)
        case dict():
            return _table(part.items(), _SPACES)
        case plain.BufferAssignment():
            return columns.BufferAssignment(
                _table(part.allocations, _ALLOCATIONS),
                _table(part.values, _VALUES),
                part.origin,
                part.peak_high,
                _notes(part.not_understood),
                tuple(columns.Unread(*note) for note in part.unread),
                part.is_complete,
            )
        case plain.UsedValues():
            names = (value[: len(_VALUE_NAMES)] for value in part.values)
            return columns.UsedValues(
                part.total_bytes,
                _table(names, pa.schema(_VALUE_NAMES)),
                _table(part.positions, _POSITIONS),
                _table(part.uses, _USES),
                None,
                part.origin,
                _notes(part.not_understood),
            )
        case plain.LiveRanges():
            peak = _table(part.peak, _PEAK)
            return columns.LiveRange(
                len(part.schedule),
                pa.table(
                    {
                        "schedule_time": pa.array(range(len(part.schedule)), _ID),
                        "instruction": pa.array(part.schedule, _TEXT),
                    }
                ),
                _table(part.ranges, _RANGES),
                part.peak_time,
                peak.add_column(0, "rank", pa.array(range(len(part.peak)), _SIZE)),
                part.origin,
                _notes(part.not_understood),
            )
    return part


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    rows = list(rows)
    values = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)],
        schema=schema,
    )


def _notes(notes: Iterable[NotUnderstood]) -> columns.NotUnderstoods:
    return tuple(columns.NotUnderstood(*note) for note in notes)


def plain_parts(parts: columns.Parts) -> plain.Parts:
    """The plain form of a program's parts, without its HLO text."""
    names = parts.space_names
    return plain.Parts(
        None if parts.buffer_assignment is None else plain_assignment(parts.buffer_assignment),
        None if parts.used_values is None else plain_used_values(parts.used_values),
        None if parts.live_range is None else plain_live_ranges(parts.live_range),
        space_names=None if names is None else dict(_rows(tuple, names, *_SPACES.names)),
        duplicated=parts.doubled,
        is_binary=parts.is_binary,
        totals=parts.totals,
    )


def plain_assignment(part: columns.BufferAssignment) -> plain.BufferAssignment:
    """The plain form of a buffer assignment."""
    return plain.BufferAssignment(
        _named_rows(plain.Allocation, part.allocations),
        _named_rows(plain.AssignedValue, part.values),
        part.origin,
        dict(part.peak_high),
        _plain_notes(part.not_understood),
        [Unread(*note) for note in part.unread],
        part.is_whole,
    )


def plain_used_values(part: columns.UsedValues) -> plain.UsedValues:
    """The plain form of used values, without definitions."""
    names = part.values.select(list(_VALUE_NAMES))
    return plain.UsedValues(
        part.total_bytes,
        [plain.AssignedValue(*row) for row in _rows(tuple, names, *_VALUE_NAMES)],
        _named_rows(plain.Position, part.positions),
        _named_rows(plain.Use, part.uses),
        None,
        part.origin,
        _plain_notes(part.not_understood),
        [Unread(*note) for note in part.unread],
    )


def plain_live_ranges(part: columns.LiveRange) -> plain.LiveRanges:
    """The plain form of live ranges."""
    return plain.LiveRanges(
        part.schedule["instruction"].to_pylist(),
        _named_rows(plain.LiveRange, part.ranges),
        part.peak_time,
        _named_rows(plain.PeakValue, part.peak),
        part.origin,
        _plain_notes(part.not_understood),
    )


def _named_rows(row_class: Any, table: pa.Table) -> list[Any]:
    return _rows(lambda row: row_class(*row), table, *row_class._fields)


def _rows(make: Any, table: pa.Table, *names: str) -> list[Any]:
    lists = (table[name].to_pylist() for name in names)
    return [make(row) for row in zip(*lists, strict=True)]


def _plain_notes(notes: Iterable[NamedTuple]) -> list[NotUnderstood]:
    return [NotUnderstood(*note) for note in notes]
