"""What a peak is: what makes most of it, its shape in time, and what XLA reserves for it."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from ..queries.result import without_layout
from ..schema.readable import human_bytes
from .asked_program import Change, Layout, Program, occupied
from .cutting import Cutting
from .finding import Finding, Grade

# A part of the schedule: the level that more than this much of it stays below.
_LEVEL = 0.9
# A peak is a needle if it stands so far above that level.
_NEEDLE = 0.1
_NO_CHANGE = Change()
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


def largest_kind(program: Program, time: int, change: Change = _NO_CHANGE) -> Kind | None:
    """What makes most of the memory at a time, with a change made.

    Temps are of one kind if they have the same dimensions, in whatever order and type; arguments
    if they have the same role; and outputs that have memory of their own. None without arrays.
    """
    cutting, kinds = program.worked_out(Cutting), list[Kind]()
    for _, all_of_it in cutting.groups(time):
        arrays = [array for array in all_of_it if array.value_id not in change.gone]
        if arrays:
            largest = max(arrays, key=lambda each: (cutting.size(each), len(each.words)))
            words = without_layout(str(largest.shape))
            if len(arrays) > 1:
                words = f"{words} and {len(arrays) - 1} more of its dimensions"
            source = program.lines.get(largest.value_id)
            kinds.append(Kind(words, cutting.bytes_of(arrays), source))
    sizes: Counter[str] = Counter()
    freed: Counter[str] = Counter()
    for row in program.entry_arrays.to_pylist():
        is_there = row["memory_space"] == program.layout.memory_space
        if is_there and not (row["is_output"] and row["is_shared"]):
            role = _ROLES.get(cutting.roles.get(row["value_id"], ""), "arguments")
            counted = freed if row["allocation_index"] in change.freed else sizes
            counted["outputs" if row["is_output"] else role] += row["padded_bytes"] or 0
    # What stays throughout instead is of the same roles, in fewer bits.
    always = sum(each.size_bytes for each in change.pieces if each.is_throughout(program.layout))
    for role, size in freed.items():
        sizes[role] += size * always // max(freed.total(), 1)
    kinds += [Kind(role, size, None) for role, size in sizes.items()]
    return max(kinds, key=lambda kind: kind.size_bytes, default=None)


# What a saving is of the bytes that XLA reserves: packing adds to the peak, and may add more. Lives
# fragment where a peak falls, so that the reserved bytes of the changed program are its peak and up
# to a part of it that was measured on recompiled programs: docs/advise.md.

# The part of the new peak that packing adds at most, by platform.
_PACKING = {"cpu": 0.01, "tpu": 0.1, "gpu": 0.11}
# The same where the order of instructions is a new one.
_PACKING_OF_NEW_ORDER = {"cpu": 0.09}


def reserved_bytes(layout: Layout) -> int:
    """All allocations of the memory space but thread-local ones."""
    return int(layout.allocation_bytes.sum())


def with_reserved(program: Program, finding: Finding) -> Finding:
    """The finding with how much less is reserved, at the least and at the most.

    As it came if it promises nothing, or if nobody knows what packing adds: of HLO text alone. A
    bound has no least.
    """
    most = _PACKING.get(program.platform or "")
    if finding.is_new_order:
        most = _PACKING_OF_NEW_ORDER.get(program.platform or "")
    if finding.saving_bytes is None or most is None or program.origin == "estimated":
        return finding
    layout, apart = program.layout, finding.tolerance or 0
    least_saved = _or(finding.low_bytes, finding.saving_bytes)
    most_saved = _or(finding.high_bytes, finding.saving_bytes)
    now = reserved_bytes(layout)
    largest = int((layout.peak_bytes - least_saved) * (1 + apart) * (1 + most))
    smallest = int((layout.peak_bytes - most_saved) * (1 - apart))
    return replace(
        finding,
        reserved_low_bytes=None if finding.grade is Grade.at_most else max(now - largest, 0),
        reserved_high_bytes=max(now - smallest, 0),
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given
