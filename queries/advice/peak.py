"""What a peak is: the arrays of one kind that make most of it, and its shape in time."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...schema.readable import human_bytes
from ..result import without_layout
from .asked_program import Change, Program, occupied
from .cutting import Cutting

# A part of the schedule: the level that more than this much of it stays below.
_LEVEL = 0.9
# A peak is a needle if it stands so far above that level.
_NEEDLE = 0.1
_ROLES = {"weight": "weights", "optimizer state": "optimizer state", "state": "states"}


@dataclass(frozen=True)
class PeakShape:
    """How a peak stands in the schedule.

    needle_steps: for how many steps more than level_bytes is used, which is the most that nine
    of ten steps use; schedule_length: all steps. is_needle: the peak stands out of the rest.
    """

    needle_steps: int
    schedule_length: int
    level_bytes: int
    peak_bytes: int

    @property
    def is_needle(self) -> bool:
        """Whether the peak is much above the level."""
        return self.peak_bytes - self.level_bytes >= _NEEDLE * self.peak_bytes

    def __str__(self) -> str:
        """In a sentence."""
        above = human_bytes(self.peak_bytes - self.level_bytes)
        steps = f"{self.needle_steps} of {self.schedule_length} steps"
        if self.is_needle:
            return f"It is a needle of {steps}, {above} above what the others need."
        return f"It is a plateau: nine of ten steps need at most {above} less."


def shape_of_peak(program: Program) -> PeakShape:
    """The peak's shape in time."""
    layout = program.layout
    times, used = occupied(layout, Change())
    steps = np.diff(np.append(times, max(layout.schedule_length, times[-1] + 1)))
    order = np.argsort(used, kind="stable")
    before = np.cumsum(steps[order])
    level = int(used[order][np.searchsorted(before, _LEVEL * before[-1])])
    peak = int(used.max())
    return PeakShape(int(steps[used > level].sum()), int(before[-1]), level, peak)


@dataclass(frozen=True)
class Kind:
    """Arrays of one kind: what they are, their bytes, and the line of the largest."""

    words: str
    size_bytes: int
    source: str | None


def largest_kind(program: Program, time: int, gone: frozenset[int] = frozenset()) -> Kind | None:
    """What makes most of the memory at a time, without values that are gone.

    Temps are of one kind if they have the same dimensions, in whatever order and type; arguments
    if they have the same role. None without arrays.
    """
    cutting, kinds = program.worked_out(Cutting), list[Kind]()
    for _, all_of_it in cutting.groups(time):
        arrays = [array for array in all_of_it if array.value_id not in gone]
        if arrays:
            largest = max(arrays, key=lambda each: (cutting.size(each), len(each.words)))
            words = without_layout(str(largest.shape))
            if len(arrays) > 1:
                words = f"{words} and {len(arrays) - 1} more of its dimensions"
            source = program.lines.get(largest.value_id)
            kinds.append(Kind(words, cutting.bytes_of(arrays), source))
    sizes: Counter[str] = Counter()
    for row in program.entry_arrays.to_pylist():
        if not row["is_output"] and row["memory_space"] == program.layout.memory_space:
            role = cutting.roles.get(row["value_id"], "")
            sizes[_ROLES.get(role, "arguments")] += row["padded_bytes"] or 0
    kinds += [Kind(role, size, None) for role, size in sizes.items()]
    return max(kinds, key=lambda kind: kind.size_bytes, default=None)
