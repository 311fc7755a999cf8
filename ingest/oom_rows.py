"""Writes a run's out-of-memory reports, joined to the dumps of the same modules."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from ..schema import arrow, ids
from ..schema.journal import entries
from ..schema.oom_dumps import dump_of
from ..schema.stores.base import Batch, Store
from .model.oom_report import OomBuffer, OomReport, merge_reports

_REPORTS = "SELECT * FROM oom_reports WHERE run_id = $1 ORDER BY path, line"
_BUFFERS = "SELECT * FROM oom_buffers WHERE run_id = $1 ORDER BY oom_id, rank"
_DUMPS = "SELECT dump_id FROM dumps WHERE run_id = $1"


def report_rows(
    reports: Sequence[OomReport], run_id: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `oom_reports` and `oom_buffers`."""
    rows, buffers = [], []
    for report in reports:
        key = {"oom_id": ids.oom_id(run_id, report.path, report.line), "run_id": run_id}
        said = {name: value for name, value in vars(report).items() if name != "buffers"}
        rows.append(key | said)
        buffers += [key | vars(buffer) for buffer in report.buffers]
    return rows, buffers


def oom_tables(reports: Sequence[OomReport], run_id: str) -> dict[str, pa.Table]:
    """The same as tables."""
    rows, buffers = report_rows(reports, run_id)
    return {
        "oom_reports": arrow.rows("oom_reports", rows),
        "oom_buffers": arrow.rows("oom_buffers", buffers),
    }


def write_reports(
    store: Store,
    run_id: str,
    found: Sequence[tuple[OomReport, str | None]],
    run: Batch | None,
    entry: dict[str, Any],
) -> int:
    """Add messages to those of the run, each once; how many there are then.

    Of each message `found` has the stem of the dump's file names, where it is a dump's file.
    `run` has the rows of the run itself, if they change; `entry` is for the journal then.
    """
    stored = _stored(store, run_id)
    before = oom_tables(stored, run_id)
    dumps = set(store.rows(_DUMPS, [run_id])["dump_id"].to_pylist())
    for report, stem in found:
        workload = PurePosixPath(report.path).parent.as_posix()
        by_stem = None if stem is None else ids.dump_id(run_id, workload, stem, None)
        report.dump_id = by_stem if by_stem in dumps else None
    again = {(report.path, report.line) for report, _ in found}
    kept = [report for report in stored if (report.path, report.line) not in again]
    # Those that name their dump come first, so that the others are held against it.
    named = sorted(found, key=lambda pair: pair[0].dump_id is None)
    reports = merge_reports([*kept, *(report for report, _ in named)])
    for report in reports:
        if report.dump_id is None:
            rows, buffers = report_rows([report], run_id)
            workload = PurePosixPath(report.path).parent.as_posix()
            report.dump_id = dump_of(store.rows, rows[0], buffers, run_id=run_id, workload=workload)
    reports = sorted(merge_reports(reports), key=lambda report: (report.path, report.line or 0))
    after = oom_tables(reports, run_id)
    if run or after != before:
        changed = run or Batch({})
        tables = {**changed.tables, **after, **entries(entry)}
        store.write(Batch(tables, runs=changed.runs, oom_runs=[run_id]))
    return len(reports)


def has_other_messages(store: Store, run_id: str, found: Sequence[OomReport]) -> bool:
    """Whether the run has messages of the same files that are not there any more.

    A log that has grown has all of its old messages.
    """
    there = {(report.path, report.line, report.message) for report in found}
    paths = {report.path for report in found}
    return any(
        report.path in paths and (report.path, report.line, report.message) not in there
        for report in _stored(store, run_id)
    )


def _stored(store: Store, run_id: str) -> list[OomReport]:
    """The run's reports as they are stored."""
    buffers: dict[int, list[OomBuffer]] = {}
    for row in store.rows(_BUFFERS, [run_id]).to_pylist():
        buffers.setdefault(row["oom_id"], []).append(
            OomBuffer(**{name: row[name] for name in OomBuffer.__dataclass_fields__})
        )
    return [
        OomReport(
            **{name: row[name] for name in OomReport.__dataclass_fields__ if name != "buffers"},
            buffers=buffers.get(row["oom_id"], []),
        )
        for row in store.rows(_REPORTS, [run_id]).to_pylist()
    ]
