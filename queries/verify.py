"""Holds the warehouse against what the dumps say of themselves.

Each check is a `.sql` file in `checks/` whose first line says what holds; its rows are
breaches: module_id and breach.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import sqlalchemy as sa


@dataclass(frozen=True)
class Check:
    """Something that must hold: `query` finds where it does not."""

    name: str
    holds: str
    query: str


@dataclass(frozen=True)
class Breach:
    """Where a check fails: `module` tells the module as a user knows it."""

    check: str
    module: str
    breach: str


@cache
def checks() -> tuple[Check, ...]:
    """All checks, by name."""
    folder = resources.files(__package__) / "checks"
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    found = []
    for file in files:
        if file.name.endswith(".sql"):
            query = file.read_text()
            holds = query.splitlines()[0].removeprefix("--").strip()
            found.append(Check(file.name.removesuffix(".sql"), holds, query))
    return tuple(found)


def breaches(connection: sa.Connection, check: Check) -> list[Breach]:
    """Where `check` does not hold; the module is named by one of its dumps."""
    named = (resources.files(__package__) / "statements" / "named_breaches.sql").read_text()
    rows = connection.exec_driver_sql(named.replace("{check}", check.query))
    return [Breach(check.name, row.module, row.breach) for row in rows]
