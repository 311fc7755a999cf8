"""Commands that show the rows of one query."""

import sys

import duckdb
import pyarrow as pa
import typer

from ...queries.catalogue import command_query, public_views
from ...schema.tables import metadata
from ...schema.warehouse import fetch
from ..options import Format
from ..output import print_error, print_rows
from ..warehouse import reading


def show_query(db: str, name: str, parameters: list[object], output: Format, *, empty: str) -> None:
    """Show the rows of a query of `queries/commands/`."""
    with reading(db) as connection:
        rows = fetch(connection, command_query(name), parameters)
    print_rows(rows, output, empty=empty)


def show_sql(db: str, query: str, output: Format) -> None:
    """Show the rows of the user's own query; `-` is standard input."""
    text = sys.stdin.read() if query == "-" else query
    with reading(db) as connection:
        try:
            rows = fetch(connection, text)
        except duckdb.Error as error:
            print_error(str(error).strip())
            raise typer.Exit(2) from None
    print_rows(rows, output)


def show_tables(db: str, name: str | None, output: Format) -> None:
    """Show all tables, or the columns of one."""
    if name is None:
        show_query(db, "tables", [], output, empty="there are no tables")
    elif name in metadata.tables:
        show_query(db, "columns", [name], output, empty="it has no columns")
    else:
        raise typer.BadParameter(f"there is no table {name}: see `memhouse tables`")


def show_views(name: str | None, output: Format) -> None:
    """Show all canned views, or the columns and the SQL of one."""
    canned = public_views()
    if name is None:
        rows = [{"view": view.name, "answers": view.answers} for view in canned.values()]
        print_rows(pa.Table.from_pylist(rows), output)
        return
    if name not in canned:
        raise typer.BadParameter(f"there is no view {name}: see `memhouse views`")
    view = canned[name]
    columns = [{"column": column, "meaning": text} for column, text in view.columns.items()]
    if output is not Format.table:
        print_rows(pa.Table.from_pylist(columns), output)
        return
    typer.echo(f"{view.answers} {view.description}\n")
    print_rows(pa.Table.from_pylist(columns), output)
    typer.echo(f"\n{view.sql}")
