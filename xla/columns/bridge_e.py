"""Arrow tables from and to the plain functions of figures, until the rows are plain too."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..complete import complete
from ..figures import MemoryFigures, OccupancyStep, SpaceMemory, memory_figures
from ..parts import (
    Allocation,
    AssignedValue,
    BufferAssignment,
    LiveRange,
    PeakValue,
    Position,
    Use,
)
from ..peak_parts import (
    BufferLabels,
    PeakBuffer,
    PeakPart,
    buffers_at_peak,
    label_buffer,
)
from ..peak_parts import peak_parts as group_peak
from ..runs import ints, places_of
from ..shifts import Divided, Shifts
from .bridge_d import Derived, of_analysis
from .bridge_w import plain_parts
from .parts import BufferAssignment as ArrowAssignment
from .parts import LiveRange as ArrowLiveRange
from .parts import Parts
from .parts import UsedValues as ArrowUsedValues
from .program import NONE, Ints

_INT32 = {"memory_space", "start_time", "peak_time", "peak_instruction_id", "part", "buffers"}


def _rows(kind: Any, table: pa.Table) -> list[Any]:
    """The rows of a table as tuples of a kind; None for columns that the table lacks."""
    columns = [
        table[name].to_pylist() if name in table.column_names else [None] * len(table)
        for name in kind._fields
    ]
    return [kind(*values) for values in zip(*columns, strict=True)]


def _allocations(table: pa.Table) -> list[Allocation]:
    return [row._replace(size_bytes=row.size_bytes or 0) for row in _rows(Allocation, table)]


def _table(kind: Any, rows: list[Any]) -> pa.Table:
    columns = {}
    for place, name in enumerate(kind._fields):
        values = [row[place] for row in rows]
        known = [value for value in values if value is not None]
        if kind is SpaceMemory and not known and name != "memory_space":
            continue
        type_ = pa.int32() if name in _INT32 else pa.int64()
        type_ = pa.float64() if name == "fragmentation" else type_
        if name in PeakPart._fields and name not in ("part", "buffers", "counted_bytes"):
            type_ = pa.string()
        columns[{"pass_name": "pass"}.get(name, name)] = pa.array(values, type_)
    return pa.table(columns)


def _ranges(table: pa.Table) -> dict[int, tuple[int, int]]:
    columns = (table[name].to_pylist() for name in ("value_id", "start_time", "end_time"))
    return {value: (start, end) for value, start, end in zip(*columns, strict=True)}


def completed(
    parts: Parts, derived: Derived, *, platform: str | None = None
) -> tuple[Parts, Derived, str | None]:
    """As `xla.complete.complete`."""
    if parts.hlo is None:
        return parts, derived, None
    plain, analysis, why_not = complete(plain_parts(parts), derived.analysis, platform)
    if analysis is not derived.analysis:
        derived = of_analysis(derived.program, analysis)
    assignment, used, ranges = plain.assignment, plain.used_values, plain.live_ranges
    if parts.buffer_assignment is None and assignment is not None:
        parts = replace(
            parts,
            buffer_assignment=ArrowAssignment(
                _arrow_table(Allocation, assignment.allocations),
                _arrow_table(AssignedValue, assignment.values),
                assignment.origin,
                assignment.peak_high,
            ),
        )
    if parts.used_values is None and used is not None:
        parts = replace(
            parts,
            used_values=ArrowUsedValues(
                used.total_bytes,
                _arrow_table(AssignedValue, used.values).select(list(AssignedValue._fields[:5])),
                _arrow_table(Position, used.positions),
                _arrow_table(Use, used.uses),
                origin=used.origin,
            ),
        )
    if parts.live_range is None and ranges is not None:
        times = pa.array(range(len(ranges.schedule)), pa.int32())
        peak = _arrow_table(PeakValue, ranges.peak)
        rank = pa.array(range(len(ranges.peak)), pa.int64())
        parts = replace(
            parts,
            live_range=ArrowLiveRange(
                len(ranges.schedule),
                pa.table(
                    {
                        "schedule_time": times,
                        "instruction": pa.array(ranges.schedule, pa.large_string()),
                    }
                ),
                _arrow_table(LiveRange, ranges.ranges),
                ranges.peak_time,
                peak.add_column(0, "rank", rank),
                ranges.origin,
            ),
        )
    return parts, derived, why_not


_TEXT = {"shape", "element_type", "instruction", "shape_index", "operand_shape_index"} | {
    "parameter_shape_index"
}


def _arrow_table(kind: Any, rows: list[Any]) -> pa.Table:
    columns = {}
    for place, name in enumerate(kind._fields):
        if name in _TEXT:
            type_ = pa.large_string()
        elif name.startswith(("is_", "maybe_")):
            type_ = pa.bool_()
        else:
            is_large = name.endswith("_bytes") or name == "address"
            type_ = pa.int64() if is_large else pa.int32()
        columns[name] = pa.array([row[place] for row in rows], type_)
    return pa.table(columns)


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
    """The tables `allocations`, `occupancy` and `module_memory`, see `memory_figures`."""
    assignment = BufferAssignment(
        _allocations(allocations),
        _rows(AssignedValue, values),
        "estimated" if estimated else "dumped",
    )
    figures: MemoryFigures = memory_figures(
        assignment,
        ints(allocations["value_id"]).tolist(),
        _ranges(live_ranges) if live_ranges is not None else None,
        schedule["instruction_id"].to_pylist() if schedule is not None else None,
        is_complete=complete,
    )
    tables = {}
    if figures.temp_peaks is not None:
        for name, type_ in (("peak_bytes", pa.int64()), ("peak_time", pa.int32())):
            column = pa.array([getattr(peak, name) for peak in figures.temp_peaks], type_)
            allocations = allocations.append_column(name, column)
        if schedule is not None and len(schedule):
            tables["occupancy"] = _table(OccupancyStep, figures.steps)
    if estimated and figures.temp_peaks is not None:
        at = allocations.schema.get_field_index("size_bytes")
        sizes = pa.array([row.size_bytes for row in figures.allocations], pa.int64())
        allocations = allocations.set_column(at, "size_bytes", sizes)
    tables["module_memory"] = _table(SpaceMemory, figures.spaces)
    return {"allocations": allocations, **tables}


def main_memory(tables: Mapping[str, pa.Table], shifts: Shifts) -> dict[str, Ints]:
    """The time and instruction of each program's peak of the main memory; NONE without one."""
    figures = tables["module_memory"]
    at = places_of(ints(figures["memory_space"]), shifts.starts["space"][:-1])
    return {
        name: np.append(ints(figures[name]), NONE)[at]
        if name in figures.column_names
        else np.full(len(shifts), NONE)
        for name in ("peak_time", "peak_instruction_id")
    }


