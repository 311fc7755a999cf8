"""The buffers that fill a module's memory."""

from ..schema.stores.base import Store
from .catalogue import statement
from .find_module import find_module
from .result import Rows


def buffers(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
    at: int | None = None,
    limit: int | None = None,
) -> Rows:
    """The buffers live at the peak, or at the time `at` of the schedule, the largest first.

    Columns: counted_bytes (they add up to what is occupied), share (of that, from 0 to 1),
    category, value, source (file:line), op_name, shape, padding_bytes. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("buffers"), [found.module_id, memory_space, at, limit])
    return Rows(rows, found.caption, f"nothing is live in memory space {memory_space} then")
