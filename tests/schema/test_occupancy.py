"""Occupancy: random extents against a brute force that paints bytes x time."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from memhouse.xla.occupancy import Extent, add_changes, occupied_changes, sum_changes

from ..support.rounds import rounds

BYTES, TIMES = 12, 10


@st.composite
def extent(draw):
    """A range of bytes and a live range; both may be a single point."""
    low, high = sorted([draw(st.integers(0, BYTES)), draw(st.integers(0, BYTES))])
    start, end = sorted([draw(st.integers(0, TIMES - 1)), draw(st.integers(0, TIMES - 1))])
    return Extent(low, high, start, end)


extents = st.lists(extent(), max_size=12)
# Few different ranges: nearly all alias one another.
aliases = st.lists(
    st.builds(
        Extent,
        st.sampled_from([0, 4]),
        st.sampled_from([4, 8]),
        st.integers(0, 4),
        st.integers(4, 9),
    ),
    max_size=12,
)


def by_time(changes, times=TIMES):
    """The amount at each time from 0."""
    amounts = dict(changes)
    amount, result = 0, []
    for time in range(times):
        amount = amounts.get(time, amount)
        result.append(amount)
    return result


def painted(rows, size=BYTES, times=TIMES):
    """How many bytes are covered at each time."""
    covered = [set() for _ in range(times)]
    for low, high, start, end in rows:
        for time in range(start, min(end + 1, times)):
            covered[time].update(range(low, high))
    return [len(addresses) for addresses in covered]


@given(extents | aliases)
@example([])
@example([Extent(0, 8, 0, 5), Extent(4, 12, 3, 9)])
@example([Extent(0, 4, 0, 3), Extent(0, 4, 4, 9)])
@example([Extent(0, 4, 0, 9), Extent(4, 8, 0, 9), Extent(0, 8, 2, 3)])
@example([Extent(0, 0, 2, 4)])
@settings(max_examples=rounds(50), deadline=None)
def test_occupied_is_the_union(rows):
    assert by_time(occupied_changes(rows)) == painted(rows)


def test_many_extents_that_overlap():
    numbers = random.Random(1)
    rows = []
    for _ in range(3000):
        low, start = numbers.randrange(1000), numbers.randrange(900)
        high, end = low + numbers.randrange(1, 50), start + numbers.randrange(99)
        rows.append(Extent(low, high, start, end))
    assert by_time(occupied_changes(rows), 1000) == painted(rows, 1100, 1000)


def test_nested_extents():
    """Each extent lies within the previous one, in bytes and in time."""
    count = 2000
    rows = [Extent(i, 2 * count - i, i, 2 * count - i) for i in range(count)]
    changes = occupied_changes(rows)
    assert changes[0] == (0, 4000)
    # The first extent covers all others, so that nothing changes until its end.
    assert {size for _, size in changes[:-1]} == {4000}
    assert changes[-1] == (4001, 0)


def test_large_addresses():
    far = 2**49
    rows = [Extent(far, far + 8, 0, 2**31 - 2), Extent(far + 4, far + 12, 1, 1)]
    assert occupied_changes(rows) == [(0, 8), (1, 12), (2, 8), (2**31 - 1, 0)]


def test_sums():
    assert sum_changes([(0, 1, 5), (1, 2, 7)]) == [(0, 5), (1, 12), (2, 7), (3, 0)]
    assert sum_changes([(4, 3, 9)]) == [(4, 0)]
    assert add_changes([[(0, 5), (3, 1)], [(1, 2)]]) == [(0, 5), (1, 7), (3, 3)]
