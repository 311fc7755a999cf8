"""Measuring and printing, for the benchmarks."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import pyarrow as pa

from memhouse.cli.options import Format
from memhouse.cli.output import print_rows

_RUNS = 5


def milliseconds(work: Callable[[], object]) -> float:
    """The median time of several runs of `work`."""
    times = []
    for _ in range(_RUNS):
        start = perf_counter()
        work()
        times.append(1000 * (perf_counter() - start))
    return round(median(times), 1)


def show(rows: list[dict[str, object]]) -> None:
    """Print the results as a table."""
    print_rows(pa.Table.from_pylist(rows), Format.table)
