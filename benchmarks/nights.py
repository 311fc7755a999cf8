"""Nights at scale: what a long history and a lake of many nights make of a command's CPU."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from bench import Bench, measure
from figures import Figure
from many_nights import ManyNights
from many_runs import warehouse_of_runs
from process import MEMHOUSE, in_turn, memhouse, run

_CHECK_SECONDS = 0.7
_ONE_MORE_RATIO = 1.05
_LATE_RATIO = 1.1
_LOG_RATIO = 1.1
_LAKE_NIGHTS = 160
# The nights of `many_runs.sql` begin on the day before.
_SECOND = "2021-01-01T12:00"
_OLDEST = "2021-01-01"


def nights(bench: Bench) -> list[Figure]:
    """Compare a year and more of runs with one run, and many nights of a lake with few."""
    one, year, all_runs = (
        warehouse_of_runs(bench, count) for count in (1, bench.options.nights, bench.options.runs)
    )
    night = bench.dumps.runs[-1]
    checks, reports = in_turn(
        bench.few_rounds, partial(_check, year), partial(_report, bench, year)
    )
    of_year = f"of {bench.options.nights} runs"
    count = f"{bench.options.runs:,}"
    return [
        Figure(f"CPU of `check` {of_year}", checks, "s", _CHECK_SECONDS),
        Figure(f"CPU of `report --history` {of_year}", reports, "s"),
        _ratio(
            bench,
            (f"one more run beside {count} runs / one", _ONE_MORE_RATIO),
            lambda: _changed(bench, all_runs, "ingest", night, "--run", "one-more"),
            lambda: _changed(bench, one, "ingest", night, "--run", "one-more"),
        ),
        _ratio(
            bench,
            (f"a late run, the second of {count} / the newest", _LATE_RATIO),
            lambda: _changed(bench, all_runs, "ingest", night, "--run", "late", "--at", _SECOND),
            lambda: _changed(bench, all_runs, "ingest", night, "--run", "one-more"),
        ),
        Figure(
            f"CPU of a prune of the oldest of {count} runs",
            [_changed(bench, all_runs, "prune", _OLDEST) for _ in range(bench.few_rounds)],
            "s",
        ),
        _lake_log(bench),
    ]


def _check(warehouse: Path) -> float:
    """Whether the check passes does not matter."""
    return run("sh", "-c", f"{MEMHOUSE} check --db {warehouse} || true").cpu_seconds


def _report(bench: Bench, warehouse: Path) -> float:
    page = bench.new_path("history.html")
    return memhouse("report", "--history", "--db", warehouse, "-o", page).cpu_seconds


def _changed(bench: Bench, warehouse: Path, *arguments: str | Path) -> float:
    """The CPU of a command that changes a copy of the warehouse."""
    copy = bench.new_path("copy.duckdb")
    shutil.copyfile(warehouse, copy)
    done = memhouse(*arguments, "--db", copy)
    copy.unlink()
    return done.cpu_seconds


def _ratio(
    bench: Bench,
    what: tuple[str, float],
    work: Callable[[], float],
    other: Callable[[], float],
) -> Figure:
    a, b = in_turn(bench.few_rounds, work, other)
    return Figure(
        f"CPU of {what[0]}",
        [x / y for x, y in zip(a, b, strict=True)],
        limit=what[1],
        parts=f"{median(a):.2f} s / {median(b):.2f} s",
    )


def _lake_log(bench: Bench) -> Figure:
    """The log of a lake that is never compacted, whose checkpoints name more and more files."""
    made = ManyNights(bench.dumps.warehouse, bench.new_path("lake"))
    many = min(_LAKE_NIGHTS, bench.options.nights)
    few = many // 4
    a_night = []
    for count in (few, many):
        made.grow(count)
        log = (made.lake / "_delta_log").iterdir()
        a_night.append(sum(file.stat().st_size for file in log) / count)
    return Figure(
        f"a lake's log a night, {many} nights / {few}",
        [a_night[1] / a_night[0]],
        limit=_LOG_RATIO,
        parts=" / ".join(f"{size / 1e3:.0f} kB" for size in reversed(a_night)),
    )


if __name__ == "__main__":
    measure([nights])
