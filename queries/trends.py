"""How memory changed from run to run."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa

from ..schema.stores.base import Store
from .arguments import metric_column, parse_time
from .catalogue import statement
from .cells import counted
from .lists import run_names
from .result import Result, Rows

_EMPTY = "there is no such history"
_CHANGES = {
    "signature_changed": "signature",
    "compiler_changed": "compiler",
    "flags_changed": "flags",
    "content_changed": "program",
}
# So many of the latest runs fit a line beside the numbers.
_RUNS_SHOWN = 24
_SERIES = pa.schema(
    [
        ("workload", pa.string()),
        ("module", pa.string()),
        ("trend", pa.list_(pa.int64())),
        ("now_bytes", pa.int64()),
        ("best_bytes", pa.int64()),
        ("last_run", pa.string()),
        ("gone_for", pa.string()),
        ("origin", pa.string()),
    ]
)
_STEPS = pa.schema(
    [
        ("run", pa.string()),
        ("workload", pa.string()),
        ("change_bytes", pa.int64()),
        ("change_pct", pa.float64()),
        ("now_bytes", pa.int64()),
        ("changed", pa.string()),
        ("module", pa.string()),
        ("previous_run", pa.string()),
        ("origin", pa.string()),
    ]
)


@dataclass(frozen=True)
class Trends(Result):
    """The history of one metric in one memory space.

    rows: the rows of the view `trends`, one a run and series; series: a row a series with
    workload, module, trend (the metric in each of the latest runs, null where the series is
    missing), now_bytes, best_bytes (the lowest so far), last_run, and gone_for if the latest
    runs lack a series; steps: a row for each run in which a program changed, with run,
    workload, change_bytes, change_pct, now_bytes, changed (what did), module, previous_run.
    """

    rows: Rows
    series: Rows
    steps: Rows

    def tables(self) -> tuple[Rows, ...]:
        """The series and their steps."""
        return (self.series, self.steps) if len(self.steps) else (self.series,)


def trends(
    store: Store,
    workload: str | None = None,
    since: str | datetime | None = None,
    memory_space: int = 0,
    metric: str = "peak",
) -> Trends:
    """How a metric of each series changed from run to run, and what changed with it.

    Raises UsageError.
    """
    parameters = [workload, parse_time(since, "since"), memory_space, metric_column(metric)]
    found = store.rows(statement("trends"), parameters)
    rows = found.to_pylist()
    series = pa.Table.from_pylist(list(_series(rows, run_names(store)[::-1])), schema=_SERIES)
    if series["gone_for"].null_count == len(series):
        series = series.drop_columns("gone_for")
    steps = [_step(row) for row in rows if row["content_changed"] or row["status"] == "failed"]
    return Trends(
        Rows(found, empty=_EMPTY),
        Rows(series, empty=_EMPTY),
        Rows(pa.Table.from_pylist(steps, schema=_STEPS), empty="nothing changed"),
    )


def what_changed(row: dict[str, Any]) -> list[str]:
    """What a row of `trends` says has changed since the previous run."""
    return [name for column, name in _CHANGES.items() if row[column]]


def _series(rows: list[dict[str, Any]], runs: list[str]) -> Iterator[dict[str, Any]]:
    """A row a series, with its metric in the latest of the runs."""
    there = {row["run_id"] for row in rows}
    first = next((number for number, run in enumerate(runs) if run in there), 0)
    latest = runs[first:][-_RUNS_SHOWN:]
    for _, group in groupby(rows, key=lambda row: row["series_id"]):
        series = list(group)
        by_run = {row["run_id"]: row["value_bytes"] for row in series}
        known = [row for row in series if row["value_bytes"] is not None]
        last = known[-1] if known else series[-1]
        missing = series[-1]["runs_since"]
        yield {
            "workload": last["workload"],
            "module": last["module_name"],
            "trend": [by_run.get(run) for run in latest] if known else [],
            "now_bytes": last["value_bytes"],
            "best_bytes": last["best_bytes"],
            "last_run": last["run_id"],
            "gone_for": counted(missing, "run") if missing else None,
            "origin": last["origin"],
        }


def _step(row: dict[str, Any]) -> dict[str, Any]:
    """A step of a series, with what changed besides the program."""
    causes = what_changed(row)
    if row["oom"]:
        causes.insert(0, "out of memory")
    if row["status"] != "ok":
        causes.insert(0, f"the dump is {row['status']}")
    return {
        "run": row["run_id"],
        "workload": row["workload"],
        "change_bytes": row["change_bytes"],
        "change_pct": row["change_pct"],
        "now_bytes": row["value_bytes"],
        "changed": ", ".join(causes),
        "module": row["module_name"],
        "previous_run": row["previous_run_id"],
        "origin": row["origin"],
    }
