"""The history of series as reports show it, and the events in it."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..queries.arguments import parse_time
from ..queries.catalogue import statement
from ..queries.result import folded, percent
from ..queries.runs import choose_branch
from ..queries.series import (
    Series,
    alternating,
    entry_series,
    happened,
    rows_to_read,
    take_apart,
    trend_rows,
)
from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from ..schema.store import Store

# What happened to a series in a run: it grew, came, went, failed.

# The same as the view `regressions`.
_GROWTH = 0.01


@dataclass(frozen=True)
class Event:
    """What happened to a series in a run.

    kind: grew, shrank, changed (another program of the same size), new, back, gone, failed or
    oom; module_ids: the modules then and now, where both are known; cause: why, in a line.
    """

    place: int
    run: str
    kind: str
    cause: str
    value_bytes: int | None = None
    change_bytes: int | None = None
    change_ratio: float | None = None
    module_ids: tuple[int, int] | None = None
    is_estimated: bool = False
    is_accepted: bool = False
    is_regression: bool = False

    @property
    def is_step(self) -> bool:
        """Whether the figure changed."""
        return bool(self.change_bytes)

    @property
    def mark(self) -> str:
        """What stands before its figures: they may be estimates."""
        return "≈" if self.is_estimated else ""

    @property
    def change_text(self) -> str:
        """The change as a person reads it: `▲ +1.88 GiB (+443.0 %)`."""
        change = self.change_bytes or 0
        text = f"{'▲' if change > 0 else '▼'} {self.mark}{'+' if change > 0 else ''}"
        text += human_bytes(change)
        if self.change_ratio is None:
            return text
        return f"{text} ({percent(self.change_ratio)})"


def event_of(
    row: Mapping[str, Any], place: int, module_before: int | None, *, is_accepted: bool
) -> Event:
    """The step that a row of `trends` is; `module_before` is the module it is compared with."""
    change, missed = row["change"], row["missed_runs"]
    kinds: dict[str, Hashable] = {
        "oom": row["oom"],
        "failed": row["status"] == "failed",
        "grew": (change or 0) > 0,
        "shrank": (change or 0) < 0,
        "new": row["is_new"],
        "back": missed,
    }
    a, b = module_before, row["module_id"]
    return Event(
        place,
        row["run_id"],
        next((kind for kind, holds in kinds.items() if holds), "changed"),
        row["cause"] or happened(row),
        row["value"],
        change,
        row["change_ratio"],
        (a, b) if a is not None and b is not None and change is not None else None,
        row["origin"] == "estimated",
        is_accepted,
        bool(row["content_changed"] and (change or 0) > _GROWTH * (row["previous_value"] or 0)),
    )


# The series of a branch on one axis of runs: their figures, their levels, what happened to them.
#
# The steps and levels are those of `trends` and `since`. A place is a run's place on the axis.

METRIC = "peak_bytes"
# `check` accepts what it judges: what is reserved, or the peak.
_ACCEPTED = (
    "SELECT DISTINCT dump_id FROM accepted_changes"
    " WHERE memory_space = $1 AND metric IN ('reserved_bytes', 'peak_bytes')"
)


@dataclass(frozen=True)
class SeriesHistory:
    """One series; equal series of several hosts are one.

    runs: the places of all runs of its suite from its first on; values: its figure in each of
    them, NaN where it has none; estimated: whether the figure is an estimate; levels: the places
    of the first and last run of each level, and its figure; best_bytes: the lowest figure ever;
    between: the figures that it alternates between; page: the address of a page about it.
    """

    name: str
    workload: str
    series_id: int
    runs: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    estimated: npt.NDArray[np.bool_]
    levels: Sequence[tuple[int, int, int]]
    events: Sequence[Event]
    best_bytes: int | None
    missing_runs: int
    between: tuple[int, int] | None
    page: str = ""

    @property
    def now_bytes(self) -> int | None:
        """The newest figure."""
        known = self.values[~np.isnan(self.values)]
        return int(known[-1]) if len(known) else None

    @property
    def is_estimated(self) -> bool:
        """Whether the newest figure is an estimate."""
        known = self.estimated[~np.isnan(self.values)]
        return bool(len(known) and known[-1])

    @property
    def steps(self) -> list[Event]:
        """Where the figure changed, the newest first."""
        return [event for event in reversed(self.events) if event.is_step]

    @property
    def growth_bytes(self) -> int:
        """How the newest level differs from the one before it."""
        return self.levels[-1][2] - self.levels[-2][2] if len(self.levels) > 1 else 0

    @property
    def newest(self) -> list[Event]:
        """What happened in the newest run of the suite."""
        return [event for event in self.events if event.place == self.runs[-1]]


@dataclass(frozen=True)
class Histories:
    """The series of a branch, and the names and times of the runs on the axis.

    series: those with an entry program in one of the runs, the largest first; helpers: what the
    others are, in a line.
    """

    branch: str
    runs: Sequence[str]
    times: Sequence[datetime]
    series: Sequence[SeriesHistory]
    helpers: str


def histories(
    store: Store,
    workload: str | None = None,
    since: str | datetime | None = None,
    memory_space: int = 0,
    *,
    branch: str | None = None,
) -> Histories:
    """The peaks of the series of a branch, or of those of a workload. Raises UsageError."""
    start = parse_time(since, "since")
    chosen_branch = choose_branch(store, branch).chosen
    found = trend_rows(store, workload, chosen_branch, memory_space, METRIC)
    runs = store.rows(statement("runs.of_branch"), [chosen_branch])
    if start is not None:
        runs = runs.filter(pc.greater_equal(runs["run_at"], start))
    where = pc.index_in(found["run_id"], value_set=runs["run_id"].combine_chunks())
    first = pc.min(where).as_py()
    if first is None:
        raise UsageError("there is no such history: no run has such a module")
    runs = runs.slice(first)
    places = pc.fill_null(pc.subtract(where, first), -1).to_numpy().astype(np.int64)
    accepted = set(store.rows(_ACCEPTED, [memory_space])["dump_id"].to_pylist())
    axis = _Axis(runs, found, places, accepted)
    gone = _gone(store, axis)
    shown = [
        series
        for series in take_apart(found)
        if places[series.stop - 1] >= 0 or axis.ids[series.start] in gone
    ]
    shown, helpers = entry_series(found, shown, places >= 0)
    rows = rows_to_read(found, shown)
    names = _names([rows[series.stop - 1] for series in shown])
    together = folded(
        list(zip(shown, names, strict=True)),
        lambda pair: pair[0].programs,
        lambda pair: str(rows[pair[0].stop - 1]["workload"]),
    )
    return Histories(
        chosen_branch,
        axis.names,
        runs["run_at"].to_pylist(),
        [_history(axis, rows, series, one, many, gone) for (series, one), many in together],
        helpers,
    )


@dataclass
class _Axis:
    """The runs of the branch, and the rows of all series with their places."""

    runs: pa.Table
    found: pa.Table
    places: npt.NDArray[np.int64]
    accepted: set[int]
    names: list[str] = field(init=False)
    suites: dict[str, npt.NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.names = self.runs["run_id"].to_pylist()
        of_suite: dict[str, list[int]] = {}
        for place, suite in enumerate(self.runs["suite"].to_pylist()):
            of_suite.setdefault(suite, []).append(place)
        self.suites = {name: np.array(places) for name, places in of_suite.items()}
        self.ids = self.found["series_id"].to_pylist()
        self.run_ids = self.found["run_id"].to_pylist()
        self.module_ids = self.found["module_id"].to_pylist()
        values = pc.cast(self.found["value"], pa.float64(), safe=False)
        self.values = pc.fill_null(values, float("nan")).to_numpy()
        self.estimated = pc.fill_null(pc.equal(self.found["origin"], "estimated"), False).to_numpy()


def _names(newest: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of series: with what tells them apart, where two have the same."""
    names = [
        f"{row['module_name']}{f' #{n}' if (n := row['series_number']) > 1 else ''}"
        for row in newest
    ]
    for name in ("platform", "suite"):
        pairs = zip((row["workload"] for row in newest), names, strict=True)
        count = Counter(pairs)
        names = [
            f"{module} ({row[name] or 'none'})" if count[(row["workload"], module)] > 1 else module
            for row, module in zip(newest, names, strict=True)
        ]
    return names


