"""`memhouse export`: a view or table to a file."""

from pathlib import Path
from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Since, Wait, Workload


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
    workload: Workload = None,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="Of trends: a row per run and series, a column per metric."),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write a view or table to a csv, json, parquet or arrow file; sizes are plain bytes."""
    from ...queries.export import export as write
    from ..opening import reading
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        done = write(store, view, file, where=where, since=since, workload=workload, wide=wide)
    print_note(f"{done.path}: {done.rows} rows of {view}")
