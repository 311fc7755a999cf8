"""The gain from a second process: ingest of several modules with --jobs 1 and --jobs 2."""

from pathlib import Path

from bench import Bench, Row, measure, ratio_row, seconds
from dumps import lay_copies
from process import Finished, in_turn, memhouse

_LIMIT = 0.6


def jobs(bench: Bench) -> list[Row]:
    """Time the ingest of the next largest modules, and of as many copies of the largest.

    The copies are a run of large modules, so start-up is a small part of the time.
    """
    largest, *others = bench.dumps.modules[: 1 + bench.modules]
    return [
        _row(
            bench,
            bench.rounds,
            f"{len(others)} modules",
            lay_copies(bench.new_path("others"), others, 1),
        ),
        _row(
            bench,
            max(1, bench.rounds // 2),
            f"{bench.modules} copies of the large module",
            lay_copies(bench.new_path("copies"), [largest], bench.modules),
        ),
    ]


def _row(bench: Bench, rounds: int, name: str, folder: Path) -> Row:
    def with_jobs(count: int) -> Finished:
        database = bench.new_path("jobs.duckdb")
        return memhouse("ingest", "--db", database, "--jobs", str(count), folder)

    one, two = in_turn(rounds, lambda: with_jobs(1), lambda: with_jobs(2))
    ratios = [b.seconds / a.seconds for a, b in zip(one, two, strict=True)]
    what = f"ingest of {name}: --jobs 2 / --jobs 1"
    return ratio_row(what, ratios, _LIMIT, f"{seconds(two):.2f} s / {seconds(one):.2f} s")


if __name__ == "__main__":
    measure([jobs])
