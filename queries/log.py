"""The journal: everything that changed the warehouse."""

from ..schema.store import Store
from .catalogue import statement
from .result import Rows


def log(store: Store, *, limit: int | None = None) -> Rows:
    """The rows of `Warehouse.log`."""
    return Rows(store.rows(statement("log"), [limit]), empty="nothing has changed it yet")
