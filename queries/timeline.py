"""How full a module's memory is over its schedule."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .result import Rows


def timeline(
    store: Store, module: str | int, *, run: str | None = None, memory_space: int = 0
) -> Rows:
    """The rows of `Warehouse.timeline`."""
    found = find_module(store, module, run)
    rows = store.rows(statement("timeline"), [found.module_id, memory_space])
    return Rows(rows, found.caption, f"memory space {memory_space} has no known occupancy")
