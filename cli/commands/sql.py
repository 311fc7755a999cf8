"""`memhouse sql`: run a query."""

import sys
from typing import Annotated

import typer

from ...queries.own_macros import use_macros
from ...queries.sql import sql_warnings
from ...schema.errors import QueryError, UsageError
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import print_error, print_note, print_rows

EXAMPLE = 'memhouse sql "SELECT workload, peak_bytes FROM peaks" --format csv'


def sql(
    query: Annotated[
        str, typer.Argument(help="The query; - reads it from standard input.", show_default=False)
    ],
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    write: Annotated[
        bool, typer.Option("--write", help="Let it change the warehouse, in one transaction.")
    ] = False,
    files: Annotated[
        bool,
        typer.Option("--files", help="Let it open files, and use all other features of DuckDB."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="List warnings and do not run it; exit status 1 if any.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Run a SQL query on the warehouse.

    Without --write and --files the query only reads the warehouse's tables and views. User-defined
    functions come from `macros` in memhouse.toml; `memhouse views` lists them. Warnings on stderr:
    sums over rows that a join repeats, and rows of several branches.
    """
    if check and (write or files):
        raise UsageError("cannot be combined with --write or --files", "check")
    text = sys.stdin.read() if query == "-" else query
    try:
        with open_warehouse(db, wait, write=write) as warehouse:
            if check:
                use_macros(warehouse.store, warehouse.macros)
                rows = sql_warnings(warehouse.store, text)
            else:
                rows = warehouse.sql(text, write=write, files=files)
    except QueryError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    print_rows(rows, output)
    if check:
        raise typer.Exit(1 if len(rows) else 0)
    for warning in rows.warnings:
        print_note(f"warning: {warning}")
