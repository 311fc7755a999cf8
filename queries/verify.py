"""Holds the warehouse against what the dumps say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..schema.arrow import stored_keys
from ..schema.stores.duckdb import Store
from .catalogue import Check, checks, statement
from .questions import question
from .result import Result, Rows, counted

# Where the stored history is not what the dumps give.

HISTORY_IS_CURRENT = "history_is_current"
HISTORY_HOLDS = "The stored history is what the dumps give when it is worked out again."


def history_breaches(store: Store) -> pa.Table:
    """Where the check `history_is_current` fails: columns module and breach.

    The check is Python, because `schema/history` works the chains out.
    """
    worked_out = store.worked_out_history()
    wrong: list[tuple[int | None, str]] = []
    for name, rows in worked_out.items():
        keys = stored_keys()[name]
        must = _by_key(rows, keys)
        stored = _by_key(store.rows(f"SELECT * FROM {name}"), keys)
        for key in sorted(must.keys() | stored.keys()):
            shown = f"{keys[0].removesuffix('_id')} {key[0]}"
            dump_id = key[0] if keys[0] == "dump_id" else None
            breaches = _differences(must.get(key), stored.get(key), name)
            wrong += [(dump_id, f"{shown} has {breach}") for breach in breaches]
    dumps = [dump_id for dump_id, _ in wrong if dump_id is not None]
    names = store.rows(statement("dumps.names"), [dumps]).to_pylist()
    named = {row["dump_id"]: row["name"] for row in names}
    return pa.table(
        {
            "module": [named.get(dump_id, "no module") for dump_id, _ in wrong],
            "breach": [what for _, what in wrong],
        },
        schema=pa.schema([("module", pa.string()), ("breach", pa.string())]),
    )


def _by_key(rows: pa.Table, key: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[column] for column in key): row for row in rows.to_pylist()}


def _differences(
    must: dict[str, Any] | None, stored: dict[str, Any] | None, table: str
) -> list[str]:
    """What a stored row has that it must not have."""
    if must is None:
        return [f"a row in `{table}` that the dumps do not give"]
    if stored is None:
        return [f"no row in `{table}`"]
    return [
        f"the {column} {stored[column]} in `{table}` instead of {value}"
        for column, value in must.items()
        if stored[column] != value
    ]


# Holds the warehouse against what the dumps say of themselves.
#
# Each check is a `.sql` file in `checks/` whose first line says what holds; its rows are
# breaches: module_id and breach.


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
    found = {check.name: breaches(store, check) for check in checks()}
    found[HISTORY_IS_CURRENT] = history_breaches(store)
    schema = pa.schema([(name, pa.string()) for name in ("check", "module", "breach")])
    rows = [{"check": name, **row} for name, table in found.items() for row in table.to_pylist()]
    modules = store.rows("SELECT COUNT(*) AS modules FROM modules")["modules"][0].as_py()
    breached = "1 breach" if len(rows) == 1 else f"{len(rows) or 'no'} breaches"
    caption = f"{len(found)} checks of {counted(modules, 'module')}: {breached}"
    table = pa.Table.from_pylist(rows, schema=schema)
    return Verification(Rows(table, caption, "no breaches"), len(found), modules)
