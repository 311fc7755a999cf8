"""The tables, and what their columns mean."""

from ..schema.errors import UsageError
from ..schema.store import Store
from .questions import Table, question
from .result import Rows


@question(example="memhouse tables modules")
def tables(store: Store, table: Table = None) -> Rows:
    """List the tables, their rows and what they are for, or one table's columns.

    Columns: table, rows (in a file an estimate), holds; of one table column, type, meaning.
    Raises UsageError.
    """
    if table is None:
        return Rows(store.listed_tables(), empty="there are no tables")
    found = store.listed_columns(table)
    if not found.num_rows:
        raise UsageError(f"there is no table {table}: see `memhouse tables`", "name")
    return Rows(found)
