"""Logs in which XLA may say that memory ran out, and the rows that they become."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa

from ..schema import arrow, ids
from ..schema.errors import UsageError
from ..schema.journal import entries
from ..schema.oom_dumps import dump_of
from ..schema.store import Batch, Store
from ..xla.errors import DumpError
from . import formats
from .oom_report import OomBuffer, OomReport, merge_reports
from .readers.oom_message import read_oom_messages
from .sources.dump_folder import format_of
from .sources.files import DAMAGED, PIECE, SourceFile, is_file, is_folder, pieces, readable

# Writes a run's out-of-memory reports, joined to the dumps of the same modules.

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


# Logs, and files of a dump's folder, in which XLA may say that memory ran out.

# What XLA writes into a dump's folder beside the module, and how people call their logs. A
# folder may hold thousands of other texts; ingest does not open them.
_DUMPED = re.compile(
    r"^(?:(?P<stem>module_.*)\.oom_top_memory_consuming_instructions"
    r"|\d+\.peak_memory_tensors\.txt)(?:\.gz|\.zst)?$"
)
_LOG = re.compile(
    r"^(?!\.)(?:.*\.(?:log|err|out|stderr|stdout)|(?:.*[._-])?(?:error|stderr|stdout)\.txt)"
    r"(?:\.gz|\.zst)?$"
)
_ENDINGS = (
    *(".oom_top_memory_consuming_instructions", ".log", ".err", ".out", ".stderr", ".stdout"),
    *(".txt", ".gz", ".zst"),
)


@dataclass
class OomLogs:
    """The messages found; `empty` are the files that the user named and that hold none."""

    found: list[tuple[OomReport, str | None]] = field(default_factory=list)
    empty: list[SourceFile] = field(default_factory=list)
    modified: float = 0.0

    @property
    def reports(self) -> list[OomReport]:
        """The messages alone."""
        return [report for report, _ in self.found]

    def but_logs(
        self,
        files: Iterator[SourceFile],
        refuse: Callable[[SourceFile, DumpError], None],
        *,
        is_named: bool,
    ) -> Iterator[SourceFile]:
        """The files that may be of dumps; the others are read here.

        With `is_named` the user named this one file, so it is a log whatever its name.
        """
        for file in files:
            try:
                is_log = _is_log(file, is_named)
                if is_log:
                    self._read(file, is_named)
            except DumpError as error:
                refuse(file, error)
                continue
            if not is_log:
                yield file

    def _read(self, file: SourceFile, is_named: bool) -> None:
        dumped = _DUMPED.match(file.name)
        found = read_log(file, is_list=dumped is not None)
        if not found and is_named:
            self.empty.append(file)
        self.found += [(report, dumped["stem"] if dumped else None) for report in found]
        if found:
            self.modified = max(self.modified, file.modified)


def may_be_log(name: str) -> bool:
    """Whether a file of this name, in a folder, is searched for messages."""
    if not name.endswith(_ENDINGS):
        return False
    return _DUMPED.match(name) is not None or _LOG.match(name) is not None


def read_log(file: SourceFile, *, is_list: bool = False) -> list[OomReport]:
    """The messages in a file of any length, compressed or not; raises DumpError.

    With `is_list` the file is one that XLA dumped, which begins after the first line.
    """
    try:
        with file.location.open("rb") as raw:
            found = _read_messages(pieces(raw, file.name, PIECE), is_list=is_list)
    except DAMAGED as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DumpError(f"the file cannot be read: {why}") from None
    for report in found:
        report.path = file.path
    return found


def read_log_tables(
    log: str | os.PathLike[str] | BinaryIO,
) -> tuple[str, dict[str, pa.Table]]:
    """A log's name, and its messages as the tables `oom_reports` and `oom_buffers`.

    Raises UsageError for a log that is not there or cannot be read.
    """
    if not isinstance(log, str | os.PathLike):
        name = "standard input"
        reports = _read_messages(iter(lambda: log.read(PIECE), b""))
        for report in reports:
            report.path = name
    else:
        path = Path(log)
        name = str(path)
        if not os.fspath(log):
            raise UsageError("the log's name is empty", "log")
        if not is_file(path):
            why = "is a folder: ingest it" if is_folder(path) else "there is no such file"
            raise UsageError(f"{name}: {why}", "log")
        try:
            status = path.stat()
            file = SourceFile(readable(name), path, status.st_mtime, status.st_size)
            reports = read_log(file, is_list=_DUMPED.match(path.name) is not None)
        except (DumpError, OSError) as error:
            raise UsageError(f"{name}: {error}", "log") from None
    return name, oom_tables(merge_reports(reports), "")


def _read_messages(content: Iterator[bytes], *, is_list: bool = False) -> list[OomReport]:
    return read_oom_messages(content, is_list=is_list)


def _is_log(file: SourceFile, is_named: bool) -> bool:
    name = file.name
    if formats.by_name(name) is not None or formats.is_binary(name):
        return False
    if not is_named and not may_be_log(name):
        return False
    return format_of(file, is_named=is_named) is None
