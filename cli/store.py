"""Commands that move data out of the warehouse: export, prune."""

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_DB, DEFAULT_WAIT, Db, Since, Wait


def export(
    view: Annotated[str, typer.Argument(help="A view or table.", show_default=False)],
    file: Annotated[
        Path,
        typer.Argument(
            help="Its ending tells the format: .csv, .json, .parquet or .arrow.",
            show_default=False,
        ),
    ],
    db: Db = DEFAULT_DB,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only rows for which this holds.")
    ] = None,
    since: Since = None,
    workload: Annotated[str | None, typer.Option(help="Only this workload.")] = None,
) -> None:
    """Write a view or table to a csv, json, parquet or arrow file; sizes are plain bytes."""
    from .reports.export import export_view

    export_view(db, view, file, where=where, since=since, workload=workload)


def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs to drop.", show_default=False),
    ] = None,
    db: Db = DEFAULT_DB,
    keep: Annotated[
        str | None, typer.Option(metavar="90d", help="Drop all runs older than so long (d, w, y).")
    ] = None,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Drop runs, and the modules that no other run points to; nothing else."""
    from .reports.prune import drop_runs

    drop_runs(db, runs or [], keep, wait)
