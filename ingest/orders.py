"""Metrics of other orders of a program's instructions, which are computed on request.

To order a program takes longer than to read it: 0.06 ms per scheduled instruction.
"""

from collections.abc import Mapping

from ..schema.store import Store
from ..xla.errors import DumpError
from ..xla.order import MAX_INSTRUCTIONS, order_instructions
from ..xla.order_buffers import OrderedValue
from ..xla.program import NONE
from ..xla.stored_program import program_from_rows
from .rows import Module, Rows

# The modules that could have the metrics, and lack them.
_LACKING = f"""SELECT module_id FROM modules INNER JOIN module_memory USING (module_id)
    WHERE memory_space = 0 AND temp_bytes > 0 AND grade = 0
        AND schedule_length <= {MAX_INSTRUCTIONS} AND order_bytes IS NULL"""
_NEEDED = frozenset(
    {"instructions", "computations", "values", "uses"}
    | {"live_ranges", "allocations", "module_memory"}
)
# Device memory, or the host's on CPU.
_MAIN_MEMORY = 0


def modules_without_orders(store: Store) -> frozenset[int]:
    """The stored modules that could have the metrics, and lack them."""
    return frozenset(store.rows(_LACKING)["module_id"].to_pylist())


def add_orders(module: Module, platform: str | None) -> None:
    """Set order_bytes and order_bound_bytes of the main memory, where they can be known."""
    rows, length = module.rows, module.header.get("schedule_length")
    if (
        module.header.get("grade") != 0
        or not isinstance(length, int)
        or length > MAX_INSTRUCTIONS
        or not rows.keys() >= _NEEDED
        or "alias_set" not in rows["values"]
    ):
        return
    memory = rows["module_memory"]
    spaces = memory["memory_space"]
    live_bytes = dict(zip(spaces, memory["live_bound_bytes"], strict=True)).get(_MAIN_MEMORY)
    is_temp = _main_allocations(rows)
    # Without live bytes the parts contradict each other.
    if live_bytes is None or not any(is_temp.values()):
        return
    try:
        program = program_from_rows(rows)
    except DumpError:
        return
    values = _ordered_values(rows, is_temp)
    uses = list(zip(rows["uses"]["value_id"], rows["uses"]["instruction_id"], strict=True))
    accesses = (*(value.row for value in values), *(row for _, row in uses))
    if max(accesses, default=0) >= len(program):
        return
    times = rows["instructions"]["schedule_time"][: len(program)]
    ordering = order_instructions(
        program,
        [NONE if time is None else time for time in times],
        values,
        uses,
        _MAIN_MEMORY,
        platform,
    )
    metrics = {
        "order_bytes": ordering.now_bytes - ordering.best_bytes,
        # If more is counted than is live, XLA alone knows which values share memory.
        "order_bound_bytes": ordering.bound_bytes if ordering.now_bytes <= live_bytes else None,
    }
    for name, metric in metrics.items():
        memory[name] = [metric if space == _MAIN_MEMORY else None for space in spaces]


def _main_allocations(rows: Rows) -> dict[int, bool]:
    """Whether each allocation in the main memory is a temp; without thread-local ones."""
    columns = ("allocation_index", "memory_space", "is_temp", "is_thread_local")
    return {
        allocation: is_temp
        for allocation, space, is_temp, is_thread_local in zip(
            *(rows["allocations"][name] for name in columns), strict=True
        )
        if space == _MAIN_MEMORY and not is_thread_local
    }


def _ordered_values(rows: Rows, is_temp: Mapping[int, bool]) -> list[OrderedValue]:
    """The values, with their places in the main memory if they have a live range."""
    live = set(rows["live_ranges"]["value_id"])
    columns = ["value_id", "instruction_id", "alias_set", "memory_space", "size_bytes"]
    columns += ["allocation_index", "offset_bytes"]
    values = []
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
        values.append(value)
    return values
