"""Holds the warehouse against what the dumps say of themselves.

Each check is a `.sql` file in `checks/` whose first line says what holds; its rows are
breaches: module_id and breach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .catalogue import Check, checks, statement
from .cells import counted
from .history_breaches import HISTORY_HOLDS, HISTORY_IS_CURRENT, history_breaches
from .questions import question
from .result import Result, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from ..schema.stores.base import Store


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
    import pyarrow as pa

    named = [
        *((check.name, check.holds) for check in checks()),
        (HISTORY_IS_CURRENT, HISTORY_HOLDS),
    ]
    rows = [{"check": name, "holds": holds} for name, holds in sorted(named)]
    return Rows(pa.Table.from_pylist(rows))


def breaches(store: Store, check: Check) -> pa.Table:
    """Where `check` does not hold. Columns: module (by one of its dumps), breach."""
    return store.rows(statement("named_breaches").replace("{check}", check.sql))


@question(example="memhouse verify", screen="verify")
def verify(store: Store) -> Verification:
    """Hold every module against what its dump says of itself; name each breach.

    Exit status 1 if there is one.

    Columns: those of `Verification`.
    """
    import pyarrow as pa

    found = {check.name: breaches(store, check) for check in checks()}
    found[HISTORY_IS_CURRENT] = history_breaches(store)
    schema = pa.schema([(name, pa.string()) for name in ("check", "module", "breach")])
    rows = [{"check": name, **row} for name, table in found.items() for row in table.to_pylist()]
    modules = store.rows("SELECT COUNT(*) AS modules FROM modules")["modules"][0].as_py()
    breached = "1 breach" if len(rows) == 1 else f"{len(rows) or 'no'} breaches"
    caption = f"{len(found)} checks of {counted(modules, 'module')}: {breached}"
    table = pa.Table.from_pylist(rows, schema=schema)
    return Verification(Rows(table, caption, "no breaches"), len(found), modules)
