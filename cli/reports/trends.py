"""Shows how memory changed from run to run."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import typer

from ...queries.catalogue import command_query
from ...queries.figures import FIGURES, what_changed
from ...schema.stores.duckdb import fetch
from ..options import Format, parse_time
from ..render.human import counted
from ..render.output import print_rows, print_text
from ..warehouse import reading

_SERIES = ("workload", "module_name", "platform", "occurrence", "memory_space")
# So many of the latest runs fit a line beside the numbers.
_SPARKS = 24


def show_trends(
    db: str, workload: str | None, since: str | None, space: int, figure: str, output: Format
) -> None:
    """Show a sparkline for each series and every step at which its program changed."""
    column = f"{figure}_bytes"
    if column not in FIGURES:
        names = ", ".join(name.removesuffix("_bytes") for name in FIGURES)
        raise typer.BadParameter(f"it is one of {names}", param_hint="--figure")
    parameters = [workload, parse_time(since, "--since"), space]
    with reading(db) as connection:
        rows = fetch(connection, command_query("trends"), parameters)
        runs = fetch(connection, command_query("run_names"))["run_id"].to_pylist()[::-1]
    if output is not Format.table or not len(rows):
        print_rows(rows, output, empty="there is no such history")
        return
    all_rows = rows.to_pylist()
    lines = pa.Table.from_pylist(list(_lines(all_rows, column, runs)))
    if lines["gone_for"].null_count == len(lines):
        lines = lines.drop_columns("gone_for")
    print_rows(lines, output)
    changes = [
        _change(row, column)
        for row in all_rows
        if row["content_changed"] or row["status"] == "failed"
    ]
    if changes:
        print_text("")
        print_rows(pa.Table.from_pylist(changes), output)


def _lines(rows: list[dict[str, Any]], column: str, runs: list[str]) -> Iterator[dict[str, Any]]:
    """A line per series: a sparkline of its latest runs, blank where it is missing."""
    from sparklines import sparklines

    shown = {row["run_id"] for row in rows}
    first = next(number for number, run in enumerate(runs) if run in shown)
    latest = runs[first:][-_SPARKS:]
    for _, group in groupby(rows, key=lambda row: [row[name] for name in _SERIES]):
        series = list(group)
        by_run = {row["run_id"]: row[column] for row in series}
        known = [row for row in series if row[column] is not None]
        last = known[-1] if known else series[-1]
        yield {
            "workload": last["workload"],
            "module": last["module_name"],
            "trend": sparklines([by_run.get(run) for run in latest])[0] if known else "",
            "now_bytes": last[column],
            "best_bytes": last[f"{column}_best"],
            "last_run": last["run_id"],
            # Of a series that the latest runs do not have.
            "gone_for": counted(missing, "run") if (missing := series[-1]["runs_since"]) else None,
        }


def _change(row: dict[str, Any], column: str) -> dict[str, Any]:
    """A step of a series, with what changed besides the program."""
    causes = what_changed(row)
    if row["oom"]:
        causes.insert(0, "out of memory")
    if row["status"] != "ok":
        causes.insert(0, f"the dump is {row['status']}")
    return {
        "run": row["run_id"],
        "workload": row["workload"],
        "change_bytes": row[f"{column}_change"],
        "change_pct": row[f"{column}_change_pct"],
        "now_bytes": row[column],
        "changed": ", ".join(causes),
        "module": row["module_name"],
        "previous_run": row["previous_run_id"],
    }
