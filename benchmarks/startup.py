"""The start-up time of the command: its help, a query of one line, and `peaks` of a year."""

import sys

from bench import Bench, measure, seconds
from figures import Figure
from many_runs import warehouse_of_runs
from process import Finished, in_turn, memhouse, run

_HELP_SECONDS = 0.35
_SQL_SECONDS = 0.6
_PEAKS_RATIO = 3.0


def startup(bench: Bench) -> list[Figure]:
    """Time `memhouse --help`, `memhouse sql`, and `memhouse peaks` beside DuckDB's import."""
    year = warehouse_of_runs(bench, bench.options.nights)
    helped, asked, peaks, imported = in_turn(
        bench.rounds,
        lambda: memhouse("--help"),
        lambda: one_line(bench),
        lambda: memhouse("peaks", "--db", year),
        lambda: run(sys.executable, "-c", "import duckdb"),
    )
    return [
        Figure("`memhouse --help`", [run.seconds for run in helped], "s", _HELP_SECONDS),
        Figure("`memhouse sql` of one line", [run.seconds for run in asked], "s", _SQL_SECONDS),
        Figure(
            f'`memhouse peaks`, {bench.options.nights} runs / `python -c "import duckdb"`',
            [a.seconds / b.seconds for a, b in zip(peaks, imported, strict=True)],
            limit=_PEAKS_RATIO,
            parts=f"{seconds(peaks):.2f} s / {seconds(imported):.2f} s",
        ),
    ]


def one_line(bench: Bench) -> Finished:
    """Run the smallest command on a warehouse."""
    return memhouse("sql", "--db", bench.dumps.warehouse, "SELECT 1")


if __name__ == "__main__":
    measure([startup])
