"""Commands that show what the warehouse holds: runs, modules, peaks, tables, views."""

from typing import Annotated

import typer

from ..queries.catalogue import command_query, public_views
from ..schema.warehouse import fetch
from .options import DEFAULT_DB, AsFormat, Db, Format
from .output import print_rows
from .warehouse import reading

Run = Annotated[str | None, typer.Option(help="Only this run.")]
Workload = Annotated[str | None, typer.Option(help="Only this workload.")]


def runs(db: Db = DEFAULT_DB, output: AsFormat = Format.table) -> None:
    """List the runs: when, how many dumps and modules, the largest peak."""
    with reading(db) as connection:
        rows = fetch(connection, command_query("runs"))
    print_rows(rows, output, empty="there are no runs yet")


def modules(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """List the modules of each run."""
    with reading(db) as connection:
        rows = fetch(connection, command_query("modules"), [run, workload])
    print_rows(rows, output, empty="there are no such modules")


def peaks(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """Show each module's peak in each memory space, the largest first.

    Without --run, the latest of each series of runs.
    """
    with reading(db) as connection:
        rows = fetch(connection, command_query("peaks"), [run, workload])
    print_rows(rows, output, empty="there are no such peaks")


def fragmentation(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """Show what packing wastes of each temp allocation, the most first.

    Without --run, the latest of each series of runs.
    """
    with reading(db) as connection:
        rows = fetch(connection, command_query("fragmentation"), [run, workload])
    print_rows(rows, output, empty="there are no temp allocations")


def tables(
    name: Annotated[str | None, typer.Argument(help="Show this table's columns.")] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
) -> None:
    """List the tables, their rows and what they are for, or one table's columns."""
    from ..schema.tables import metadata

    if name is not None and name not in metadata.tables:
        raise typer.BadParameter(f"there is no table {name}: see `memhouse tables`")
    with reading(db) as connection:
        query = command_query("tables" if name is None else "columns")
        rows = fetch(connection, query, [] if name is None else [name])
    print_rows(rows, output)


def views(
    name: Annotated[str | None, typer.Argument(help="Show this view's columns and SQL.")] = None,
    output: AsFormat = Format.table,
) -> None:
    """List the canned views and what they answer, or one view's columns and SQL."""
    import pyarrow as pa

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
