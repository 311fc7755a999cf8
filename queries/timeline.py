"""How full a module's memory is over its schedule."""

from ..schema.stores.base import Store
from .catalogue import statement
from .find_module import find_module
from .result import Rows


def timeline(
    store: Store, module: str | int, run: str | None = None, memory_space: int = 0
) -> Rows:
    """How full a memory space is, from one change to the next.

    Columns: start_time, end_time (positions in the schedule, both inclusive), occupied_bytes,
    live_bytes, instruction, op_name. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("timeline"), [found.module_id, memory_space])
    return Rows(rows, found.caption, f"memory space {memory_space} has no known occupancy")
