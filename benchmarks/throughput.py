"""The speed of an ingest beyond its start-up: what each further module takes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import Bench, measure, seconds
from dumps import Module, lay_copies
from figures import Figure
from process import Finished, in_turn, memhouse

# Megabytes of dumps a second: large modules, read by two processes.
_LIMIT = 150.0
# How many times as many modules the second ingest has.
_TIMES = 3


def throughput(bench: Bench) -> list[Figure]:
    """Time few and many copies of the largest module, and of the next largest ones."""
    largest, *others = bench.dumps.modules[: 1 + bench.options.modules]
    return [
        *_figures(bench, "large modules", [largest], _LIMIT),
        *_figures(bench, "smaller modules", others, None),
    ]


def _figures(bench: Bench, name: str, modules: list[Module], limit: float | None) -> list[Figure]:
    """The throughput with one job and with two."""
    few, many = bench.options.copies, _TIMES * bench.options.copies
    folders = [lay_copies(bench.new_path("copies"), modules, count) for count in (few, many)]
    works = [(folder, jobs) for jobs in (1, 2) for folder in folders]
    one_few, one_many, two_few, two_many = in_turn(
        bench.few_rounds, *(partial(ingest, bench, *work) for work in works)
    )
    count = (many - few) * len(modules)
    size = (many - few) * sum(module.bytes for module in modules)
    return [
        _figure(f"{name}, --jobs 1", count, size, one_few, one_many, None),
        _figure(f"{name}, --jobs 2", count, size, two_few, two_many, limit),
    ]


def _figure(
    name: str,
    count: int,
    size: int,
    few: Sequence[Finished],
    many: Sequence[Finished],
    limit: float | None,
) -> Figure:
    what = f"dumps read beyond start-up: {name}"
    took = [b.seconds - a.seconds for a, b in zip(few, many, strict=True)]
    # A round in which more modules took no longer says nothing.
    values = [size / 1e6 / more for more in took if more > 0]
    parts = f"{seconds(few):.2f} s, with {count} modules more {seconds(many):.2f} s"
    if (more := seconds(many) - seconds(few)) > 0:
        parts += f": {count / more:.1f} modules/s"
    return Figure(what, values, "MB/s", limit, at_least=True, parts=parts)


def ingest(bench: Bench, folder: Path, jobs: int) -> Finished:
    """Ingest a folder into a file of its own, which is gone afterwards."""
    database = bench.new_path("throughput.duckdb")
    done = memhouse("ingest", "--db", database, "--jobs", str(jobs), folder)
    database.unlink()
    return done


if __name__ == "__main__":
    measure([throughput])
