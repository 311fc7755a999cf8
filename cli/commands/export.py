"""`memhouse export`: a view, a table or a query to a file, or a module as a trace."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...queries.export import export as write
from ...queries.export import export_sql
from ...queries.own_macros import use_macros
from ...queries.result import counted
from ...report.export_trace import ENDINGS, export_trace
from ...schema.errors import QueryError, UsageError
from ..opening import reading
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, RunOfModule, Since, Wait, Workload, completer
from ..render.text import print_error, print_note
from ..settings import find_settings

EXAMPLE = "memhouse export trends memory --append --wide --metric peak"


class TraceFormat(StrEnum):
    """Formats that a file's ending need not tell."""

    perfetto = "perfetto"


def export(
    view: Annotated[
        str | None,
        typer.Argument(
            metavar="VIEW|MODULE",
            help="A view or table; of a trace, the module.",
            show_default=False,
            autocompletion=completer("exported"),
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Its ending tells the format: .csv, .json, .parquet, .arrow; .pftrace or"
            " .perfetto-trace. With --append a folder.",
            show_default=False,
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    query: Annotated[
        str | None,
        typer.Option("--sql", metavar="QUERY", help="Write the rows of a query, with -o FILE."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ] = None,
    trace_format: Annotated[
        TraceFormat | None,
        typer.Option("--format", "-f", help="Write a module as a trace, whatever the ending."),
    ] = None,
    run: RunOfModule = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only rows for which this holds.")
    ] = None,
    since: Since = None,
    workload: Workload = None,
    module: Annotated[
        str | None,
        typer.Option(
            help="Only this workload, module name, or WORKLOAD/NAME.",
            autocompletion=completer("modules"),
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Only these metrics: peak, total and so on, with commas [default: all].",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(help="Only runs of this branch, else of the default branch; * for all."),
    ] = None,
    space: Annotated[
        int | None, typer.Option(help="Only this memory space, by number; 0 is HBM.")
    ] = None,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add trends to a folder of CSV files, peak.csv and so on: only rows that they"
            " lack, those of a late run last.",
        ),
    ] = False,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="With --append write peak_wide.csv too, for spreadsheets: a row a run and a"
            " column a program, which keeps its place; programs.csv lists the programs.",
        ),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write a view, a table or a query to a csv, json, parquet or arrow file.

    With --append, add the newest runs to a folder of trends, for a nightly job.
    With --format perfetto, write a module as a trace that https://ui.perfetto.dev shows.
    """
    rows_of: dict[str, Any] = {
        **{"where": where, "since": since, "workload": workload, "module": module},
        **{"metric": metric, "branch": branch},
    }
    file = output or file
    if (view is None) == (query is None):
        raise UsageError("name a view or a module, or give --sql QUERY -o FILE")
    if file is None:
        raise UsageError("the file is missing: name it last, or with -o FILE")
    is_trace = trace_format is not None or file.suffix in ENDINGS
    if is_trace or query is not None:
        others = {"space": space, "append": append or None, "wide": wide or None}
        for name, value in (rows_of | others).items():
            if value is not None:
                raise UsageError("only rows of a view are chosen", name)
    if run is not None and not is_trace:
        raise UsageError("a run is chosen of a module: use --where of a view", "run")
    with reading(db, wait=wait) as store:
        if query is not None:
            use_macros(store, find_settings().macros)
            try:
                done = export_sql(store, query, file)
            except QueryError as error:
                print_error(str(error))
                raise typer.Exit(2) from None
            for warning in done.warnings:
                print_note(f"warning: {warning}")
        elif is_trace:
            trace = export_trace(store, str(view), file, run)
            values, spaces = counted(trace.values, "value"), counted(trace.spaces, "memory space")
            print_note(f"{trace.path}: {values} in {spaces}")
            return
        else:
            done = write(
                store, str(view), file, **rows_of, memory_space=space, append=append, wide=wide
            )
    rows = "new rows" if append else "rows"
    print_note(f"{done.path}: {done.rows} {rows} of {view or 'the query'}")
