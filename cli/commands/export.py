"""`memhouse export`: write rows to a file, or a module as a trace."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...queries.result import counted
from ...report.export_trace import ENDINGS
from ...schema.errors import QueryError, UsageError
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, RunOfModule, Since, Wait, Workload, completer
from ..render.text import print_error, print_note

EXAMPLE = "memhouse export trends memory --append --wide --metric peak"


class TraceFormat(StrEnum):
    """Formats for files with any suffix."""

    perfetto = "perfetto"


def export(
    view: Annotated[
        str | None,
        typer.Argument(
            metavar="VIEW|MODULE",
            help="A view or table; for a trace, a module.",
            show_default=False,
            autocompletion=completer("exported"),
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The suffix selects the format: .csv, .json, .parquet, .arrow; .pftrace or"
            " .perfetto-trace. With --append, a folder.",
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
        typer.Option("--format", "-f", help="Write a module as a trace, for any suffix."),
    ] = None,
    run: RunOfModule = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only rows that match this condition.")
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
            help="Only these metrics, comma-separated: peak, total and so on [default: all]."
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(help="Only runs of this branch, * for all [default: the default branch]."),
    ] = None,
    space: Annotated[
        int | None, typer.Option(help="Only the memory space of this number; 0 is HBM.")
    ] = None,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add trends to a folder of CSV files, peak.csv and so on: only missing rows, at"
            " the end.",
        ),
    ] = False,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="With --append, write peak_wide.csv too, for spreadsheets: a row per run and a"
            " fixed column per program; programs.csv lists the programs.",
        ),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write a view, a table or a query to a csv, json, parquet or arrow file.

    With --append, add the newest runs to a folder of trends, for a nightly job.
    With --format perfetto, write a module as a trace that https://ui.perfetto.dev shows.
    """
    filters: dict[str, Any] = {
        **{"where": where, "since": since, "workload": workload, "module": module},
        **{"metric": metric, "branch": branch},
    }
    file = output or file
    if (view is None) == (query is None):
        raise UsageError("name a view or a module, or pass --sql QUERY -o FILE")
    if file is None:
        raise UsageError("no file: name it last, or pass -o FILE")
    is_trace = trace_format is not None or file.suffix in ENDINGS
    if is_trace or query is not None:
        layout = {"space": space, "append": append or None, "wide": wide or None}
        for name, value in (filters | layout).items():
            if value is not None:
                raise UsageError("applies only to a view or table", name)
    if run is not None and not is_trace:
        raise UsageError("applies only to a trace: use --where for a view", "run")
    with open_warehouse(db, wait) as warehouse:
        if is_trace:
            trace = warehouse.export_trace(str(view), file, run=run)
            values, spaces = counted(trace.values, "value"), counted(trace.spaces, "memory space")
            print_note(f"{trace.path}: {values} in {spaces}")
            return
        if query is not None:
            try:
                exported = warehouse.export_sql(query, file)
            except QueryError as error:
                print_error(str(error))
                raise typer.Exit(2) from None
            for warning in exported.warnings:
                print_note(f"warning: {warning}")
        else:
            exported = warehouse.export(
                str(view), file, **filters, memory_space=space, append=append, wide=wide
            )
    noun = "new rows" if append else "rows"
    print_note(f"{exported.path}: {exported.rows} {noun} of {view or 'the query'}")
