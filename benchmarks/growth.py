"""Growth curves: ingest with more and more modules, and all that a longer history slows."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from bench import Bench, measure
from dumps import lay_copies
from exponents import growth_figure
from figures import Figure
from many_runs import warehouse_of_runs
from process import in_turn, memhouse

import memhouse as library


def modules_growth(bench: Bench) -> list[Figure]:
    """The curve of 1, 2, 4 and so on copies of a module: ingest time and file size."""
    # The second largest module: the largest ones would take minutes.
    module = bench.dumps.modules[1:2]
    counts = _doubled(bench.options.grown)
    folders = [lay_copies(bench.new_path("grown"), module, count) for count in counts]
    found = in_turn(
        bench.few_rounds, *(partial(_ingested, bench, folder) for folder in folders), warm_up=False
    )
    per_round = list(zip(*found, strict=True))
    seconds, sizes = (
        [{n: costs[which] for n, costs in zip(counts, r, strict=True)} for r in per_round]
        for which in (0, 1)
    )
    return [
        growth_figure("ingest time by modules", seconds, "s"),
        growth_figure("file size by modules", sizes, "bytes"),
    ]


def runs_growth(bench: Bench) -> list[Figure]:
    """The curve of 1, 10, 100 and so on runs of history: what a longer history slows."""
    counts = _tenfold(bench.options.runs)
    paths = [warehouse_of_runs(bench, count) for count in counts]
    night = bench.dumps.runs[-1]

    def curve(cost: Callable[[Path], float]) -> list[dict[int, float]]:
        found = in_turn(bench.few_rounds, *(partial(cost, path) for path in paths))
        return [dict(zip(counts, each, strict=True)) for each in zip(*found, strict=True)]

    return [
        growth_figure(
            "ingest of one more run by runs", curve(lambda p: _one_more(bench, p, night)), "s"
        ),
        growth_figure("file size by runs", curve(lambda p: p.stat().st_size), "bytes"),
        growth_figure("`peaks` by runs", curve(_peaks), "ms"),
        growth_figure("`trends` by runs", curve(_trends), "ms"),
    ]


def _doubled(most: int) -> list[int]:
    return [2**power for power in range(most.bit_length())]


def _tenfold(most: int) -> list[int]:
    return [10**power for power in range(len(str(most)))]


def _ingested(bench: Bench, folder: Path) -> tuple[float, float]:
    """Seconds, and bytes of the new warehouse."""
    path = bench.new_path("grown.duckdb")
    done = memhouse("ingest", "--db", path, folder)
    size = path.stat().st_size
    path.unlink()
    return done.seconds, size


def _one_more(bench: Bench, warehouse: Path, night: Path) -> float:
    """Seconds of the ingest of one more run into a copy."""
    copy = bench.new_path("copy.duckdb")
    shutil.copyfile(warehouse, copy)
    done = memhouse("ingest", "--db", copy, "--run", "one-more", night)
    copy.unlink()
    return done.seconds


def _peaks(warehouse: Path) -> float:
    """Milliseconds of the library's call, because a command's start-up hides the growth."""
    with library.open(warehouse, read_only=True) as opened:
        start = perf_counter()
        opened.peaks().arrow()
        return 1000 * (perf_counter() - start)


def _trends(warehouse: Path) -> float:
    """Milliseconds of the view, all series and one metric."""
    with library.open(warehouse, read_only=True) as opened:
        start = perf_counter()
        opened.sql("FROM trends WHERE metric = 'peak_bytes'").arrow()
        return 1000 * (perf_counter() - start)


if __name__ == "__main__":
    measure([modules_growth, runs_growth])
