"""The memory of an ingest: of the large module, and of more and more copies of it."""

from pathlib import Path
from statistics import median

from bench import Bench, measure
from dumps import lay_copies
from figures import Figure
from process import Finished, in_turn, memhouse

_ALONE_BYTES = 420e6
_MANY_BYTES = 1e9
_TIMES = 10
# Memory varies from run to run because of DuckDB's threads and Python's arenas.
_GROWTH = 1.1


def memory(bench: Bench) -> list[Figure]:
    """Measure the large module, then few and many copies of it with two jobs."""
    few, many = bench.options.copies, _TIMES * bench.options.copies
    largest = bench.dumps.modules[:1]
    first, second = (lay_copies(bench.new_path("copies"), largest, n) for n in (few, many))
    (alone,) = in_turn(bench.rounds, lambda: _ingest(bench, bench.dumps.large))
    before, after = in_turn(
        bench.few_rounds,
        lambda: _ingest(bench, first),
        lambda: _ingest(bench, second),
        warm_up=False,
    )
    few_bytes, many_bytes = ([run.together_bytes for run in runs] for runs in (before, after))
    return [
        Figure(
            "peak memory of the large module's ingest",
            [run.peak_bytes for run in alone],
            "bytes",
            _ALONE_BYTES,
        ),
        Figure(
            f"memory of {many} large modules with two jobs, all processes together",
            many_bytes,
            "bytes",
            _MANY_BYTES,
        ),
        Figure(
            f"memory of {many} / {few} large modules with two jobs, all processes together",
            [b / a for a, b in zip(few_bytes, many_bytes, strict=True)],
            limit=_GROWTH,
            parts=f"{median(many_bytes) / 1e6:.0f} MB / {median(few_bytes) / 1e6:.0f} MB",
        ),
    ]


def _ingest(bench: Bench, folder: Path) -> Finished:
    database = bench.new_path("memory.duckdb")
    done = memhouse("ingest", "--db", database, "--jobs", "2", folder, sample=True)
    database.unlink()
    return done


if __name__ == "__main__":
    measure([memory])
