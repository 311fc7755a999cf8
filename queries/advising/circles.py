"""Which things wait for each other in a circle."""

from collections.abc import Sequence


def in_circles(waits: Sequence[int], left: Sequence[int]) -> list[int]:
    """Which of those that are left wait for themselves, by way of others that are left.

    waits: of each what it waits for, a bit each.
    """
    remaining = sum(1 << each for each in left)
    while True:
        # What waits for nothing that is left is in no circle.
        stuck = [each for each in left if remaining >> each & 1 and waits[each] & remaining]
        fewer = sum(1 << each for each in stuck)
        if fewer == remaining:
            break
        remaining = fewer
    return [each for each in left if remaining >> each & 1 and _returns(waits, each, remaining)]


def _returns(waits: Sequence[int], one: int, remaining: int) -> bool:
    """Whether one waits for itself."""
    reached, fresh = 0, waits[one] & remaining
    while fresh:
        lowest = fresh & -fresh
        reached |= lowest
        fresh = (fresh | waits[lowest.bit_length() - 1] & remaining) & ~reached
    return bool(reached >> one & 1)
