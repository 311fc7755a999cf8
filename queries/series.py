"""Series of a metric, taken apart: the levels and the steps of each."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.errors import UsageError
from ..schema.readable import UNITS, human_bytes
from ..schema.store import Store
from .catalogue import statement
from .checking.policy import parse_growth
from .modules import helpers_line, require_workload
from .result import counted

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


# Levels of a series: its figures are piecewise constant, and a level is one of the pieces.

# Autotuning moves a figure a little, and the padding of a small one by a page.
_SHARE = 0.002
_LEAST_BYTES = 64 * UNITS["KiB"]
# A series of figures that are all this small has levels of equal figures only.
_SMALL_BYTES = UNITS["MiB"]
# What counts as a growth, and as back where it was.
_GROWTH = 0.01
# So many of the last levels tell whether a series alternates.
_LAST_LEVELS = 6


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may lie from the first of its level: a share of it, or bytes."""

    share: float
    bytes: float

    def of(self, level: float) -> float:
        """The tolerance in bytes."""
        return max(self.share * level, self.bytes)


@dataclass(frozen=True)
class Level:
    """A level: the places of its first and last figure in the series, and the first figure."""

    first: int
    last: int
    value: int


@dataclass(frozen=True)
class Recovery:
    """A growth that was taken back: the level that grew, and the level that was back."""

    grown: int
    back: int
    growth_bytes: int


@dataclass(frozen=True)
class Drift:
    """How the last level came to lie above the lowest one."""

    lowest: int
    steps: int
    growth_ratio: float


def parse_tolerance(text: str | None) -> Tolerance | None:
    """`0.5%` or `1MiB`. Raises UsageError."""
    if text is None:
        return None
    try:
        threshold = parse_growth(text)
    except ValueError as error:
        raise UsageError(str(error), "tolerance") from None
    return Tolerance(threshold.of(1), 0) if threshold.is_percent else Tolerance(0, threshold.of(1))


def levels(
    values: Sequence[int], programs: Sequence[Hashable], tolerance: Tolerance | None = None
) -> list[Level]:
    """The levels of figures in order; `programs` are their programs, None if not known.

    A figure is of the same level as the one before if the program is the same, or if it lies
    within the tolerance of the level's first figure. It is not held against the figure before:
    a drift would carry the level along.
    """
    if not values:
        return []
    within = tolerance or _usual(values)
    firsts = [0]
    for place in range(1, len(values)):
        if values[place] == values[place - 1]:
            continue
        if programs[place] is not None and programs[place] == programs[place - 1]:
            continue
        level = values[firsts[-1]]
        if abs(values[place] - level) > within.of(level):
            firsts.append(place)
    lasts = [first - 1 for first in firsts[1:]] + [len(values) - 1]
    return [Level(a, b, values[a]) for a, b in zip(firsts, lasts, strict=True)]


def alternating(
    found: Sequence[Level], tolerance: Tolerance | None = None
) -> tuple[int, int] | None:
    """The two values that the last levels alternate between, the lower first."""
    last = [level.value for level in found[-_LAST_LEVELS:]]
    if len(last) < _LAST_LEVELS:
        return None
    within = tolerance or _usual(last)
    low, high = min(last), max(last)
    if any(min(abs(value - low), abs(value - high)) > within.of(min(value, low)) for value in last):
        return None
    return low, high


def recovered(found: Sequence[Level]) -> list[Recovery]:
    """The growths of more than one percent that a later level took back."""
    recoveries = []
    for grown in range(1, len(found)):
        before = found[grown - 1].value
        if found[grown].value <= (1 + _GROWTH) * before:
            continue
        later = range(grown + 1, len(found))
        back = next((n for n in later if found[n].value <= (1 + _GROWTH) * before), None)
        if back is not None:
            recoveries.append(Recovery(grown, back, found[grown].value - before))
    return recoveries


def drift(found: Sequence[Level], accepted: int = 0) -> Drift | None:
    """The drift up to the last level, if this is more than one percent above the lowest level.

    The lowest is sought from the place `accepted` on, that of the last accepted growth. A
    single step is no drift.
    """
    if not found:
        return None
    since = [n for n, level in enumerate(found) if level.last >= accepted]
    lowest = min(reversed(since), key=lambda n: found[n].value)
    low, now = found[lowest].value, found[-1].value
    steps = len(found) - 1 - lowest
    if steps < 2 or now <= (1 + _GROWTH) * low:
        return None
    return Drift(lowest, steps, (now - low) / low if low else float("inf"))


def _usual(values: Sequence[int]) -> Tolerance:
    small = max(values) <= _SMALL_BYTES
    return Tolerance(0, 0) if small else Tolerance(_SHARE, _LEAST_BYTES)


# Series of a metric, taken apart: the levels and the steps of each.


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
        self.value = _ints(rows["value"])
        self.has_value = _bools(pc.is_valid(rows["value"]))
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
        is_equal = _ints(rows["change"]) == 0
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
    rows: pa.Table,
    shown: Sequence[Series],
    is_shown: _Bools,
    said: Callable[[float], str] = human_bytes,
) -> tuple[list[Series], str]:
    """The series with an entry program in one of the runs shown, the largest first.

    rows: those of the view `trends`, and which of them are shown. A series that became a helper is
    among them, and so is a helper that became large. One that vanished before the runs shown is
    there if it was an entry program at last. The text says in a line what the other series are;
    `said` is how it says their figures.
    """
    is_entry = _bools(rows["is_entry"])
    values = _ints(rows["value"])
    entries: list[Series] = []
    helpers: list[Series] = []
    for series in shown:
        of_series = slice(series.start, series.stop)
        was_entry = (is_entry[of_series] & is_shown[of_series]).any() or is_entry[series.stop - 1]
        (entries if was_entry else helpers).append(series)
    entries.sort(key=lambda series: -values[series.last])
    return entries, helpers_line([int(values[series.last]) for series in helpers], said)


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
