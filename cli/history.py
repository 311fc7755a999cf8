"""Commands about history: trends, diff, check."""

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Since, Wait

Workload = Annotated[str | None, typer.Option(help="Only this workload.")]
Space = Annotated[int, typer.Option(help="The memory space's number; 0 is HBM.")]
Figure = Annotated[
    str, typer.Option(help="Which figure: peak, total, temp, argument, output, padding and so on.")
]
_RUN_OR_MODULE = "A run, or a module as RUN/WORKLOAD/NAME or a unique part of it."


def trends(
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    since: Since = None,
    space: Space = 0,
    figure: Figure = "peak",
    output: AsFormat = Format.table,
) -> None:
    """Show how each module's memory changed from run to run, and what changed with it.

    csv, json and markdown have a row per run and series with all figures.
    """
    from .reports.trends import show_trends

    show_trends(db, workload, since, space, figure, output)


def diff(
    a: Annotated[str, typer.Argument(help=_RUN_OR_MODULE, show_default=False)],
    b: Annotated[str, typer.Argument(help=_RUN_OR_MODULE, show_default=False)],
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    space: Space = 0,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many buffers a module.")
    ] = 12,
    output: AsFormat = Format.table,
) -> None:
    """Show what grew or shrank from A to B, buffer by buffer, and what else changed.

    The buffers' changes add up to the change of the peak. csv and json have all of them, of
    all memory spaces.
    """
    from .reports.diff import show_diff

    show_diff(db, a, b, workload, space, limit, output)


def check(
    db: Db = DEFAULT_DB,
    run: Annotated[str | None, typer.Option(help="The run to judge; else the latest.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="Hold it against this run.")
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="Hold it against the best so far.")] = False,
    max_growth: Annotated[
        list[str] | None,
        typer.Option(metavar="2%|64MiB", help="How much it may grow; 1% unless given. Repeatable."),
    ] = None,
    limits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file with max_growth and max_bytes."),
    ] = None,
    figure: Figure = "peak",
    space: Space = 0,
    accept: Annotated[
        str | None, typer.Option(metavar="REASON", help="Let this run's growth pass, for good.")
    ] = None,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Judge whether a run's memory is within its thresholds; exit status 1 if it is not.

    Each series is held against the run before. Prints a summary in Markdown, fit for a
    comment on a pull request.
    """
    from .reports.check import show_check

    show_check(
        db,
        run=run,
        baseline=baseline,
        best=best,
        max_growth=max_growth,
        limits=limits,
        figure=figure,
        space=space,
        accept_reason=accept,
        wait=wait,
    )
