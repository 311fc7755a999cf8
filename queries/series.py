"""Series of a metric, taken apart: the levels and the steps of each."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.stores.base import Store
from .catalogue import statement
from .levels import Level, levels
from .modules import helpers_line, require_workload
from .result import counted

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Series:
    """A series among rows of the view `trends`; rows are told by their places.

    start, stop: its rows; known: those with figures of the newest origin; levels: of the known
    rows; steps: those in which the program changed, came or failed; jitter: those in which the
    program changed and its figure stayed at its level; programs: which program each run has.
    """

    start: int
    stop: int
    known: list[int]
    levels: list[Level]
    steps: list[int]
    jitter: list[int]
    programs: Hashable

    @property
    def last(self) -> int:
        """The newest row with figures, else the newest."""
        return self.known[-1] if self.known else self.stop - 1

    @property
    def since(self) -> int | None:
        """The first row of today's level."""
        return self.known[self.levels[-1].first] if self.known else None


class _Columns:
    """The columns that steps and levels follow from; a program that is not known is 0."""

    def __init__(self, rows: pa.Table) -> None:
        self.series = _ints(rows["series_id"])
        self.run_number = _ints(rows["run_number"])
        self.value = _ints(rows["value_bytes"])
        self.has_value = _bools(pc.is_valid(rows["value_bytes"]))
        self.program = _ints(pc.coalesce(rows["program_id"], rows["module_id"]))
        self.workload = _numbered(rows["workload"])
        self.module = _numbered(rows["module_name"])
        self.platform = _numbered(rows["platform"])
        self.suite = _numbered(rows["suite"])
        self.grade = _ints(rows["grade"])
        is_failed = _bools(pc.equal(rows["status"], "failed"))
        is_back = np.zeros(len(rows), bool)
        is_back[1:] = (np.diff(self.series) == 0) & (np.diff(self.run_number) > 1)
        self.is_step = (
            _bools(rows["content_changed"])
            | _bools(pc.is_valid(rows["cause"]))
            | _bools(rows["is_new"])
            | is_failed
            | is_back
        )
        # What must be told although the figure stays at its level.
        is_renamed = np.zeros(len(rows), bool)
        for name in (self.workload, self.module):
            is_renamed[1:] |= np.diff(name) != 0
        is_equal = _ints(rows["change_bytes"]) == 0
        self.is_told = is_failed | is_back | _bools(rows["oom"]) | is_renamed | is_equal


def trend_rows(
    store: Store, workload: str | None, branch: str, memory_space: int, metric: str
) -> pa.Table:
    """The rows of a branch in the view `trends`, of one metric and space, in order of series.

    With a workload, all rows of the series that it ever had. Raises UsageError.
    """
    chosen = None
    if workload is not None:
        require_workload(store, workload)
        chosen = store.rows(statement("trends.series_of"), [workload])["series_id"].to_pylist()
    return store.rows(statement("trends"), [branch, memory_space, metric, chosen])


def rows_to_read(rows: pa.Table, shown: Sequence[Series]) -> dict[int, dict[str, Any]]:
    """The few rows that are read one by one, by their places: steps, and where series stand."""
    places = {place for one in shown for place in (one.stop - 1, one.last, *one.steps)}
    wanted = sorted(places.union(one.since for one in shown if one.since is not None))
    return dict(zip(wanted, rows.take(pa.array(wanted, pa.int64())).to_pylist(), strict=True))


def happened(row: Mapping[str, Any]) -> str:
    """What happened to a program in a run, beside its figure: it came, or its dump is not whole."""
    said = ["new"] if row["is_new"] else []
    if missed := row["missed_runs"]:
        said.append(f"back after {counted(missed, 'missing run')}")
    said += [f"the dump is {row['status']}"] if row["status"] != "ok" else []
    said += ["out of memory"] if row["oom"] else []
    return "; ".join(said)


def take_apart(rows: pa.Table) -> list[Series]:
    """The series of rows of the view `trends`, of one metric and space, in order of series."""
    if not len(rows):
        return []
    columns = _Columns(rows)
    starts = [0, *(np.flatnonzero(np.diff(columns.series)) + 1).tolist(), len(rows)]
    return [_one(columns, start, stop) for start, stop in pairwise(starts)]


def _one(columns: _Columns, start: int, stop: int) -> Series:
    known = start + np.flatnonzero(columns.has_value[start:stop])
    if len(known):
        known = known[columns.grade[known] == columns.grade[known[-1]]]
    programs = [program or None for program in columns.program[known].tolist()]
    found = levels(columns.value[known].tolist(), programs)
    stays = np.zeros(stop - start, bool)
    stays[known - start] = True
    stays[[known[level.first] - start for level in found]] = False
    stays &= ~columns.is_told[start:stop]
    is_step = columns.is_step[start:stop]
    programs_by_run = (
        int(columns.module[stop - 1]),
        int(columns.platform[stop - 1]),
        # Runs are counted within a suite.
        int(columns.suite[stop - 1]),
        columns.run_number[start:stop].tobytes(),
        columns.program[start:stop].tobytes(),
    )
    return Series(
        start,
        stop,
        known.tolist(),
        found,
        (start + np.flatnonzero(is_step & ~stays)).tolist(),
        (start + np.flatnonzero(is_step & stays)).tolist(),
        programs_by_run if len(known) else None,
    )


def entry_series(
    rows: pa.Table, shown: Sequence[Series], is_shown: _Bools
) -> tuple[list[Series], str]:
    """The series with an entry program in one of the runs shown, the largest first.

    rows: those of the view `trends`, and which of them are shown. A series that became a helper is
    among them, and so is a helper that became large. One that vanished before the runs shown is
    there if it was an entry program at last. The text says in a line what the other series are.
    """
    is_entry = _bools(rows["is_entry"])
    values = _ints(rows["value_bytes"])
    entries: list[Series] = []
    helpers: list[Series] = []
    for series in shown:
        of_series = slice(series.start, series.stop)
        was_entry = (is_entry[of_series] & is_shown[of_series]).any() or is_entry[series.stop - 1]
        (entries if was_entry else helpers).append(series)
    entries.sort(key=lambda series: -values[series.last])
    return entries, helpers_line([int(values[series.last]) for series in helpers])


def _ints(column: pa.ChunkedArray) -> _Ints:
    """The numbers; 0 where there is none."""
    found: _Ints = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return found


def _bools(column: pa.ChunkedArray) -> _Bools:
    found: _Bools = pc.fill_null(column, False).to_numpy().astype(bool, copy=False)
    return found


def _numbered(column: pa.ChunkedArray) -> _Ints:
    """A number for each different text."""
    return _ints(column.combine_chunks().dictionary_encode(null_encoding="encode").indices)
