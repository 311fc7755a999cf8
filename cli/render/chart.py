"""Text charts of a module's occupancy and of the policies of a fit."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotext
import pyarrow as pa

from ...schema.readable import UNITS, human_bytes, unit_for

_HEIGHT = 18
# A mark per policy, reused cyclically.
_MARKS = "●▲■◆○△□◇"


def print_timeline(rows: pa.Table) -> None:
    """Draw occupied bytes over the schedule, and print the peak.

    Columns: start_time, occupied_bytes and instruction, a row per change.
    """
    times = rows["start_time"].to_numpy()
    occupied = rows["occupied_bytes"].to_numpy()
    peak = int(np.argmax(occupied))
    unit = unit_for(int(occupied[peak]))
    # Duplicate points draw steps instead of slopes.
    steps = np.repeat(times, 2)[1:].astype(float)
    levels = np.repeat(occupied, 2)[:-1] / UNITS[unit]
    figure = _empty_figure()
    figure.draw(figure.signal(steps.tolist(), levels.tolist(), marker="hd").lines())
    figure.ruler(1).lim(0, float(levels.max()) or 1)
    figure.label(unit, axis=1)
    figure.label("schedule time", axis=0)
    figure.show(colorless=True)
    instruction = rows["instruction"][peak].as_py()
    print(f"peak {human_bytes(int(occupied[peak]))} at time {times[peak]}, {instruction}")


def print_policies(
    policies: Mapping[str, Sequence[tuple[int, float, float]]], searched: str
) -> None:
    """Draw work over memory per sample: a mark per policy, a point per size that fits."""
    unit = unit_for(int(max(size for points in policies.values() for _, size, _ in points)))
    figure = _empty_figure()
    legend = []
    for index, (policy, points) in enumerate(policies.items()):
        mark = _MARKS[index % len(_MARKS)]
        sizes, shares, works = zip(*points, strict=True)
        memory = [share / UNITS[unit] for share in shares]
        figure.draw(figure.signal(memory, list(works), marker=mark))
        size_range = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else sizes[0]
        legend.append(f"{mark} {policy}: {searched} {size_range}")
    print(f"work per sample, % above the minimum, and memory per sample, {unit}")
    figure.show(colorless=True)
    print("\n".join(legend))


def _empty_figure() -> Any:
    """The global figure of plotext, cleared, as wide as the terminal."""
    figure = plotext.figure
    figure.clear()
    figure.plot_size(shutil.get_terminal_size().columns, _HEIGHT)
    return figure
