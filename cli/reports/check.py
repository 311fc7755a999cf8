"""Judges a run: the summary in Markdown that `memhouse check` prints."""

from pathlib import Path

import pyarrow as pa
import typer

from ...queries.catalogue import command_query
from ...queries.check import Verdict, accept, check_run
from ...queries.figures import FIGURES, what_changed
from ...queries.thresholds import Limits, Policy, parse_growth, parse_policy
from ...schema.stores.duckdb import fetch
from ..options import Format
from ..render.human import human_bytes, one_line
from ..render.output import print_note, print_rows, print_text
from ..warehouse import reading, writing

_DEFAULT_GROWTH = ["1%"]


def show_check(
    db: str,
    *,
    run: str | None,
    baseline: str | None,
    best: bool,
    max_growth: list[str] | None,
    limits: Path | None,
    figure: str,
    space: int,
    accept_reason: str | None,
    wait: float,
) -> None:
    """Judge a run, print the summary, and exit with status 1 if it fails."""
    column = f"{figure}_bytes"
    if column not in FIGURES:
        raise typer.BadParameter(f"there is no figure {figure!r}", param_hint="--figure")
    if baseline is not None and best:
        raise typer.BadParameter(
            "it is held against a run or against the best, not both",
            param_hint="--baseline / --best",
        )
    policy = _policy(max_growth, limits)
    with reading(db, wait=wait) as connection:
        runs = fetch(connection, command_query("run_names"))["run_id"].to_pylist()
        for name in (run, baseline):
            if name is not None and name not in runs:
                raise typer.BadParameter(f"there is no run {name!r}: see `memhouse runs`")
        if not runs:
            raise typer.BadParameter("there are no runs to judge: see `memhouse ingest`")
        judged = run or runs[0]
        verdicts = check_run(
            connection,
            judged,
            figure=column,
            memory_space=space,
            baseline=baseline,
            best=best,
            policy=policy,
        )
        missing = fetch(connection, command_query("missing_series"), [judged]).to_pylist()
    for workload in policy.workloads.keys() - {verdict.row["workload"] for verdict in verdicts}:
        print_note(f"{limits}: run {judged} has no workload {workload!r}")
    breaches = [verdict for verdict in verdicts if verdict.breaches]
    _print_summary(
        judged,
        figure,
        verdicts,
        breaches,
        [f"{row['workload']}/{row['module_name']}" for row in missing],
    )
    if breaches and accept_reason is not None:
        accepted = [verdict for verdict in breaches if verdict.is_acceptable]
        if accepted:
            with (
                writing(db, wait=wait, create=False) as engine,
                engine.begin() as connection,
            ):
                accept(connection, judged, column, accepted, accept_reason)
        print_note(f"accepted {len(accepted)} of {len(breaches)}: {accept_reason}")
        breaches = [verdict for verdict in breaches if verdict not in accepted]
    if breaches:
        raise typer.Exit(1)


def _policy(max_growth: list[str] | None, limits: Path | None) -> Policy:
    try:
        growth = tuple(parse_growth(text) for text in max_growth or _DEFAULT_GROWTH)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--max-growth") from None
    default = Limits(growth)
    if limits is None:
        return Policy(default)
    try:
        return parse_policy(limits.read_text(), default)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{limits}: {error}", param_hint="--limits") from None


def _print_summary(
    run: str, figure: str, verdicts: list[Verdict], breaches: list[Verdict], missing: list[str]
) -> None:
    result = f"{len(breaches)} of {len(verdicts)} fail" if breaches else f"all {len(verdicts)} pass"
    run = one_line(run)
    print_text(f"### memhouse: {figure} memory of `{run}`: {result}\n")
    shown = [v for v in verdicts if v.breaches or v.change_bytes]
    rows = [
        {
            "module": verdict.name,
            "before_bytes": verdict.row["baseline_bytes"],
            "now_bytes": verdict.row["now_bytes"],
            "change_bytes": verdict.change_bytes,
            "held_against": verdict.row["held_against"],
            "changed": ", ".join(what_changed(verdict.row)),
            "verdict": "; ".join(verdict.breaches) or "pass",
        }
        for verdict in sorted(shown, key=lambda v: (not v.breaches, -(v.change_bytes or 0)))
    ]
    if rows:
        print_rows(pa.Table.from_pylist(rows), Format.markdown)
    for verdict in verdicts:
        if verdict.row["accepted_reason"]:
            accepted = human_bytes(verdict.row["baseline_bytes"])
            why = one_line(verdict.row["accepted_reason"])
            print_text(f"\n{one_line(verdict.name)}: {accepted} was accepted: {why}")
    if missing:
        print_text(f"\nMissing since the run before: {', '.join(map(one_line, missing))}")
    if breaches:
        before = breaches[0].row["before_run_id"]
        if before is not None and before == breaches[0].row["held_against"]:
            print_text(f"\nWhat grew: `memhouse diff {one_line(before)} {run}`")
