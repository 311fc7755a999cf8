"""Runs the user's own SQL."""

import sys

import duckdb
import pyarrow as pa
import sqlalchemy as sa
import typer

from ...schema.errors import duckdb_says
from ...schema.stores.duckdb import fetch
from ..options import Format
from ..render.output import print_error, print_rows
from ..warehouse import reading, writing

_TO_WRITE = "use `memhouse sql --write` to change the warehouse"


def show_sql(db: str, query: str, output: Format, *, write: bool, wait: float) -> None:
    """Show the rows of the user's own query; `-` is standard input."""
    text = sys.stdin.read() if query == "-" else query
    if write:
        with writing(db, wait=wait, create=False) as engine, engine.begin() as connection:
            rows = _rows(connection, text)
    else:
        with reading(db) as connection:
            rows = _rows(connection, text)
    print_rows(rows, output, empty="done" if write else "no rows")


def sql_error(error: duckdb.Error) -> str:
    """What is wrong with a user's query, on a line."""
    said = duckdb_says(error)
    return f"{said.rstrip('!')}: {_TO_WRITE}" if "read-only mode" in said else said


def _rows(connection: sa.Connection, text: str) -> pa.Table:
    try:
        return fetch(connection, text)
    except duckdb.Error as error:
        print_error(sql_error(error))
        raise typer.Exit(2) from None
