"""Commands that show the rows of one query."""

import pyarrow as pa
import typer

from ...queries.catalogue import command_query, public_views
from ...schema.stores.duckdb import fetch
from ...schema.tables import metadata
from ..options import Format
from ..render.output import print_prose, print_rows, print_text
from ..warehouse import reading


def show_query(db: str, name: str, parameters: list[object], output: Format, *, empty: str) -> None:
    """Show the rows of a query of `queries/statements/`."""
    with reading(db) as connection:
        rows = fetch(connection, command_query(name), parameters)
    print_rows(rows, output, empty=empty)


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
    print_prose(f"{view.answers} {view.description}")
    print_text("")
    print_rows(pa.Table.from_pylist(columns), output)
    print_text(f"\n{view.sql}")
