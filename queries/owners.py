"""Who owns a module's peak: Python lines."""

from ..schema.stores.base import Store
from .catalogue import statement
from .find_module import find_module
from .result import Rows


def owners(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
    limit: int | None = None,
) -> Rows:
    """The Python lines that own a module's peak, the largest first.

    Columns: counted_bytes (they add up to the peak), share (of the peak, from 0 to 1),
    buffers (a count), source (file:line), categories. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("owners"), [found.module_id, memory_space, limit])
    return Rows(rows, found.caption, f"memory space {memory_space} has no known peak")
