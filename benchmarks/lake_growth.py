"""A lake of more and more nights: what storing a night, opening and asking take."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from bench import Bench, measure
from exponents import growth_figure
from figures import Figure
from many_nights import ManyNights
from process import memhouse

import memhouse as library

# The targets are those of a lake of so many nights.
_NIGHTS = 300
_OPENING_SECONDS = 0.5
_QUERY_SECONDS = 0.3
_COMMIT_SECONDS = 0.1
# Of so many last nights the median counts.
_LAST = 20


def lake_growth(bench: Bench) -> list[Figure]:
    """Nights of 100 programs, 10 of them new: as they were stored, and compacted."""
    made = ManyNights(bench.dumps.warehouse, bench.new_path("lake"))
    commits: dict[int, float] = {}
    histories: dict[int, float] = {}
    figures = []
    for nights in sorted({10, 100, _NIGHTS, max(_NIGHTS, bench.options.runs)}):
        made.grow(nights)
        commits[nights] = median(made.commits[-_LAST:])
        histories[nights] = median(made.histories[-_LAST:])
        if nights >= _NIGHTS:
            figures += _figures(bench, made)
    return [
        Figure("commit of a night, 300 nights", [commits[_NIGHTS]], "s", _COMMIT_SECONDS),
        Figure("commit of its history", [histories[_NIGHTS]], "s", _COMMIT_SECONDS),
        growth_figure("commit of a night by nights", [commits], "s"),
        growth_figure("commit of its history by nights", [histories], "s"),
        *figures,
    ]


def _figures(bench: Bench, made: ManyNights) -> list[Figure]:
    """The lake as it is, and a compacted copy, which alone has targets."""
    compacted = bench.new_path("compacted")
    shutil.copytree(made.lake, compacted)
    with library.open(compacted) as opened, _timed() as seconds:
        opened.compact()
    name = f"{made.nights} nights"
    found = [Figure(f"compaction of {name}", [seconds()], "s")]
    has_target = made.nights == _NIGHTS
    for place, how in ((made.lake, "as stored"), (compacted, "compacted")):
        for what, limit, work in _asked(place, made.module()):
            work()
            values, cpu = zip(*(_cost(work) for _ in range(bench.rounds)), strict=True)
            target = limit if has_target and how == "compacted" else None
            parts = f"{median(cpu):.2f} s of CPU"
            found.append(Figure(f"{what}, {name} {how}", values, "s", target, parts=parts))
        whole = [memhouse("peaks", "--db", place).seconds for _ in range(bench.few_rounds)]
        found.append(Figure(f"`memhouse peaks`, {name} {how}", whole, "s"))
    return found


def _asked(place: Path, module: int) -> Iterator[tuple[str, float, Callable[[], object]]]:
    """What is asked, its target, and the call; all but opening in an open library."""

    def opens() -> None:
        library.open(place, read_only=True).close()

    yield "opening", _OPENING_SECONDS, opens
    with library.open(place, read_only=True) as opened:
        workload = str(opened.sql("SELECT MAX(workload) AS w FROM dumps").arrow()["w"][0])
        yield "`peaks`", _QUERY_SECONDS, lambda: opened.peaks().arrow()
        yield "`trends --workload`", _QUERY_SECONDS, lambda: opened.trends(workload=workload)
        yield "`owners`", _QUERY_SECONDS, lambda: opened.owners(module).arrow()


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and seconds of CPU, which the load of the machine changes less."""
    cpu = process_time()
    with _timed() as seconds:
        work()
    return seconds(), process_time() - cpu


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    """What tells the seconds of the block after it."""
    start = perf_counter()
    end: list[float] = []
    yield lambda: end[0] - start
    end.append(perf_counter())


if __name__ == "__main__":
    measure([lake_growth])
