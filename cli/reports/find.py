"""Finds the module that a user means."""

from typing import Any

import sqlalchemy as sa
import typer

from ...queries.catalogue import command_query
from ...schema.stores.duckdb import fetch
from ..render.output import print_note

_LISTED = 20


def find_module(connection: sa.Connection, name: str, run: str | None) -> int:
    """The id of the one module that the user means; says which run's it is.

    Raises typer.BadParameter if none or several fit.
    """
    row = _find(connection, name, run)
    print_note(f"{row['workload']}/{row['module_name']} of run {row['run_id']}")
    return int(row["module_id"])


def find_dump(connection: sa.Connection, name: str) -> int:
    """The id of the latest dump of the one module that the user means."""
    return int(_find(connection, name, None)["dump_id"])


def _find(connection: sa.Connection, name: str, run: str | None) -> dict[str, Any]:
    query = command_query("find_module")
    found: list[dict[str, Any]] = fetch(connection, query, [name, run]).to_pylist()
    most = max((row["exactness"] for row in found), default=0)
    fitting = [row for row in found if row["exactness"] == most]
    if not fitting:
        raise typer.BadParameter(f"no module fits {name!r}: see `memhouse modules`")
    if len({row["module_id"] for row in fitting}) > 1:
        lines = [
            f"  {row['workload']}/{row['module_name']}"
            f" (number {row['occurrence']}, id {row['module_id']})"
            for row in fitting
        ]
        more = [f"  … and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
        listed = "\n".join([*lines[:_LISTED], *more])
        raise typer.BadParameter(f"several modules fit {name!r}, name one or its id:\n{listed}")
    return fitting[0]
