"""Room W's rules for callers that still have columns."""

from typing import Any

import pyarrow as pa

from .. import parts as plain
from ..kernels import PlacedPart, place_kernel_parts
from ..program import EntryShape
from ..program_id import skeleton_id
from ..work import Work, measure_work
from .bridge import plain_program
from .parts import HloText, Parts
from .program import Names, NumberedProgram, number_program


def _rows(row: Any, table: pa.Table) -> list[Any]:
    """The rows of a table as named tuples; a column that it lacks is None."""
    columns = [
        table[name].to_pylist() if name in table.column_names else [None] * len(table)
        for name in row._fields
    ]
    return [row(*values) for values in zip(*columns, strict=True)]


def plain_parts(parts: Parts) -> plain.Parts:
    """The parts without the program."""
    assignment, used, ranges = parts.buffer_assignment, parts.used_values, parts.live_range
    return plain.Parts(
        assignment=None
        if assignment is None
        else plain.BufferAssignment(
            _rows(plain.Allocation, assignment.allocations),
            _rows(plain.AssignedValue, assignment.values),
            assignment.origin,
            dict(assignment.peak_high),
            is_complete=assignment.is_whole,
        ),
        used_values=None
        if used is None
        else plain.UsedValues(
            used.total_bytes,
            _rows(plain.AssignedValue, used.values),
            _rows(plain.Position, used.positions),
            _rows(plain.Use, used.uses),
            origin=used.origin,
        ),
        live_ranges=None
        if ranges is None
        else plain.LiveRanges(
            ranges.schedule["instruction"].to_pylist(),
            _rows(plain.LiveRange, ranges.ranges),
            ranges.peak_time,
            _rows(plain.PeakValue, ranges.peak),
            ranges.origin,
        ),
        duplicated=list(parts.doubled),
    )


def skeleton(entry_shapes: pa.Table | None) -> int | None:
    """The fingerprint of a program's arguments."""
    return skeleton_id(None if entry_shapes is None else _rows(EntryShape, entry_shapes))


def kernel_parts(hlo: HloText, names: Names) -> pa.Table:
    """The rows of `kernel_parts`."""
    rows = place_kernel_parts(plain_program(number_program(hlo, names), hlo))
    types = {"instruction_id": pa.int32(), "part": pa.int32(), "buffers": pa.int32()}
    types |= {"size_bytes": pa.int64()}
    return pa.table(
        {
            name: pa.array([getattr(row, name) for row in rows], types.get(name, pa.large_string()))
            for name in PlacedPart._fields
        }
    )


def work_columns(
    program: NumberedProgram, hlo: HloText, count: int
) -> tuple[Work, pa.Array, pa.Array]:
    """The work, and the columns flops of `count` instructions and trip_count of calls."""
    plain_form = plain_program(program, hlo)
    work = measure_work(plain_form)
    is_loop = program.call_attribute.is_one_of("body", "condition")
    trip_counts = [
        work.trip_counts.get(row) if is_loops and plain_form.opcode[row] == "while" else None
        for row, is_loops in zip(program.call_row.tolist(), is_loop.tolist(), strict=True)
    ]
    flops = pa.array([work.flops.get(row) for row in range(count)], pa.int64())
    return work, flops, pa.array(trip_counts, pa.int64())
