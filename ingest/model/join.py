"""Joins the parts of a module into the rows of the warehouse's tables."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .agreement import agrees, difference
from .attributed_tables import (
    buffer_tables,
    instruction_columns,
    numbers_of,
    value_columns,
)
from .attribution import Attribution
from .contradictions import Contradiction, contradictions
from .instruction_names import Names
from .lives import lives_of
from .metrics import memory_tables
from .numbered_program import Ints, NumberedProgram
from .parts import LIVE_RANGE, HloText, LiveRange, Origin, Parts
from .program_id import program_id_of
from .shown_values import ends_of, guessed_ends, shown_values
from .skeleton import skeleton_id_of
from .space_names import memory_spaces
from .traits import traits_of
from .value_ids import rows_of


@dataclass
class Module:
    """A module's rows by table, without module_id, and the contradictions of its parts.

    `header` has the columns of the module's row in `modules`.
    """

    header: dict[str, object]
    tables: dict[str, pa.Table]
    contradictions: list[Contradiction] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The memory of the module's rows."""
        return sum(table.nbytes for table in self.tables.values())


def join_parts(
    parts: Parts,
    attribution: Attribution | None = None,
    program: NumberedProgram | None = None,
    names: Names | None = None,
) -> Module:
    """Number the instructions, find each live range's value, and compute the figures.

    If a part is missing or contradicts another part, the figures that depend on it are null.
    `names` are the numbers of the parts' names, if the caller has them. Without an
    `attribution` nothing says whose memory a value is, and without a `program` the module has
    no program_id.
    """
    names = names or Names(parts)
    values = _values(parts, names)
    ranges, lost = _live_ranges(parts.live_range, values, names)
    tables: dict[str, pa.Table] = {"instructions": _instructions(parts, names)}
    number = None
    if attribution is not None and len(values):
        number = numbers_of(attribution, values)
        values = _with(values, value_columns(attribution, values, number))
    if attribution is not None:
        columns = instruction_columns(attribution, len(names.unique))
        tables["instructions"] = _with(tables["instructions"], columns)
        tables["scopes"] = attribution.scopes
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
    contradicting = contradictions(parts, names, ranges, lost)
    if parts.buffer_assignment is not None:
        complete = not contradicting
        ranges = ranges if complete else None
        allocations = parts.buffer_assignment.allocations
        if attribution is not None and number is not None:
            ends = ends_of(attribution, number)
        else:
            ends = guessed_ends(values, tables["instructions"], ranges, parts.live_range)
        shown = shown_values(allocations, values, ends)
        tables |= memory_tables(
            allocations.append_column("value_id", shown),
            values,
            ranges,
            names.numbered(parts.live_range.schedule, "schedule") if parts.live_range else None,
            complete=complete,
            estimated=parts.buffer_assignment.origin == "estimated",
        )
        if (
            attribution is not None
            and attribution.is_scheduled
            and number is not None
            and ranges is not None
        ):
            lives = lives_of(values, ranges, tables["allocations"], tables["module_memory"])
            tables |= buffer_tables(attribution, values, number, lives)
    if "residual_id" in values.column_names:
        tables["values"] = _with_known_residuals(values, tables.get("residuals"))
    tables["memory_spaces"] = memory_spaces(parts)
    if attribution is not None:
        tables["traits"] = traits_of(attribution, tables)
    header = _header(parts)
    if attribution is not None and number is not None:
        header["liveness_difference"] = _difference(parts, attribution, number, tables)
    if program is not None and not contradicting:
        assignment = parts.buffer_assignment
        allocations = assignment.allocations if assignment is not None else None
        header["program_id"] = program_id_of(program, allocations, values, ranges)
    filled = {name: table for name, table in tables.items() if len(table)}
    return Module(header, filled, contradicting)


