"""The buffers that fill a module's memory."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .owners import callers_of
from .result import Rows


def buffers(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    memory_space: int = 0,
    schedule_time: int | None = None,
    callers: int = 0,
    limit: int | None = None,
) -> Rows:
    """The rows of `Warehouse.buffers`."""
    found = find_module(store, module, run)
    stacks = callers_of(store, found.module_id, callers)
    parameters = [found.module_id, memory_space, schedule_time, limit, *stacks]
    rows = store.rows(statement("buffers"), parameters).drop_columns(["place"])
    if not callers:
        rows = rows.drop_columns(["called_by"])
    return Rows(rows, found.caption, f"nothing is live in memory space {memory_space} then")
