"""`memhouse sql`: the user's own queries."""

import sys
from typing import Annotated

import typer

from ...queries.own_macros import use_macros
from ...queries.sql import sql as find
from ...queries.sql import sql_warnings
from ...schema.errors import QueryError, UsageError
from ..opening import reading, writing
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import print_error, print_note, print_rows
from ..settings import find_settings

EXAMPLE = 'memhouse sql "SELECT workload, peak_bytes FROM peaks" --format csv'


def sql(
    query: Annotated[
        str,
        typer.Argument(help="The query; - reads it from standard input.", show_default=False),
    ],
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    write: Annotated[
        bool, typer.Option("--write", help="Let it change the warehouse: all of it or nothing.")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Let it open files, and all else that DuckDB can.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Do not run it: list warnings; the exit status is 1 if any."),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Run a SQL query on the warehouse.

    It reads the warehouse's tables and views, and nothing else unless you say --write or --files.
    Functions of your own come from `macros` in memhouse.toml; `memhouse views` lists them.
    It warns on stderr of sums over rows that a join repeats, and of rows of several branches.
    """
    macros = find_settings().macros
    if check and (write or files):
        raise UsageError("a query is checked that only reads the warehouse", "check")
    text = sys.stdin.read() if query == "-" else query
    try:
        if check:
            with reading(db, wait=wait) as store:
                use_macros(store, macros)
                rows = sql_warnings(store, text)
            print_rows(rows, output)
            raise typer.Exit(1 if len(rows) else 0)
        with (writing if write else reading)(db, wait=wait) as store:
            use_macros(store, macros)
            rows = find(store, text, write=write, files=files)
    except QueryError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    print_rows(rows, output)
    for warning in rows.warnings:
        print_note(f"warning: {warning}")