def _difference(
    parts: Parts, attribution: Attribution, number: Ints, tables: dict[str, pa.Table]
) -> str | None:
    """Where dumped live ranges, positions or uses differ from the HLO text's; None if nowhere."""
    dumped = (parts.buffer_assignment, parts.live_range, parts.used_values)
    if (
        not attribution.is_scheduled
        or attribution.is_guess
        or any(p is None or p.origin != "dumped" for p in dumped)
    ):
        return None
    if agrees(attribution.derived, number, tables["values"], tables):
        return None
    return difference(parts, attribution.derived)


def _with_known_residuals(values: pa.Table, residuals: pa.Table | None) -> pa.Table:
    """The values without the residuals that have no row: those outside of temps, or no times."""
    at = values.schema.get_field_index("residual_id")
    if residuals is None:
        return values.set_column(at, "residual_id", pa.nulls(len(values), pa.int32()))
    known = pc.is_in(values["residual_id"], value_set=residuals["residual_id"].combine_chunks())
    kept = pc.if_else(known, values["residual_id"], pa.scalar(None, pa.int32()))
    return values.set_column(at, "residual_id", kept)


def _with(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """The table with more columns."""
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _origin(parts: Parts) -> Origin | None:
    """Where the module's figures come from; None if it has none."""
    if parts.buffer_assignment is None or parts.live_range is None:
        return None
    if parts.buffer_assignment.origin == "estimated":
        return "estimated"
    return parts.live_range.origin


def _header(parts: Parts) -> dict[str, object]:
    header: dict[str, object] = {"origin": _origin(parts)}
    if parts.hlo is not None:
        header |= parts.hlo.header
        header["skeleton_id"] = skeleton_id_of(parts.hlo.entry_shapes)
    if parts.used_values is not None:
        header["reported_total_bytes"] = parts.used_values.total_bytes
    if parts.live_range is not None:
        header["schedule_length"] = parts.live_range.schedule_length
        header["reported_peak_time"] = parts.live_range.peak_time
        if parts.live_range.peak_time is not None:
            header["reported_peak_bytes"] = pc.sum(parts.live_range.peak["size_bytes"]).as_py() or 0
    return header


def _values(parts: Parts, names: Names) -> pa.Table:
    """All values, in order of their ids; sizes are null without BufferAssignment."""
    tables = []
    if parts.buffer_assignment is not None:
        assigned = names.numbered(parts.buffer_assignment.values, "values")
        tables.append(assigned)
    if parts.used_values is not None:
        used = names.numbered(parts.used_values.values, "used_values")
        if tables:
            used = used.filter(pc.is_null(rows_of(tables[0]["value_id"], used["value_id"])))
        tables.append(used)
    if not tables:
        return pa.table({"value_id": pa.array([], pa.int32())})
    return pa.concat_tables(tables, promote_options="default").sort_by("value_id")


def _live_ranges(
    live_range: LiveRange | None, values: pa.Table, names: Names
) -> tuple[pa.Table | None, list[Contradiction]]:
    """The ranges by value_id, and a contradiction if some ranges have no value.

    XLA does not print value numbers here, so (instruction, shape index) identifies the value.
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


def _instructions(parts: Parts, names: Names) -> pa.Table:
    """A row per name, with the columns of its definition and its time in the schedule."""
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
    # Nearly always the names are those of the text, in its order.
    is_whole = np.array_equal(at.to_numpy(zero_copy_only=False), np.arange(len(defined)))
    for column in defined.column_names:
        if column != "instruction":
            values = defined[column] if is_whole else defined[column].take(at)
            table = table.append_column(column, values)
    return table


def _first_rows(numbers: pa.Int32Array, count: int) -> pa.Int64Array:
    """The first row with each number below `count`; null if there is none."""
    rows = np.full(count, -1)
    rows[numbers.to_numpy()[::-1]] = np.arange(len(numbers))[::-1]
    return pa.array(rows, mask=rows < 0)


def _hlo_tables(hlo: HloText, names: Names) -> dict[str, pa.Table]:
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
