"""`memhouse check`: is a run's memory within its thresholds?"""

from pathlib import Path
from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Figure, Space, Wait


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
    from ...queries import check as gate
    from ...queries.arguments import metric_column
    from ...queries.thresholds import read_policy
    from ..opening import reading, writing
    from ..render.text import print_note
    from ..render.verdicts import print_check

    # Wrong usage is told before the warehouse is waited for.
    metric_column(figure)
    gate.require_one_baseline(baseline, best)
    policy = read_policy(max_growth, limits)
    with reading(db, wait=wait) as store:
        found = gate.check(
            store,
            run,
            baseline=baseline,
            best=best,
            policy=policy,
            metric=figure,
            memory_space=space,
        )
    for workload in found.unused:
        print_note(f"{limits}: run {found.run_id} has no workload {workload!r}")
    print_check(found, figure)
    if found.breaches and accept is not None:
        breaches = len(found.breaches)
        if any(verdict.is_acceptable for verdict in found.breaches):
            with writing(db, wait=wait) as store:
                found = gate.accept(store, found, accept)
        print_note(f"accepted {breaches - len(found.breaches)} of {breaches}: {accept}")
    if not found.passes:
        raise typer.Exit(1)
