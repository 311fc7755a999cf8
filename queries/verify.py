"""`memhouse verify`: compares the warehouse with the totals and ranges in its dumps.

Each check is a `.sql` file in `checks/` whose first line states what holds; its rows are
violations, with columns module_id and breach.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..schema.store import Store
from .catalogue import Check, checks, statement
from .result import Result, Rows, counted


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Where the warehouse is at odds with its dumps.

    rows: the breaches, with columns check, module, breach; checks, modules: how many of both
    were held against each other.
    """

    rows: Rows
    checks: int
    modules: int


def checks_list() -> Rows:
    """What is checked. Columns: check, holds."""
    rows = [{"check": check.name, "holds": check.holds} for check in checks()]
    return Rows(pa.Table.from_pylist(rows))


def breaches(store: Store, check: Check) -> pa.Table:
    """Where `check` does not hold. Columns: module (by one of its dumps), breach."""
    return store.rows(statement("named_breaches").replace("{check}", check.sql))


def verify(store: Store) -> Verification:
    """See `Warehouse.verify`."""
    found = {check.name: breaches(store, check) for check in checks()}
    schema = pa.schema([(name, pa.string()) for name in ("check", "module", "breach")])
    rows = [{"check": name, **row} for name, table in found.items() for row in table.to_pylist()]
    modules = store.rows("SELECT COUNT(*) AS modules FROM modules")["modules"][0].as_py()
    breached = "1 breach" if len(rows) == 1 else f"{len(rows) or 'no'} breaches"
    caption = f"{len(found)} checks of {counted(modules, 'module')}: {breached}"
    table = pa.Table.from_pylist(rows, schema=schema)
    return Verification(Rows(table, caption, "no breaches"), len(found), modules)
