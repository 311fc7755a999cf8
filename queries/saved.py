"""What the forward pass of a module keeps for its backward pass."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .result import Rows


def saved(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    memory_space: int = 0,
    limit: int | None = None,
) -> Rows:
    """The rows of `Warehouse.saved`."""
    found = find_module(store, module, run)
    rows = store.rows(statement("saved.by_line"), [found.module_id, memory_space, limit])
    empty = "nothing is saved for a backward pass, or the dump has no HLO text, which says so"
    return Rows(rows, found.caption, empty)
