"""Levels of a series: its figures are piecewise constant, and a level is one of the pieces."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ..schema.errors import UsageError
from ..schema.readable import UNITS
from .checking.policy import parse_growth

# Autotuning moves a figure a little, and the padding of a small one by a page.
_SHARE = 0.002
_LEAST_BYTES = 64 * UNITS["KiB"]
# A series of figures that are all this small has levels of equal figures only.
_SMALL_BYTES = UNITS["MiB"]
# What counts as a growth, and as back where it was.
_GROWTH = 0.01
# So many of the last levels tell whether a series alternates.
_LAST_LEVELS = 6


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may lie from the first of its level: a share of it, or bytes."""

    share: float
    bytes: float

    def of(self, level: float) -> float:
        """The tolerance in bytes."""
        return max(self.share * level, self.bytes)


@dataclass(frozen=True)
class Level:
    """A level: the places of its first and last figure in the series, and the first figure."""

    first: int
    last: int
    value: int


@dataclass(frozen=True)
class Recovery:
    """A growth that was taken back: the level that grew, and the level that was back."""

    grown: int
    back: int
    growth_bytes: int


@dataclass(frozen=True)
class Creep:
    """How the last level came to lie above the lowest one."""

    lowest: int
    steps: int
    growth_pct: float


def parse_tolerance(text: str | None) -> Tolerance | None:
    """`0.5%` or `1MiB`. Raises UsageError."""
    if text is None:
        return None
    try:
        threshold = parse_growth(text)
    except ValueError as error:
        raise UsageError(str(error), "tolerance") from None
    return Tolerance(threshold.of(1), 0) if threshold.is_percent else Tolerance(0, threshold.of(1))


def levels(
    values: Sequence[int], programs: Sequence[Hashable], tolerance: Tolerance | None = None
) -> list[Level]:
    """The levels of figures in order; `programs` are their programs, None if not known.

    A figure is of the same level as the one before if the program is the same, or if it lies
    within the tolerance of the level's first figure. It is not held against the figure before:
    a drift would carry the level along.
    """
    if not values:
        return []
    within = tolerance or _usual(values)
    firsts = [0]
    for place in range(1, len(values)):
        if values[place] == values[place - 1]:
            continue
        if programs[place] is not None and programs[place] == programs[place - 1]:
            continue
        level = values[firsts[-1]]
        if abs(values[place] - level) > within.of(level):
            firsts.append(place)
    lasts = [first - 1 for first in firsts[1:]] + [len(values) - 1]
    return [Level(a, b, values[a]) for a, b in zip(firsts, lasts, strict=True)]


def alternating(
    found: Sequence[Level], tolerance: Tolerance | None = None
) -> tuple[int, int] | None:
    """The two values that the last levels alternate between, the lower first."""
    last = [level.value for level in found[-_LAST_LEVELS:]]
    if len(last) < _LAST_LEVELS:
        return None
    within = tolerance or _usual(last)
    low, high = min(last), max(last)
    if any(min(abs(value - low), abs(value - high)) > within.of(min(value, low)) for value in last):
        return None
    return low, high


def recovered(found: Sequence[Level]) -> list[Recovery]:
    """The growths of more than one percent that a later level took back."""
    recoveries = []
    for grown in range(1, len(found)):
        before = found[grown - 1].value
        if found[grown].value <= (1 + _GROWTH) * before:
            continue
        later = range(grown + 1, len(found))
        back = next((n for n in later if found[n].value <= (1 + _GROWTH) * before), None)
        if back is not None:
            recoveries.append(Recovery(grown, back, found[grown].value - before))
    return recoveries


def creep(found: Sequence[Level], accepted: int = 0) -> Creep | None:
    """The creep up to the last level, if this is more than one percent above the lowest level.

    The lowest is sought from the place `accepted` on, that of the last accepted growth. A
    single step is no creep.
    """
    if not found:
        return None
    since = [n for n, level in enumerate(found) if level.last >= accepted]
    lowest = min(reversed(since), key=lambda n: found[n].value)
    low, now = found[lowest].value, found[-1].value
    steps = len(found) - 1 - lowest
    if steps < 2 or now <= (1 + _GROWTH) * low:
        return None
    return Creep(lowest, steps, 100 * (now - low) / low if low else float("inf"))


def _usual(values: Sequence[int]) -> Tolerance:
    small = max(values) <= _SMALL_BYTES
    return Tolerance(0, 0) if small else Tolerance(_SHARE, _LEAST_BYTES)
