"""Puts live ranges that overlap in time beside each other, in lanes ordered by address."""

from collections.abc import Sequence

import numpy as np


def most_at_once(starts: Sequence[int], ends: Sequence[int]) -> int:
    """How many live ranges there are at most at one time: fewer lanes cannot do."""
    times = np.concatenate([np.asarray(starts), np.asarray(ends) + 1])
    steps = np.repeat([1, -1], len(starts))
    # At one time, what has ended goes before what starts.
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max(initial=0))


def lanes_of(starts: Sequence[int], ends: Sequence[int], offsets: Sequence[int]) -> list[list[int]]:
    """The lanes: the numbers of the values in each, by address.

    The values of a lane never overlap in time; both ends of a live range are inclusive. The
    lowest addresses come first, and each value goes to the first lane that is free all its life:
    so a lane keeps to its part of the memory, and there are few more lanes than there must be.
    """
    lanes: list[list[int]] = []
    # A bit for each time at which a lane is taken.
    taken: list[int] = []
    for number in np.lexsort((starts, offsets)).tolist():
        start, end = starts[number], ends[number]
        life = ((1 << (end - start + 1)) - 1) << start
        lane = next((lane for lane, busy in enumerate(taken) if not busy & life), len(lanes))
        if lane == len(lanes):
            lanes.append([])
            taken.append(0)
        lanes[lane].append(number)
        taken[lane] |= life
    return lanes
