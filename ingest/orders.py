"""Metrics of other orders of a program's instructions, which are computed on request.

To order a program takes longer than to read it: 0.06 ms per scheduled instruction.
"""

from collections.abc import Iterator

from ..schema.stores.duckdb import Store
from ..xla.errors import DumpError
from ..xla.order import MAX_INSTRUCTIONS, order_instructions
from ..xla.order_buffers import OrderedValue
from ..xla.program import NONE, Program
from ..xla.stored_program import program_from_rows
from .rows import Columns, Module, Rows

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
    rows = module.rows
    length = module.header.get("schedule_length")
    if (
        module.header.get("grade") != 0
        or not isinstance(length, int)
        or length > MAX_INSTRUCTIONS
        or not rows.keys() >= _NEEDED
        or "alias_set" not in rows["values"]
    ):
        return
    memory = rows["module_memory"]
    live = dict(zip(memory["memory_space"], memory["live_bound_bytes"], strict=True)).get(0)
    is_temp = _main_allocations(rows["allocations"])
    # Without live bytes the parts contradict each other.
    if not any(is_temp.values()) or live is None:
        return
    program = _program(module)
    values = list(_ordered_values(rows, is_temp))
    uses = list(zip(rows["uses"]["value_id"], rows["uses"]["instruction_id"], strict=True))
    if program is None or any(value.row >= len(program) for value in values):
        return
    if any(row >= len(program) for _, row in uses):
        return
    times = rows["instructions"]["schedule_time"][: len(program)]
    times = [NONE if time is None else time for time in times]
    ordering = order_instructions(program, times, values, uses, 0, platform)
    metrics = {
        "order_bytes": ordering.now_bytes - ordering.best_bytes,
        # If more is counted than is live, XLA alone knows which values share memory.
        "order_bound_bytes": ordering.bound_bytes if ordering.now_bytes <= live else None,
    }
    for name, metric in metrics.items():
        memory[name] = [metric if space == 0 else None for space in memory["memory_space"]]


def _main_allocations(allocations: Columns) -> dict[int, bool]:
    """By allocation in the main memory that is not thread-local, whether it is a temp."""
    columns = ("allocation_index", "memory_space", "is_temp", "is_thread_local")
    return {
        index: is_temp
        for index, space, is_temp, is_thread_local in zip(
            *(allocations[name] for name in columns), strict=True
        )
        if space == 0 and not is_thread_local
    }


def _ordered_values(rows: Rows, is_temp: dict[int, bool]) -> Iterator[OrderedValue]:
    """The values, with their places in the main memory."""
    live = set(rows["live_ranges"]["value_id"])
    columns = ["value_id", "instruction_id", "alias_set", "memory_space", "size_bytes"]
    columns += ["allocation_index", "offset_bytes"]
    for value_id, row, alias_set, space, size, allocation, offset in zip(
        *(rows["values"][name] for name in columns), strict=True
    ):
        value = OrderedValue(
            value_id, row, NONE if alias_set is None else alias_set, space, size or 0
        )
        if allocation in is_temp and value_id in live:
            value = value._replace(
                allocation=allocation, offset_bytes=offset, is_temp=is_temp[allocation]
            )
        yield value


def _program(module: Module) -> Program | None:
    """The program of a module; None if its rows make none."""
    rows = module.rows
    computations = rows["computations"]
    entry = computations["computation"][computations["is_entry"].index(True)]
    alias = module.header.get("input_output_alias")
    try:
        return program_from_rows(
            rows["instructions"],
            rows.get("operands", {"instruction_id": [], "operand_instruction_id": []}),
            rows.get("calls", {"instruction_id": [], "attribute": [], "computation": []}),
            rows.get(
                "control_dependencies", {"instruction_id": [], "predecessor_instruction_id": []}
            ),
            entry,
            None if alias is None else str(alias),
        )
    except DumpError:
        return None