def _gone(store: Store, axis: _Axis) -> dict[int, list[Event]]:
    """The runs that lack a series which the run before had, by series."""
    ids = sorted(set(axis.ids))
    where = {name: place for place, name in enumerate(axis.names)}
    found: dict[int, list[Event]] = {}
    for row in store.rows(statement("trends.gone"), [ids]).to_pylist():
        if row["run_id"] in where:
            event = Event(where[row["run_id"]], row["run_id"], "gone", "gone")
            found.setdefault(row["series_id"], []).append(event)
    return found


def _history(
    axis: _Axis,
    rows: Mapping[int, Mapping[str, Any]],
    series: Series,
    module: str,
    workload: str,
    gone: Mapping[int, Sequence[Event]],
) -> SeriesHistory:
    newest = rows[series.stop - 1]
    of_series = slice(series.start, series.stop)
    is_shown = axis.places[of_series] >= 0
    there = axis.places[of_series][is_shown]
    suite = axis.suites[newest["suite"]]
    vanished = gone.get(axis.ids[series.start], ())
    first = min([*there[:1].tolist(), *(event.place for event in vanished)])
    runs = suite[suite >= first]
    values = np.full(len(runs), np.nan)
    estimated = np.zeros(len(runs), bool)
    at = np.searchsorted(runs, there)
    values[at] = axis.values[of_series][is_shown]
    estimated[at] = axis.estimated[of_series][is_shown]
    levels = [
        (max(int(axis.places[series.known[level.first]]), first), last, level.value)
        for level in series.levels
        if (last := int(axis.places[series.known[level.last]])) >= 0
    ]
    events = [
        _event(axis, rows[row], series, place)
        for row in series.steps
        if (place := int(axis.places[row])) >= 0
    ]
    return SeriesHistory(
        f"{workload}/{module}",
        str(newest["workload"]),
        axis.ids[series.start],
        runs,
        values,
        estimated,
        levels,
        sorted([*events, *vanished], key=lambda event: event.place),
        rows[series.last]["best_value"],
        newest["runs_since"] or 0,
        alternating(series.levels),
    )


def _event(axis: _Axis, row: Mapping[str, Any], series: Series, place: int) -> Event:
    """A step of the series, with the module that it is compared with."""
    previous = row["previous_run_id"]
    before = next(
        (n for n in range(series.start, series.stop) if axis.run_ids[n] == previous), None
    )
    return event_of(
        row,
        place,
        None if before is None else axis.module_ids[before],
        is_accepted=row["dump_id"] in axis.accepted,
    )
