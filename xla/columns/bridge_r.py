"""An attribution as columns of the warehouse's tables, for callers that still have columns."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..allocation_values import IoFlags, guess_io_flags, values_of_allocations
from ..attribution import Attribution
from ..idle_buffers import BufferUse, alias_set_rows, find_temp_values, residual_rows
from ..parts import Allocation, AssignedValue
from ..peak_parts import lines_of, main_memory
from ..program import NONE
from ..shifts import Shifts
from ..traits import find_traits
from ..value_rows import ValueRow, match_values, value_rows
from .bridge_w import _rows
from .parts import LiveRange
from .program import Names


class AttributedValues:
    """The values of a module, and their indices in the dataflow of its attribution."""

    def __init__(self, attribution: Attribution | None, values: pa.Table, names: Names) -> None:
        self.attribution = attribution
        self.values: list[AssignedValue] = []
        if len(values):
            instructions = names.unique.take(values["instruction_id"].combine_chunks())
            self.values = _rows(AssignedValue, values.append_column("instruction", instructions))
        self.indices = (
            [NONE] * len(self.values)
            if attribution is None
            else match_values(attribution.analysis, self.values)
        )

    def columns(self) -> dict[str, pa.Array]:
        """The columns of `values` that an attribution gives."""
        assert self.attribution is not None
        residual_ids = range(len(self.attribution.residuals))
        rows = value_rows(self.attribution, self.values, self.indices, residual_ids)
        texts = ("origin_rule", "pass_", "role")
        return {
            name.rstrip("_"): pa.array(
                [row[number] for row in rows], pa.large_string() if name in texts else pa.int32()
            )
            for number, name in enumerate(ValueRow._fields)
        }

    def of_allocations(
        self,
        allocations: pa.Table,
        instructions: pa.Table,
        ranges: pa.Table | None,
        live_range: LiveRange | None,
    ) -> pa.Array:
        """The value that each allocation is for."""
        if self.attribution is not None:
            found = self.attribution
            flags = [
                IoFlags(found.is_argument[index], found.is_live_out[index])
                if index != NONE
                else IoFlags(False, False)
                for index in self.indices
            ]
        else:
            end_times = {} if ranges is None else _by_value(ranges, "end_time")
            length = live_range.schedule_length if live_range is not None else NONE
            parameters = []
            if "opcode" in instructions.column_names:
                is_parameter = pc.equal(instructions["opcode"], "parameter")
                parameters = instructions["instruction"].filter(is_parameter).to_pylist()
            flags = guess_io_flags(self.values, set(parameters), end_times, length)
        rows = _rows(Allocation, allocations)
        return pa.array(values_of_allocations(rows, self.values, flags), pa.int32())

    def buffer_tables(
        self, tables: Mapping[str, pa.Table], ranges: pa.Table
    ) -> dict[str, pa.Table]:
        """The rows of `alias_sets` and `residuals`."""
        assert self.attribution is not None
        start, end = _by_value(ranges, "start_time"), _by_value(ranges, "end_time")
        figures = tables["module_memory"].select(["memory_space", "peak_time"])
        temps = find_temp_values(
            self.attribution,
            self.values,
            self.indices,
            _rows(Allocation, tables["allocations"]),
            {value: (start[value], end[value]) for value in start},
            {space: time for space, time in _pairs(figures) if time is not None},
        )
        sets = alias_set_rows(self.attribution, temps)
        residuals = residual_rows(self.attribution, temps)
        return {
            "alias_sets": _table(("alias_set",), [(row.alias_set, *row.use) for row in sets]),
            "residuals": _table(
                ("residual_id", "layers", "made_instruction_id", "read_instruction_id"),
                [(*row[:-1], *row.use) for row in residuals],
            ),
        }

    def traits(self, tables: Mapping[str, pa.Table], names: Names, shifts: Shifts) -> pa.Table:
        """The rows of `traits`."""
        assert self.attribution is not None
        instructions = tables["instructions"]
        times = None
        if "schedule_time" in instructions.column_names:
            times = pc.fill_null(instructions["schedule_time"], NONE).to_pylist()
        peak = NONE
        if "live_ranges" in tables and "module_memory" in tables:
            peak = int(main_memory(tables, shifts)["peak_instruction_id"][0])
        count = len(self.attribution.analysis.program)
        rows = find_traits(
            self.attribution,
            self.values,
            None if times is None else times[:count],
            lines_of(instructions).to_pylist(),
            None if peak == NONE else names.unique[peak].as_py(),
        )
        trait, name, amount = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table(
            {
                "trait": pa.array(trait, pa.string()),
                "name": pa.array(name, pa.string()),
                "amount": pa.array(amount, pa.int64()),
            }
        )


def _by_value(ranges: pa.Table, column: str) -> dict[int, int]:
    return dict(_pairs(ranges.select(["value_id", column])))


def _pairs(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _table(keys: Sequence[str], rows: list[tuple[int | None, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * (len(keys) + len(BufferUse._fields))
    names = (*keys, *BufferUse._fields)
    return pa.table(
        {name: pa.array(column, pa.int32()) for name, column in zip(names, columns, strict=True)}
    )


def instruction_columns(attribution: Attribution, count: int) -> dict[str, pa.Array]:
    """The columns scope_id and pass of `count` instructions, those of the text first."""
    without = [None] * (count - len(attribution.passes.of))
    scopes = [None if scope == NONE else scope for scope in attribution.scopes.scope_id]
    return {
        "scope_id": pa.array([*scopes, *without], pa.int32()),
        "pass": pa.array([*attribution.passes.of, *without], pa.large_string()),
    }


def scopes_table(attribution: Attribution) -> pa.Table:
    """The rows of `scopes`."""
    rows = attribution.scopes.rows
    columns = {
        name: pa.array([getattr(row, name) for row in rows], pa.large_string())
        for name in ("scope", "operation", "module_path", "fold")
    }
    return pa.table({"scope_id": pa.array(range(len(rows)), pa.int32()), **columns})
