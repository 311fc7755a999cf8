"""The tables, and what their columns mean."""

from ..schema.errors import UsageError
from ..schema.store import Store
from .result import Rows


def tables(store: Store, table: str | None = None) -> Rows:
    """The rows of `Warehouse.tables`."""
    if table is None:
        return Rows(store.listed_tables(), empty="there are no tables")
    found = store.listed_columns(table)
    if not found.num_rows:
        raise UsageError(f"there is no table {table}: see `memhouse tables`", "table")
    return Rows(found)
