"""How memory changed from run to run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.metrics import WORK
from ..schema.readable import as_typed, human_bytes
from ..schema.store import Store
from .arguments import metric_column, parse_time
from .catalogue import statement
from .result import (
    Result,
    Rows,
    cause_of,
    change_in_words,
    counted,
    folded,
    human_flops,
)
from .runs import choose_branch
from .series import (
    Series,
    alternating,
    entry_series,
    happened,
    rows_to_read,
    take_apart,
    trend_rows,
)

_EMPTY = "there is no such history"
# So many of the latest runs fit a line beside the numbers.
_RUNS_SHOWN = 24
_BRANCHES_SHOWN = 5
# The columns and their types.
_SERIES = {
    "workload": "string",
    "module": "string",
    "trend": "list",
    "value": "int64",
    "best_value": "int64",
    "unit": "string",
    "since": "string",
    "last_run": "string",
    "gone_for": "string",
    "origin": "string",
}
_STEPS = {
    "run": "string",
    "workload": "string",
    "change": "int64",
    "change_ratio": "float64",
    "value": "int64",
    "unit": "string",
    "cause": "string",
    "module": "string",
    "previous_run": "string",
    "origin": "string",
}
_Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Trends(Result):
    """The history of one metric in one memory space, of one branch.

    rows: the rows of the view `trends`, one a run and series; series: a row a series, the largest
    first, with workload, module, trend (the metric in each of the latest runs, null where the
    series is missing), value (the newest), best_value (the best so far), unit, since (the first
    run of today's level), and, if some are gone, last_run and gone_for; steps: a row for each run
    in which a program changed, came or went, the newest first and in each the largest change, with
    run, workload, change, change_ratio, value, unit, cause, module, previous_run.

    branch: the branch, empty for the runs without one; other_branches: the others, the newest
    first; jitter: the number of changes that are no steps, because the figure stays at its level;
    helpers: what is left out of series and steps with `fold`: series that are no entry program in
    any of the runs, in a line.
    """

    rows: Rows
    series: Rows
    steps: Rows
    branch: str
    other_branches: tuple[str, ...]
    jitter: int
    helpers: str

    def tables(self) -> tuple[Rows, ...]:
        """The series and their steps."""
        return (self.series, self.steps) if len(self.steps) else (self.series,)

    def steps_in_words(self) -> list[str]:
        """A sentence a step: what the program's figure did in which run, and why."""
        return [_in_words(step) for step in self.steps.table.to_pylist()]

    @property
    def branches_note(self) -> str:
        """Which branch it is, and which others there are."""
        shown = f"branch {self.branch}" if self.branch else "runs without a branch"
        names = [as_typed("--branch", name) for name in self.other_branches[:_BRANCHES_SHOWN]]
        left = len(self.other_branches) - len(names)
        more = f" and {left} more" if left else ""
        return f"{shown}; others: {', '.join(names)}{more}"


def trends(
    store: Store,
    *,
    workload: str | None = None,
    branch: str | None = None,
    since: str | datetime | None = None,
    memory_space: int = 0,
    metric: str = "peak",
    fold: bool = True,
) -> Trends:
    """See `Warehouse.trends`."""
    start = parse_time(since, "since")
    column = metric_column(metric, WORK)
    branches = choose_branch(store, branch)
    found = trend_rows(store, workload, branches.chosen, memory_space, column)
    is_shown = _is_since(found, start)
    gone = _gone(store, found, start)
    vanished = {step["series_id"] for step in gone}
    ids = found["series_id"].to_numpy()
    shown = [
        series
        for series in take_apart(found)
        if is_shown[series.start : series.stop].any() or ids[series.start] in vanished
    ]
    helpers = ""
    if fold:
        said = human_flops if column == WORK else human_bytes
        shown, helpers = entry_series(found, shown, is_shown, said)
        kept = {ids[series.start] for series in shown}
        gone = [step for step in gone if step["series_id"] in kept]
    rows = rows_to_read(found, shown)
    shown = sorted(shown, key=lambda series: -(rows[series.last]["value"] or 0))
    steps = gone + [
        _step(rows[place], column, memory_space)
        for series in shown
        for place in series.steps
        if is_shown[place]
    ]
    steps.sort(key=lambda step: -abs(step.get("change") or 0))
    steps.sort(key=lambda step: (step["run_at"], step["run_number"]), reverse=True)

    def name(series: Series) -> str:
        return str(rows[series.stop - 1]["workload"])

    named = [(series, name(series)) for series in shown]
    if fold:
        named = folded(shown, lambda series: series.programs, name)
        steps = [
            {**step, "workload": workload}
            for step, workload in folded(steps, _same_step, lambda step: str(step["workload"]))
        ]
    axes = _Axes(found, is_shown)
    table = _table(
        [_series(found, rows, series, workload, axes) for series, workload in named], _SERIES
    )
    if table["gone_for"].null_count == len(table):
        table = table.drop_columns(["last_run", "gone_for"])
    return Trends(
        Rows(found.filter(pa.array(is_shown)), empty=_EMPTY),
        Rows(table, empty=_EMPTY),
        Rows(_table(steps, _STEPS), empty="nothing changed"),
        branches.chosen,
        branches.others,
        sum(bool(is_shown[place]) for series in shown for place in series.jitter),
        helpers,
    )


def _table(rows: Sequence[_Row], columns: dict[str, str]) -> pa.Table:
    """The rows with columns of these types; a list is one of whole numbers."""
    types = {name: pa.list_(pa.int64()) if of == "list" else of for name, of in columns.items()}
    fields = [pa.field(name, type_) for name, type_ in types.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _is_since(found: pa.Table, start: datetime | None) -> npt.NDArray[np.bool_]:
    """Which rows are of runs since the time."""
    if start is None:
        return np.ones(len(found), bool)
    is_since: npt.NDArray[np.bool_] = pc.greater_equal(found["run_at"], start).to_numpy()
    return is_since


class _Axes:
    """The latest runs of each suite, as their numbers: a place in the trend for each."""

    def __init__(self, found: pa.Table, is_shown: npt.NDArray[np.bool_]) -> None:
        self.runs: dict[str, range] = {}
        shown = found.filter(pa.array(is_shown))
        numbers = pc.add(shown["run_number"], pc.fill_null(shown["runs_since"], 0))
        ends = pa.table({"suite": shown["suite"], "first": shown["run_number"], "last": numbers})
        for row in (
            ends.group_by("suite").aggregate([("first", "min"), ("last", "max")]).to_pylist()
        ):
            last = row["last_max"]
            first = max(row["first_min"], last - _RUNS_SHOWN + 1)
            self.runs[row["suite"]] = range(first, last + 1)

    def of(self, suite: str) -> range:
        """The latest runs of a suite; none if all its series vanished before the rows shown."""
        return self.runs.get(suite, range(0))


def _series(
    found: pa.Table, rows: dict[int, _Row], series: Series, workload: str, axes: _Axes
) -> _Row:
    """A series, with its metric in the latest runs."""
    known, newest = rows[series.last], rows[series.stop - 1]
    # No more of the latest rows can be among the latest runs.
    start = max(series.start, series.stop - _RUNS_SHOWN)
    latest = found.select(["run_number", "value"]).slice(start, series.stop - start)
    by_run = dict(zip(latest["run_number"].to_pylist(), latest["value"].to_pylist(), strict=True))
    since = None
    if series.since is not None:
        since = "alternates" if alternating(series.levels) else rows[series.since]["run_id"]
    missing = newest["runs_since"]
    return {
        "workload": workload,
        "module": newest["module_name"],
        "trend": [by_run.get(run) for run in axes.of(newest["suite"])] if series.known else [],
        "value": known["value"],
        "best_value": known["best_value"],
        "unit": known["unit"],
        "since": since,
        "last_run": known["run_id"],
        "gone_for": counted(missing, "run") if missing else None,
        "origin": known["origin"],
    }


def _step(row: _Row, column: str, memory_space: int) -> _Row:
    """A step of a series, and why."""
    cause = cause_of(row["cause"], column, memory_space)
    return row | {
        "run": row["run_id"],
        "cause": happened(row) if cause is None else cause,
        "module": row["module_name"],
        "previous_run": row["previous_run_id"],
    }


def _in_words(step: _Row) -> str:
    """`2026-10-08: llama/jit_step grew by 64.00 MiB (+5.2 %) to 1.27 GiB: flags changed`."""
    subject = f"{step['run']}: {step['workload']}/{step['module']}"
    is_work = step["unit"] == WORK
    said = human_flops if is_work else human_bytes
    change, now, cause = step["change"], step["value"], step["cause"]
    mark = "≈" if step["origin"] == "estimated" and not is_work else ""
    if change is None:
        # It came, went or failed: that is the cause.
        return f"{subject}: {cause}" + (f", {mark}{said(now)}" if now is not None else "")
    told = f"{subject} {change_in_words(change, step['change_ratio'], now, mark, said)}"
    return f"{told}: {cause}" if cause else told


def _gone(store: Store, found: pa.Table, start: datetime | None) -> list[_Row]:
    """A step for each run since the time that lacks a series which the run before has."""
    series = pc.unique(found["series_id"]).to_pylist()
    return [
        row | {"run": row["run_id"], "module": row["module_name"], "cause": "gone"}
        for row in store.rows(statement("trends.gone"), [series]).to_pylist()
        if start is None or row["run_at"] >= start
    ]


def _same_step(step: _Row) -> Hashable:
    """What steps of one run share that are one program on several hosts."""
    if step["program_id"] is None:
        return None
    return tuple(
        step.get(name)
        for name in ("run", "module", "platform", "program_id", "change", "cause", "suite")
    )
