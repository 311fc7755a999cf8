"""`memhouse check`: is a run's memory within its limits?"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..known import known_runs
from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Figure, Format, Space, Wait

if TYPE_CHECKING:
    from ...queries.checking.what_to_change import Changes


EXAMPLE = "memhouse check --max-growth 2%"


class CheckFormat(StrEnum):
    """How the verdicts are printed."""

    markdown = "markdown"
    table = "table"
    csv = "csv"
    json = "json"
    github = "github"


_FOR_SCRIPTS = (CheckFormat.csv, CheckFormat.json)
# The exit status if the run neither passes nor fails.
_NOT_JUDGED = 3


def check(
    db: Db = DEFAULT_DB,
    run: Annotated[
        str | None,
        typer.Option(
            help="The run to judge; else the one that entered last.", autocompletion=known_runs
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|branch=NAME",
            help="Hold it against this run or branch.",
            autocompletion=known_runs,
        ),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Hold it against the lowest of all time.")
    ] = False,
    max_growth: Annotated[
        list[str] | None,
        typer.Option(metavar="2%|64MiB", help="How much it may grow; 1% unless given. Repeatable."),
    ] = None,
    limits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The rules, a TOML file: see docs/check.md."),
    ] = None,
    figure: Figure = "peak",
    space: Space = 0,
    require_baseline: Annotated[
        bool,
        typer.Option("--require-baseline", help="Fail each program that has no figures before."),
    ] = False,
    accept: Annotated[
        str | None, typer.Option(metavar="REASON", help="Let this run's growth pass, for good.")
    ] = None,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Say what to change in the programs that fail; seconds."),
    ] = False,
    bisect: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="Judge only this module, with exit statuses for `git bisect run`: 125 if it "
            "cannot be judged, 128 if the check itself fails.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show unchanged programs too, and fold no hosts.")
    ] = False,
    output: Annotated[
        CheckFormat, typer.Option("--format", "-f", help="How to print the verdicts.")
    ] = CheckFormat.markdown,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Judge whether a run's memory is within its limits; exit status 1 if not, 3 if not judged.

    A program is held against its last figures before and against the lowest since the last
    accepted growth; on a branch against the newest run of main. Prints a summary in
    Markdown, fit for a comment on a pull request.
    """
    from ...queries import check as gate
    from ...queries.arguments import metric_column
    from ...queries.checking.owning_lines import owning_lines
    from ...queries.checking.read_policy import read_policy
    from ..bisecting import CANNOT_BE_JUDGED, bisecting
    from ..opening import reading, writing
    from ..render.github import print_annotations
    from ..render.text import print_note
    from ..render.verdicts import print_check

    with bisecting(bisect):
        # Wrong usage is told before the warehouse is waited for.
        metric_column(figure)
        gate.require_one_baseline(baseline, best)
        if accept is not None:
            gate.require_reason(accept)
        policy = read_policy(max_growth, limits, require_baseline=require_baseline)
        with reading(db, wait=wait) as store:
            found = gate.check(
                store,
                run,
                baseline=baseline,
                best=best,
                policy=policy,
                metric=figure,
                memory_space=space,
                module=bisect,
            )
            lines = owning_lines(store, found.verdicts) if output is CheckFormat.github else {}
            changes: Sequence[Changes] = ()
            if advise and found.breaches and accept is None and output not in _FOR_SCRIPTS:
                # It takes longer to import than a check that passes.
                from ...queries.checking.what_to_change import what_to_change

                changes = what_to_change(store, found.verdicts)
        for workload in found.unused:
            print_note(f"{limits}: run {found.run_id} has no workload {workload!r}")
        if accept is not None and not found.breaches:
            print_note("nothing fails: nothing is accepted")
        if accept is not None and found.breaches:
            failing = len(found.breaches)
            if any(verdict.acceptable() for verdict in found.breaches):
                with writing(db, wait=wait) as store:
                    found = gate.accept(store, found, accept)
            print_note(f"accepted {failing - len(found.breaches)} of {failing}: {accept}")
        if output is CheckFormat.github:
            print_annotations(found, lines, changes)
        else:
            print_check(found, Format(output.value), changes, is_whole=all_)
    if bisect is not None and not found.is_judged:
        print_note(f"{bisect} of run {found.run_id} cannot be judged")
        raise typer.Exit(CANNOT_BE_JUDGED)
    if found.outcome == "not judged" and output in _FOR_SCRIPTS:
        for line in (found.rows.caption, *found.notes):
            print_note(line)
    if not found.passes:
        raise typer.Exit(1 if found.breaches else _NOT_JUDGED)
