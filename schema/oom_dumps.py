"""Which dump an out-of-memory message is of; nothing is guessed where several fit."""

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import pyarrow as pa

# The message's figure and the module's own differ by its rounding, of two digits, and by little
# that the compiler adds.
_SLACK = 0.0006
_SLACK_BYTES = 16 << 20

Rows = Callable[[str, Sequence[object]], pa.Table]


def dump_of(
    rows: Rows,
    report: Mapping[str, Any],
    buffers: Sequence[Mapping[str, Any]],
    *,
    run_id: str | None = None,
    workload: str | None = None,
) -> int | None:
    """The dump_id of the module that a report is of; None if no dump fits, or several do."""
    found = dumps_that_fit(rows, report, buffers, run_id=run_id, workload=workload)
    return int(found[0]["dump_id"]) if len(found) == 1 else None


def dumps_that_fit(
    rows: Rows,
    report: Mapping[str, Any],
    buffers: Sequence[Mapping[str, Any]],
    *,
    run_id: str | None = None,
    workload: str | None = None,
) -> list[Mapping[str, Any]]:
    """The dumps that a report may be of: dump_id, run_id, workload and module_name among others.

    `report` and `buffers` have the columns of `oom_reports` and `oom_buffers`. The instructions
    that the message names must be in the module. Without names, the module is the only one that
    did not fit, and its size must agree. Of several dumps of the module in a run the one in the
    folder `workload` is meant; without `run_id` that of the newest run.
    """
    names = {b["instruction"]: b["shape"] for b in buffers if b["instruction"]}
    if report["instruction"] and not names:
        is_scoped = report["kind"] == "scoped"
        names = {report["instruction"]: report["shape"] if is_scoped else None}
    if report["kind"] == "runtime" and not names and report["module_name"] is None:
        return []
    query = (resources.files(__package__) / "oom_dumps.sql").read_text(encoding="utf-8")
    parameters = [list(names), list(names.values()), report["module_name"], run_id]
    found = [
        row
        for row in rows(query, parameters).to_pylist()
        if (row["instructions"] == len(names) if names else _may_be(row, report))
    ]
    here = [row for row in found if row["workload"] == workload]
    found = here or found
    if run_id is not None:
        return found
    newest = {row["module_id"]: row for row in reversed(found)}
    return [row for row in found if newest[row["module_id"]] is row]


def _may_be(row: Mapping[str, Any], report: Mapping[str, Any]) -> bool:
    """Whether a module fits a message that names no instruction."""
    if report["module_name"] is not None:
        return True
    used = report["used_bytes"]
    if not row["oom"] or report["kind"] != "program":
        return False
    if used is None or report["space_name"] != "hbm":
        return used is None
    within = max(_SLACK * used, _SLACK_BYTES)
    figures = (row["total_bytes"], row["temp_bytes"])
    return any(figure is not None and abs(figure - used) <= within for figure in figures)
