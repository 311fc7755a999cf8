"""Commands that show what the warehouse holds: runs, modules, peaks, tables, views."""

from typing import Annotated

import typer

from .options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

Run = Annotated[str | None, typer.Option(help="Only this run.")]
Workload = Annotated[str | None, typer.Option(help="Only this workload.")]


def runs(db: Db = DEFAULT_DB, output: AsFormat = Format.table) -> None:
    """List the runs: when, how many dumps and modules, the largest peak."""
    from .reports.rows import show_query

    show_query(db, "runs", [], output, empty="there are no runs yet")


def modules(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """List the modules of each run."""
    from .reports.rows import show_query

    show_query(db, "modules", [run, workload], output, empty="there are no such modules")


def peaks(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """Show each module's peak in each memory space, the largest first.

    Without --run, the latest of each series of runs.
    """
    from .reports.rows import show_query

    show_query(db, "peaks", [run, workload], output, empty="there are no such peaks")


def fragmentation(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """Show what packing wastes of each temp allocation, the most first.

    Without --run, the latest of each series of runs.
    """
    from .reports.rows import show_query

    show_query(db, "fragmentation", [run, workload], output, empty="there are no temp allocations")


def tables(
    name: Annotated[str | None, typer.Argument(help="Show this table's columns.")] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
) -> None:
    """List the tables, their rows and what they are for, or one table's columns."""
    from .reports.rows import show_tables

    show_tables(db, name, output)


def views(
    name: Annotated[str | None, typer.Argument(help="Show this view's columns and SQL.")] = None,
    output: AsFormat = Format.table,
) -> None:
    """List the canned views and what they answer, or one view's columns and SQL."""
    from .reports.rows import show_views

    show_views(name, output)


def sql(
    query: Annotated[
        str,
        typer.Argument(help="The query; - reads it from standard input.", show_default=False),
    ],
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    write: Annotated[
        bool, typer.Option("--write", help="Let it change the warehouse: all of it or nothing.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Run a SQL query on the warehouse, which it can only read unless you say --write."""
    from .reports.sql import show_sql

    show_sql(db, query, output, write=write, wait=wait)


def shell(db: Db = DEFAULT_DB, output: AsFormat = Format.table) -> None:
    """Open a SQL prompt: history, several lines to a query, .help for more."""
    from .reports.shell import open_shell

    open_shell(db, output)


def verify(
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    list_checks: Annotated[
        bool, typer.Option("--list", help="Say what is checked, and check nothing.")
    ] = False,
) -> None:
    """Hold every module against what its dump says of itself; name each breach.

    Exit status 1 if there is one.
    """
    from .reports.verify import show_breaches, show_checks

    if list_checks:
        show_checks(output)
    else:
        show_breaches(db, output)
