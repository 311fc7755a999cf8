"""The memory of an ingest: of the large module, and of more and more modules."""

from pathlib import Path
from statistics import median

from bench import Bench, Row, measure, verdict
from dumps import Module, lay_copies
from process import Finished, in_turn, memhouse

_LIMIT_BYTES = 600e6
_TIMES = 4
# Memory varies from run to run because of DuckDB's threads and Python's arenas.
_GROWTH = 1.1


def memory(bench: Bench) -> list[Row]:
    """Measure the large module, and growth with copies of this and of other modules."""
    (alone,) = in_turn(
        bench.rounds,
        lambda: memhouse("ingest", "--db", bench.new_path("memory.duckdb"), bench.dumps.large),
    )
    largest, *others = bench.dumps.modules[: 1 + bench.modules]
    peak = median(run.peak_bytes for run in alone)
    return [
        Row(
            "peak memory of the large module's ingest",
            f"{peak / 1e6:.0f} MB",
            verdict(peak, _LIMIT_BYTES, f"{_LIMIT_BYTES / 1e6:.0f} MB"),
        ),
        _growth(bench, [largest], "the large module"),
        _growth(bench, others, f"{len(others)} modules"),
    ]


def _growth(bench: Bench, modules: list[Module], name: str) -> Row:
    """The memory of all processes together, for few and for many copies of each module."""
    few_copies, many_copies = bench.copies, _TIMES * bench.copies
    first, second = (
        lay_copies(bench.new_path("copies"), modules, count) for count in (few_copies, many_copies)
    )
    few, many = in_turn(
        max(1, bench.rounds // 2),
        lambda: _ingest(bench, first),
        lambda: _ingest(bench, second),
    )
    before, after = (median(run.together_bytes for run in runs) for runs in (few, many))
    return Row(
        f"memory of {many_copies} / {few_copies} copies of {name}, all processes together",
        f"{after / before:.2f} ({after / 1e6:.0f} MB / {before / 1e6:.0f} MB)",
        verdict(after / before, _GROWTH, f"{_GROWTH:g}"),
    )


def _ingest(bench: Bench, folder: Path) -> Finished:
    return memhouse("ingest", "--db", bench.new_path("memory.duckdb"), folder, sample=True)


if __name__ == "__main__":
    measure([memory])
