"""`memhouse sql` and `memhouse shell`: SQL against the warehouse."""

import sys
from typing import Annotated

import duckdb
import typer

from ..schema.warehouse import fetch
from .options import DEFAULT_DB, AsFormat, Db, Format
from .output import print_error, print_rows
from .warehouse import reading


def sql(
    query: Annotated[str, typer.Argument(help="The query; - reads it from standard input.")],
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
) -> None:
    """Run a SQL query on the warehouse, which it can only read."""
    text = sys.stdin.read() if query == "-" else query
    with reading(db) as connection:
        try:
            rows = fetch(connection, text)
        except duckdb.Error as error:
            print_error(str(error).strip())
            raise typer.Exit(2) from None
    print_rows(rows, output)


def shell(db: Db = DEFAULT_DB, output: AsFormat = Format.table) -> None:
    """Open a SQL prompt: history, several lines to a query, .help for more."""
    from .shell import run_shell

    with reading(db) as connection:
        run_shell(connection, db, output)
