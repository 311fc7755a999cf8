"""`memhouse export`: a view or table to a file, or a module as a trace."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...queries.export import export as write
from ...queries.export_trace import ENDINGS, export_trace
from ...queries.questions import RunOfModule, Since, Workload
from ...queries.result import counted
from ...schema.errors import UsageError
from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Wait, completer, reading
from ..render.text import print_note

EXAMPLE = "memhouse export trends trends.csv --wide --metric peak"


class TraceFormat(StrEnum):
    """Formats that a file's ending need not tell."""

    perfetto = "perfetto"


def export(
    view: Annotated[
        str,
        typer.Argument(
            metavar="VIEW|MODULE",
            help="A view or table; of a trace, the module.",
            show_default=False,
            autocompletion=completer("exported"),
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help="Its ending tells the format: .csv, .json, .parquet, .arrow; .pftrace or"
            " .perfetto-trace.",
            show_default=False,
        ),
    ],
    db: Db = DEFAULT_DB,
    output: Annotated[
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
        typer.Option("--metric", "--figure", help="Only this figure: peak, total and so on."),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(help="Only runs of this branch, else of the default branch; * for all."),
    ] = None,
    space: Annotated[
        int | None, typer.Option(help="Only this memory space, by number; 0 is HBM.")
    ] = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="Of trends: a row per run and series, a column per metric; with --metric, for"
            " spreadsheets, a row per run and a column per program.",
        ),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write a view or table to a csv, json, parquet or arrow file; sizes are plain bytes.

    With --format perfetto, write a module as a trace that https://ui.perfetto.dev shows.
    """
    if output is not None or file.suffix in ENDINGS:
        chosen = {
            **{"where": where, "since": since, "workload": workload, "module": module},
            **{"metric": metric, "branch": branch, "space": space, "wide": wide or None},
        }
        for name, value in chosen.items():
            if value is not None:
                raise UsageError("rows are chosen of a view, a trace shows one module", name)
        with reading(db, wait=wait) as store:
            trace = export_trace(store, view, file, run)
        values, spaces = counted(trace.values, "value"), counted(trace.spaces, "memory space")
        print_note(f"{trace.path}: {values} in {spaces}")
        return
    if run is not None:
        raise UsageError("a run is chosen of a module: use --where of a view", "run")
    with reading(db, wait=wait) as store:
        done = write(
            store,
            view,
            file,
            where=where,
            since=since,
            workload=workload,
            module=module,
            metric=metric,
            branch=branch,
            memory_space=space,
            wide=wide,
        )
    print_note(f"{done.path}: {done.rows} rows of {view}")
