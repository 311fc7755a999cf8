"""Which size to compile next, to find the largest that fits: a law proposes, a compile proves."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

# The knee is searched below a size that recomputes in steps of this share, and of its doubles.
_KNEE_STEP = 1 / 64


@dataclass(frozen=True)
class Sized:
    """A size that was tried: what it takes, None if nothing says it, and whether it fits."""

    size: int
    reserved_bytes: int | None
    fits: bool


def next_size(
    tried: Sequence[Sized],
    sizes: range,
    capacity_bytes: int,
    *,
    tolerance: float = 0.0,
    begun: int = 0,
) -> int | None:
    """The size to compile next; None if the largest size that fits is proved from both sides.

    tried: the sizes so far, in the order in which they were tried; sizes: those that may be
    tried, upwards. The smallest comes first, because it says whether the program is right at all,
    then the largest. Between a size that fits and a larger one that does not, the law through the
    sizes nearest to the capacity says which. Two guesses that leave more than half of what was
    between them are followed by the middle. The search ends at a step, or at a share `tolerance` of
    the size. The first `begun` sizes were no guesses of this search: it is for the knee, whose
    sizes that do not fit are near it.

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
    if upper is None:
        return None
    if upper - lower <= max(sizes.step, int(tolerance * upper)):
        return None
    guessed = tried[begun:]
    # Where the law reaches the capacity, XLA recomputes already.
    is_slow = bool(guessed) if begun else _is_slow(tried)
    guess = None if is_slow else _foretold(tried, capacity_bytes)
    if guess is None and begun:
        below = _below(upper, guessed, tolerance)
        guess = max(below, (lower + upper) / 2)
    elif guess is None:
        known = [point for point in tried if not point.fits and point.reserved_bytes is not None]
        # Nothing says how far the upper end is over: the answer may be of any magnitude.
        guess = (lower + upper) / 2 if known else sqrt(lower * upper)
    place = int((guess - sizes.start) // sizes.step)
    least = (lower - sizes.start) // sizes.step + 1
    most = (upper - sizes.start - 1) // sizes.step
    return sizes[min(max(place, least), most)]


def bracket(tried: Sequence[Sized]) -> tuple[int, int | None]:
    """The largest size that fits, 0 if none does, and the next larger one that does not."""
    lower = max((point.size for point in tried if point.fits), default=0)
    upper = min((p.size for p in tried if not p.fits and p.size > lower), default=None)
    return lower, upper


def _below(upper: int, guessed: Sequence[Sized], tolerance: float) -> float:
    """A size below one that recomputes: farther with each guess that does too.

    0 once a guess did not: then the middle is next.
    """
    if any(point.fits for point in guessed):
        return 0
    share = max(tolerance, _KNEE_STEP) * (1 << max(len(guessed) - 1, 0))
    return upper * (1 - share)


def _is_slow(tried: Sequence[Sized]) -> bool:
    """Whether each of the last two sizes left more than half of its bracket."""
    if len(tried) < 4:
        return False
    ends = [bracket(tried[: len(tried) - back]) for back in (2, 1, 0)]
    widths = [upper - lower for lower, upper in ends if upper is not None]
    return len(widths) == 3 and widths[2] > widths[1] / 2 > widths[0] / 4


def _foretold(tried: Sequence[Sized], capacity_bytes: int) -> float | None:
    """The size at which the law reaches the capacity: a parabola of three, else a line of two.

    The law goes through the sizes whose bytes are nearest to the capacity. None if there are
    fewer than two, or if it does not rise there.
    """
    known = [(p.size, p.reserved_bytes) for p in tried if p.reserved_bytes is not None]
    known.sort(key=lambda point: abs(point[1] - capacity_bytes))
    if len(known) < 2:
        return None
    (a, at_a), (b, at_b) = known[:2]
    slope = (at_b - at_a) / (b - a)
    bend = 0.0
    if len(known) > 2:
        c, at_c = known[2]
        bend = ((at_c - at_b) / (c - b) - slope) / (c - a)
    # Newton's form: at_a + slope (x - a) + bend (x - a) (x - b).
    linear = slope - bend * (a + b)
    rest = at_a - slope * a + bend * a * b - capacity_bytes
    square = linear * linear - 4 * bend * rest
    if bend > 0 and square >= 0:
        return (-linear + sqrt(square)) / (2 * bend)
    if slope <= 0:
        return None
    found = a + (capacity_bytes - at_a) / slope
    return found if isfinite(found) else None
