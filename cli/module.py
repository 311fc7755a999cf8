"""Commands about one module: its buffers, who owns them, its timeline."""

import sys
from typing import Annotated, Any

import duckdb
import sqlalchemy as sa
import typer

from ..queries.catalogue import command_query
from ..schema.warehouse import fetch
from .options import DEFAULT_DB, AsFormat, Db, Format
from .output import print_note, print_rows
from .warehouse import reading

Module = Annotated[
    str,
    typer.Argument(
        metavar="MODULE",
        help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id.",
        show_default=False,
    ),
]
Run = Annotated[str | None, typer.Option(help="The module as of this run; else its latest.")]
Space = Annotated[int, typer.Option(help="The memory space's number; 0 is HBM.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many rows.")]


def buffers(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    at: Annotated[
        int | None, typer.Option(metavar="TIME", help="At this time of the schedule.")
    ] = None,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show the buffers that fill a module's memory at its peak, or at any time."""
    with reading(db) as connection:
        module_id = find_module(connection, module, run)
        rows = fetch(connection, command_query("buffers"), [module_id, space, at, limit])
    print_rows(rows, output, empty=f"nothing is live in memory space {space} then")


def owners(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show which lines of Python own a module's peak."""
    with reading(db) as connection:
        module_id = find_module(connection, module, run)
        rows = fetch(connection, command_query("owners"), [module_id, space, limit])
    print_rows(rows, output, empty=f"memory space {space} has no known peak")


def timeline(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    output: AsFormat = Format.table,
) -> None:
    """Show how full a module's memory is over its schedule, as a chart on a terminal."""
    with reading(db) as connection:
        module_id = find_module(connection, module, run)
        rows = fetch(connection, command_query("timeline"), [module_id, space])
    if output is Format.table and sys.stdout.isatty() and len(rows):
        from .chart import print_timeline

        print_timeline(rows)
        return
    print_rows(rows, output, empty=f"memory space {space} has no known occupancy")


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
    try:
        found: list[dict[str, Any]] = fetch(
            connection, command_query("find_module"), [name, run]
        ).to_pylist()
    except duckdb.Error as error:
        raise typer.BadParameter(str(error)) from None
    most = max((row["exactness"] for row in found), default=0)
    fitting = [row for row in found if row["exactness"] == most]
    ids = {row["module_id"] for row in fitting}
    if not fitting:
        raise typer.BadParameter(f"no module fits {name!r}: see `memhouse modules`")
    if len(ids) > 1:
        names = [
            f"{row['workload']}/{row['module_name']}"
            + (f" (number {row['occurrence']}, id {row['module_id']})")
            for row in fitting
        ]
        shown = "\n".join(f"  {name}" for name in names[:_LISTED])
        more = f"\n  … and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        raise typer.BadParameter(f"several modules fit {name!r}:\n{shown}{more}")
    return fitting[0]


_LISTED = 20
