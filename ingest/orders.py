"""What another order of a program's instructions would need: figures that are worked out if asked.

To order a program takes longer than to read it: 0.06 ms a scheduled instruction.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.arrow import schema
from ..schema.stores.duckdb import Store
from ..xla.columns.program import program_of_rows
from ..xla.errors import DumpError
from ..xla.order import MOST_INSTRUCTIONS, Laid, ordering_of
from ..xla.runs import rows_of
from .rows import Module

# What could have the figures, and lacks them.
_LACKING = f"""SELECT module_id FROM modules INNER JOIN module_memory USING (module_id)
    WHERE memory_space = 0 AND temp_bytes > 0 AND grade = 0
        AND schedule_length <= {MOST_INSTRUCTIONS} AND order_bytes IS NULL"""
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
    """The stored modules that could have the figures, and lack them."""
    return frozenset(store.rows(_LACKING)["module_id"].to_pylist())


def add_orders(module: Module, platform: str | None) -> None:
    """Set order_bytes and order_bound_bytes of the main memory, where they can be known."""
    tables = module.tables
    length = module.header.get("schedule_length")
    if (
        module.header.get("grade") != 0
        or not isinstance(length, int)
        or length > MOST_INSTRUCTIONS
        or not tables.keys() >= _NEEDED
        or "alias_set" not in tables["values"].column_names
    ):
        return
    allocations = tables["allocations"]
    allocations = allocations.filter(
        pc.and_(pc.equal(allocations["memory_space"], 0), pc.invert(allocations["is_thread_local"]))
    )
    temps = allocations["allocation_index"].filter(allocations["is_temp"])
    memory = tables["module_memory"]
    is_main = pc.equal(memory["memory_space"], 0)
    live = memory["live_bound_bytes"].filter(is_main).to_pylist()
    # Without it the parts contradict each other.
    if not len(temps) or live in ([], [None]):
        return
    instructions = tables["instructions"]
    entry = tables["computations"].filter(tables["computations"]["is_entry"])
    values = tables["values"]
    is_laid = pc.and_(
        pc.is_valid(rows_of(tables["live_ranges"]["value_id"], values["value_id"])),
        pc.is_in(
            values["allocation_index"], value_set=allocations["allocation_index"].combine_chunks()
        ),
    )
    laid = values.filter(is_laid)
    value_id, allocation, offset, size = (
        laid[name].to_numpy().astype(np.int64)
        for name in ("value_id", "allocation_index", "offset_bytes", "size_bytes")
    )
    is_temp = pc.is_in(laid["allocation_index"], value_set=temps.combine_chunks()).to_numpy()
    operands, calls, control = (
        tables[name] if name in tables else schema(name).empty_table()
        for name in ("operands", "calls", "control_dependencies")
    )
    try:
        program = program_of_rows(
            instructions.filter(pc.is_valid(instructions["computation"])),
            entry["computation"][0].as_py(),
            operands,
            calls,
            control,
            module.header.get("input_output_alias"),
        )
    except DumpError:
        return
    touching = [*values["instruction_id"].chunks, *tables["uses"]["instruction_id"].chunks]
    if (pc.max(pa.chunked_array(touching)).as_py() or 0) >= len(program):
        return
    ordering, _ = ordering_of(
        program,
        instructions["schedule_time"][: len(program)],
        values,
        tables["uses"],
        Laid(value_id, allocation, offset, size, is_temp),
        0,
        platform=platform,
    )
    figures = {
        "order_bytes": ordering.now_bytes - ordering.best_bytes,
        # If more is counted than is live, XLA alone knows what shares memory: the bound is none.
        "order_bound_bytes": ordering.bound_bytes if ordering.now_bytes <= live[0] else None,
    }
    memory_rows = module.rows["module_memory"]
    for name, figure in figures.items():
        memory_rows[name] = [
            figure if space == 0 else None for space in memory_rows["memory_space"]
        ]
