"""Overlapping values: thousands of values that all lie within each other."""

from functools import partial
from time import perf_counter

import numpy as np
from bench import Bench, measure
from exponents import growth_figure
from figures import Figure
from process import in_turn

from memhouse.xla.occupancy import Extents, occupied_changes

_LIMIT = 0.1


def nested(bench: Bench) -> list[Figure]:
    """Time the occupancy of a made-up module, and how the time grows with its values."""
    most = bench.options.values
    counts = [most // 64, most // 16, most // 4, most]
    times = in_turn(bench.few_rounds, *(partial(_seconds, nest(count)) for count in counts))
    rounds = [dict(zip(counts, found, strict=True)) for found in zip(*times, strict=True)]
    return [
        Figure(f"occupancy of {most:,} nested overlapping values", times[-1], "s", _LIMIT),
        growth_figure("the occupancy of nested values", rounds, "s", limit=1.25),
    ]


def nest(count: int) -> Extents:
    """Values of one allocation: each lies within the one before, in address and in time."""
    numbers = np.arange(count)
    return Extents(
        low=numbers,
        high=2 * count - numbers,
        start=numbers,
        end=2 * count - numbers,
    )


def _seconds(extents: Extents) -> float:
    start = perf_counter()
    occupied_changes(extents)
    return perf_counter() - start


if __name__ == "__main__":
    measure([nested])
