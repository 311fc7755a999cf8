"""Metrics of other orders of a program's instructions, which are computed on request.

To order a program takes longer than to read it: 0.06 ms per scheduled instruction.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.arrow import schema
from ..schema.stores.duckdb import Store
from ..xla.columns.bridge import plain_program
from ..xla.columns.program import program_of_rows
from ..xla.errors import DumpError
from ..xla.order import MAX_INSTRUCTIONS, order_instructions
from ..xla.order_buffers import OrderedValue
from ..xla.program import NONE, Program
from .rows import Module

# The modules that could have the metrics, and lack them.
_LACKING = f"""SELECT module_id FROM modules INNER JOIN module_memory USING (module_id)
    WHERE memory_space = 0 AND temp_bytes > 0 AND grade = 0
        AND schedule_length <= {MAX_INSTRUCTIONS} AND order_bytes IS NULL"""
_NEEDED = frozenset(
    {
        "instructions",
        "values",
        "uses",
        "live_ranges",
        "allocations",
        "module_memory",
        "computations",
    }
)


def modules_without_orders(store: Store) -> frozenset[int]:
    """The stored modules that could have the metrics, and lack them."""
    return frozenset(store.rows(_LACKING)["module_id"].to_pylist())


def add_orders(module: Module, platform: str | None) -> None:
    """Set order_bytes and order_bound_bytes of the main memory, where they can be known."""
    tables = module.tables
    length = module.header.get("schedule_length")
    if (
        module.header.get("grade") != 0
        or not isinstance(length, int)
        or length > MAX_INSTRUCTIONS
        or not tables.keys() >= _NEEDED
        or "alias_set" not in tables["values"].column_names
    ):
        return
    memory = tables["module_memory"]
    is_main = pc.equal(memory["memory_space"], 0)
    live = memory["live_bound_bytes"].filter(is_main).to_pylist()
    values = list(_ordered_values(tables))
    # Without live bytes the parts contradict each other.
    if not any(row["is_temp"] for row in _main_allocations(tables)) or live in ([], [None]):
        return
    program = _program(module)
    uses = [
        (row["value_id"], row["instruction_id"])
        for row in tables["uses"].select(["value_id", "instruction_id"]).to_pylist()
    ]
    if program is None or any(value.row >= len(program) for value in values):
        return
    if any(row >= len(program) for _, row in uses):
        return
    times = tables["instructions"]["schedule_time"].to_pylist()[: len(program)]
    times = [NONE if time is None else time for time in times]
    ordering = order_instructions(program, times, values, uses, 0, platform)
    metrics = {
        "order_bytes": ordering.now_bytes - ordering.best_bytes,
        # If more is counted than is live, XLA alone knows which values share memory.
        "order_bound_bytes": ordering.bound_bytes if ordering.now_bytes <= live[0] else None,
    }
    for name, metric in metrics.items():
        column = pc.if_else(is_main, pa.scalar(metric, pa.int64()), pa.scalar(None, pa.int64()))
        memory = memory.set_column(memory.schema.get_field_index(name), name, column)
    module.rows, module.place = Rows.alone(tables | {"module_memory": memory}), 0


def _main_allocations(tables: dict[str, pa.Table]) -> list[dict[str, int]]:
    """The allocations in the main memory that are not thread-local."""
    columns = ["allocation_index", "memory_space", "is_temp", "is_thread_local"]
    rows = tables["allocations"].select(columns).to_pylist()
    return [row for row in rows if not row["memory_space"] and not row["is_thread_local"]]


def _ordered_values(tables: dict[str, pa.Table]) -> Iterator[OrderedValue]:
    """The values, with their places in the main memory."""
    live = set(tables["live_ranges"]["value_id"].to_pylist())
    is_temp = {row["allocation_index"]: row["is_temp"] for row in _main_allocations(tables)}
    columns = ["value_id", "instruction_id", "alias_set", "memory_space", "size_bytes"]
    columns += ["allocation_index", "offset_bytes"]
    for row in tables["values"].select(columns).to_pylist():
        value = OrderedValue(
            row["value_id"],
            row["instruction_id"],
            NONE if row["alias_set"] is None else row["alias_set"],
            row["memory_space"],
            row["size_bytes"] or 0,
        )
        allocation = row["allocation_index"]
        if allocation in is_temp and row["value_id"] in live:
            value = value._replace(
                allocation=allocation,
                offset_bytes=row["offset_bytes"],
                is_temp=is_temp[allocation],
            )
        yield value


def _program(module: Module) -> Program | None:
    """The program of a module; None if its rows make none."""
    tables = module.tables
    instructions = tables["instructions"]
    entry = tables["computations"].filter(tables["computations"]["is_entry"])
    operands, calls, control = (
        tables[name] if name in tables else schema(name).empty_table()
        for name in ("operands", "calls", "control_dependencies")
    )
    try:
        return plain_program(
            program_of_rows(
                instructions.filter(pc.is_valid(instructions["computation"])),
                entry["computation"][0].as_py(),
                operands,
                calls,
                control,
                module.header.get("input_output_alias"),
            )
        )
    except DumpError:
        return None
