"""Which arguments of a module could be donated, and which are donated for nothing."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .result import Rows


def donations(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    memory_space: int = 0,
    limit: int | None = None,
) -> Rows:
    """The rows of `Warehouse.donations`."""
    found = find_module(store, module, run)
    rows = store.rows(statement("donations"), [found.module_id, memory_space, limit])
    signature = store.rows(statement("donations.has_signature"), [found.module_id])
    empty = "no argument could be donated, and none is donated for nothing"
    if not signature["is_known"][0].as_py():
        empty = "the dump has no HLO text, which says what arguments and results there are"
    return Rows(rows, found.caption, empty)