def _buffers(tables: Mapping[str, pa.Table]) -> list[PeakBuffer]:
    (time,) = main_memory(tables, Shifts.alone(0))["peak_time"].tolist()
    if time == NONE:
        return []
    allocations = tables["allocations"]
    assignment = BufferAssignment(_allocations(allocations), _rows(AssignedValue, tables["values"]))
    shown = ints(allocations["value_id"]).tolist()
    return buffers_at_peak(assignment, shown, _ranges(tables["live_ranges"]), time)


def at_peak(tables: Mapping[str, pa.Table], shifts: Shifts) -> tuple[Ints, Ints]:
    """What the main memory holds at its peak: the row in `values`, or NONE, and the bytes."""
    buffers = _buffers(tables)
    ids = np.array([buffer.value_id for buffer in buffers], np.int64)
    sizes = np.array([buffer.counted_bytes for buffer in buffers], np.int64)
    return places_of(ints(tables["values"]["value_id"]), ids), sizes


def peak_parts(tables: Mapping[str, pa.Table], shifts: Shifts) -> Divided | None:
    """The rows of `peak_parts`, without module_id; None without a peak."""
    if main_memory(tables, shifts)["peak_time"][0] == NONE:
        return None
    buffers = _buffers(tables)
    ids = np.array(sorted({buffer.value_id for buffer in buffers} - {NONE}), np.int64)
    labels = _labels(tables, places_of(ints(tables["values"]["value_id"]), ids))
    rows = group_peak(buffers, dict(zip(ids.tolist(), labels, strict=True)))
    return Divided.of([_table(PeakPart, rows)])


def _labels(tables: Mapping[str, pa.Table], rows: Ints) -> list[BufferLabels]:
    values = tables["values"].take(pa.array(rows))
    made = values["instruction_id"]
    if "origin_instruction_id" in values.column_names:
        made = pc.coalesce(values["origin_instruction_id"], made)
    instructions = tables["instructions"].take(made)
    nothing = [None] * len(values)

    def texts(table: pa.Table, name: str) -> list[Any]:
        return table[name].to_pylist() if name in table.column_names else nothing

    scope = operation = nothing
    if "scopes" in tables:
        scopes = tables["scopes"]
        place = pc.index_in(instructions["scope_id"], value_set=scopes["scope_id"].combine_chunks())
        scope, operation = (texts(scopes.take(place), name) for name in ("scope", "operation"))
    columns = {
        "role": texts(values, "role"),
        "pass_name": texts(values, "pass"),
        "shape": texts(values, "shape"),
        "scope": scope,
        "operation": operation,
    } | {
        name: texts(instructions, name)
        for name in ("opcode", "op_name", "source_file", "source_line")
    }
    return [
        label_buffer(**dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]


def lines_of(instructions: pa.Table) -> pa.Array:
    """The file and line of each instruction, such as `zoo.py:40`; null if it has none."""
    if "source_file" not in instructions.column_names:
        return pa.nulls(len(instructions), pa.string())
    file = pc.replace_substring_regex(instructions["source_file"], r"^.*[/\\]", "")
    line = instructions["source_line"].cast(pa.string())
    return pc.binary_join_element_wise(file.cast(pa.string()), line, ":").combine_chunks()
