"""A module's occupancy drawn in text."""

import shutil

import numpy as np
import plotext
import pyarrow as pa

from ...schema.readable import UNITS, human_bytes, unit_for

_HEIGHT = 18


def print_timeline(rows: pa.Table) -> None:
    """Draw occupied bytes over the schedule, and name the peak.

    rows: start_time, occupied_bytes and instruction, from each change to the next.
    """
    times = rows["start_time"].to_numpy()
    occupied = rows["occupied_bytes"].to_numpy()
    peak = int(np.argmax(occupied))
    unit = unit_for(int(occupied[peak]))
    # A step holds until the next one: without these points the chart would slope.
    steps = np.repeat(times, 2)[1:].astype(float)
    levels = np.repeat(occupied, 2)[:-1] / UNITS[unit]
    width = shutil.get_terminal_size().columns
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, _HEIGHT)
    figure.draw(figure.signal(steps.tolist(), levels.tolist(), marker="hd").lines())
    figure.ruler(1).lim(0, float(levels.max()) or 1)
    figure.label(unit, axis=1)
    figure.label("schedule time", axis=0)
    figure.show(colorless=True)
    instruction = rows["instruction"][peak].as_py()
    print(f"peak {human_bytes(int(occupied[peak]))} at time {times[peak]}, {instruction}")
