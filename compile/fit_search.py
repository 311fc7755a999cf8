"""Which size to compile next, to find the largest that fits: a law proposes, a compile proves."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

# Work a sample may be so much above the least before a size counts as recomputing.
WORK_TOLERANCE = 0.01
# With a total of more of the capacity, XLA recomputes: so it was on TPUs.
RECOMPUTES_ABOVE = 0.95


@dataclass(frozen=True)
class Sized:
    """A size that was tried: what it takes, None if nothing says it, and whether it fits.

    work: of a sample, None if it is not known.
    """

    size: int
    reserved_bytes: int | None
    fits: bool
    work: float | None = None


def next_size(
    tried: Sequence[Sized], sizes: range, capacity_bytes: int, *, tolerance: float = 0.0
) -> int | None:
    """The size to compile next; None if the largest size that fits is proved from both sides.

    tried: the sizes so far, in the order in which they were tried; sizes: those that may be
    tried, upwards. The smallest comes first, because it says whether the program is right at all,
    then the largest. Between a size that fits and a larger one that does not, the law through the
    sizes nearest to the capacity says which: if it names an end, then the size beside that is to
    prove it. Proofs that fail are followed by ever farther sizes, and a stair by the middle. The
    search ends at a step, or at a share `tolerance` of the size.

    >>> next_size([], range(8, 513, 8), 100), next_size([Sized(8, 10, True)], range(8, 513, 8), 100)
    (8, 512)
    """
    done = {point.size for point in tried}
    for end in (sizes[0], sizes[-1]):
        if end not in done:
            return end
        if end == sizes[0] and not any(point.fits for point in tried):
            return None
    lower, upper = bracket(tried)
    proofs = _proofs(tried, sizes, tolerance)
    if upper is None or proofs is None:
        return None
    if any(not point.fits and point.reserved_bytes is not None for point in tried):
        guess = (lower + upper) / 2
    else:
        # Nothing says how far the upper end is over: the answer may be of any magnitude.
        guess = sqrt(lower * upper)
    last = tried[-1]
    fails = _failed_proofs(tried, sizes, tolerance)
    if fails > 1 or (fails and last.reserved_bytes is None):
        # Nearer than the middle, and farther each time.
        alike = next((n for n, p in enumerate(reversed(tried)) if p.fits != last.fits), len(tried))
        reach = (proofs[0] - lower) << alike
        guess = min(guess, lower + reach) if last.fits else max(guess, upper - reach)
    elif (sudden := _sudden(tried, capacity_bytes)) is not None:
        guess = min(sudden + sizes.step, proofs[1])
    elif not _is_stair(tried, capacity_bytes):
        ends = [point for point in tried if point.size in (lower, upper)]
        for known in (tried, ends):
            law = _Law.through(known, capacity_bytes)
            found = None if law is None else law.size_of(capacity_bytes)
            if found is not None:
                guess = min(max(found, proofs[0]), proofs[1])
                if lower <= found < upper:
                    break
    return sizes[max(int((guess - sizes.start) // sizes.step), sizes.index(lower) + 1)]


def bracket(tried: Sequence[Sized]) -> tuple[int, int | None]:
    """The largest size that fits, 0 if none does, and the next larger one that does not."""
    lower = max((point.size for point in tried if point.fits), default=0)
    upper = min((p.size for p in tried if not p.fits and p.size > lower), default=None)
    return lower, upper


def _proofs(tried: Sequence[Sized], sizes: range, tolerance: float) -> tuple[int, int] | None:
    """The sizes that end the search: one if it does not fit, one if it does. None at its end."""
    lower, upper = bracket(tried)
    if upper is None:
        return None
    gap = max(int(tolerance * upper) // sizes.step, 1) * sizes.step
    if upper - lower <= gap:
        return None
    above = int(lower * tolerance / (1 - tolerance)) // sizes.step
    return lower + max(above, 1) * sizes.step, upper - gap


def _failed_proofs(tried: Sequence[Sized], sizes: range, tolerance: float) -> int:
    """How many of the last sizes were beside an end and became the new end."""
    for number in range(len(tried)):
        proofs = _proofs(tried[: len(tried) - number - 1], sizes, tolerance)
        last = tried[-1 - number]
        if proofs is None or last.size != proofs[0 if last.fits else 1]:
            return number
    return len(tried)


def _sudden(tried: Sequence[Sized], capacity_bytes: int) -> float | None:
    """The size from which on XLA recomputes, if the upper end does and the lower one does not.

    Where recomputing takes more memory than it saves, that is the edge. None if it is no larger
    than the lower end, or if nothing tells.
    """
    lower, upper = bracket(tried)
    works = {point.size: point.work or 0.0 for point in tried}
    alike = [p for p in tried if p.fits and p.work and _is_alike(p.work, works[lower])]
    law = _Law.through(alike, capacity_bytes)
    if law is None or upper is None or works[upper] <= works[lower] * (1 + WORK_TOLERANCE):
        return None
    found = law.size_of(int(capacity_bytes * RECOMPUTES_ABOVE))
    return None if found is None or found <= lower else found


def _is_alike(work: float, other: float) -> bool:
    return abs(work - other) <= WORK_TOLERANCE * other


def _is_stair(tried: Sequence[Sized], capacity_bytes: int) -> bool:
    """Whether the last size is farther from the law than half of what is between the ends."""
    *before, last = tried
    law = _Law.through(before, capacity_bytes)
    ends = [p.reserved_bytes for p in tried if p.size in bracket(tried) and p.reserved_bytes]
    if law is None or last.reserved_bytes is None or len(ends) < 2:
        return False
    between = abs(ends[0] - ends[1])
    return abs(law.bytes_of(last.size) - last.reserved_bytes) > between / 2


@dataclass(frozen=True)
class _Law:
    """A parabola in Newton's form, or a line: at_a + slope (x - a) + bend (x - a) (x - b)."""

    a: int
    b: int
    at_a: int
    slope: float
    bend: float

    @classmethod
    def through(cls, tried: Sequence[Sized], capacity_bytes: int) -> "_Law | None":
        """Through the three or two sizes whose bytes are nearest to the capacity, if there are.

        Those that take the work of the nearest are one program, and others are another.
        """
        known = [(p.size, p.reserved_bytes, p.work) for p in tried if p.reserved_bytes is not None]
        known.sort(key=lambda point: abs(point[1] - capacity_bytes))
        if len(known) < 2:
            return None
        work = known[0][2]
        alike = [point for point in known if work and point[2] and _is_alike(point[2], work)]
        if len(alike) > 1:
            known = alike
        (a, at_a, _), (b, at_b, _), *rest = known
        slope = (at_b - at_a) / (b - a)
        bend = 0.0
        if rest:
            c, at_c, _ = rest[0]
            bend = ((at_c - at_b) / (c - b) - slope) / (c - a)
        return cls(a, b, at_a, slope, bend)

    def bytes_of(self, size: int) -> float:
        """What a size takes."""
        return self.at_a + (size - self.a) * (self.slope + self.bend * (size - self.b))

    def size_of(self, capacity_bytes: int) -> float | None:
        """The size that takes so much; None if the law does not rise there."""
        if self.slope <= 0:
            return None
        linear = self.slope - self.bend * (self.a + self.b)
        rest = self.bytes_of(0) - capacity_bytes
        square = linear * linear - 4 * self.bend * rest
        if self.bend > 0 and square >= 0:
            return (-linear + sqrt(square)) / (2 * self.bend)
        found = self.a + (capacity_bytes - self.at_a) / self.slope
        return found if isfinite(found) else None
