"""`memhouse check`: gate a run's memory."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from ...queries import check as gate
from ...queries.arguments import metric_column
from ...queries.check import Changes, Check
from ..errors import CANNOT_BE_JUDGED, bisecting
from ..formats import FOR_SCRIPTS, Format
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Space, Wait, completer
from ..render.github import print_annotations
from ..render.text import is_terminal, print_note
from ..render.verdicts import print_check

EXAMPLE = "memhouse check --max-growth 2%"
# The exit status of a run that neither passes nor fails.
_NOT_JUDGED = 3


def check(
    run: Annotated[
        str | None,
        typer.Option(
            help="Run to check [default: the latest ingested run].",
            autocompletion=completer("runs"),
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|branch=NAME",
            help="Compare with this run, or with the newest run of a branch.",
            autocompletion=completer("runs"),
        ),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Compare with the lowest value of all time.")
    ] = False,
    max_growth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="2%|64MiB", help="Maximum growth; all of several apply [default: 1%]."
        ),
    ] = None,
    limits: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file with rules: see docs/check.md.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric to check: peak, temp and so on [default: reserved, or that of --limits]."
        ),
    ] = None,
    memory_space: Space = 0,
    require_baseline: Annotated[
        bool,
        typer.Option("--require-baseline", help="Fail each program that has no earlier values."),
    ] = False,
    accept: Annotated[
        str | None, typer.Option(metavar="REASON", help="Accept this run's growth permanently.")
    ] = None,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Show what to change in the programs that fail; slower."),
    ] = False,
    bisect: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="Check only this module, or a workload's largest, with exit statuses for"
            " `git bisect run`: 125 if it cannot be checked, 128 if the command itself fails.",
        ),
    ] = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Show unchanged and auxiliary programs too, and each host by itself."
        ),
    ] = False,
    output: Annotated[
        Literal[Format, "github"] | None,
        typer.Option(
            "--format",
            "-f",
            help="Output format.",
            show_default="table on a terminal, markdown otherwise",
        ),
    ] = None,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Check whether a run's memory is within its limits.

    Exit status 1 if not, 3 if it cannot be checked. The metric is the memory that each program
    reserves, or its peak if that is unknown, as in estimates. A program is compared with its last
    values before the run, and with the lowest since the last accepted growth; on a branch, with the
    newest run of main. Auxiliary programs, which are small next to their workload's largest, are
    not checked. The output is Markdown for a comment on a pull request, with the rules and the
    place where each is set.
    """
    output = output or ("table" if is_terminal() else "markdown")
    is_for_scripts = output in FOR_SCRIPTS
    with bisecting(bisect):
        # Report wrong usage before waiting for the warehouse.
        if metric is not None:
            metric_column(metric)
        gate.require_one_baseline(baseline, best)
        if accept is not None:
            gate.require_reason(accept)
        gate.read_policy(max_growth, limits)
        with open_warehouse(db, wait) as warehouse:
            verdict = warehouse.check(
                run,
                baseline=baseline,
                best=best,
                max_growth=max_growth,
                limits=limits,
                metric=metric,
                memory_space=memory_space,
                require_baseline=require_baseline,
                module=bisect,
            )
            store = warehouse.store
            lines = gate.owning_lines(store, verdict.verdicts) if output == "github" else {}
            changes: Sequence[Changes] = ()
            if advise and verdict.breaches and accept is None and not is_for_scripts:
                changes = gate.what_to_change(store, verdict.verdicts)
        for workload in verdict.unused:
            print_note(f"{limits}: run {verdict.run_id} has no workload {workload!r}")
        if accept is not None:
            verdict = _accept(verdict, accept, db, wait)
        if output == "github":
            print_annotations(verdict, lines, changes)
        else:
            print_check(verdict, output, changes, show_all=all_)
    if bisect is not None and not verdict.is_judged:
        print_note(f"{bisect} of run {verdict.run_id} cannot be checked")
        raise typer.Exit(CANNOT_BE_JUDGED)
    if verdict.outcome == "not judged" and is_for_scripts:
        for line in (verdict.rows.caption, *verdict.notes):
            print_note(line)
    if not verdict.passes:
        raise typer.Exit(1 if verdict.breaches else _NOT_JUDGED)


def _accept(verdict: Check, reason: str, db: str, wait: float) -> Check:
    """Accept the growth of failing programs, and print how many can be accepted."""
    if not verdict.breaches:
        print_note("no program fails: nothing to accept")
        return verdict
    failing = len(verdict.breaches)
    if any(breach.acceptable() for breach in verdict.breaches):
        with open_warehouse(db, wait, write=True) as warehouse:
            verdict = warehouse.accept(verdict, reason)
    print_note(f"accepted {failing - len(verdict.breaches)} of {failing}: {reason}")
    return verdict
