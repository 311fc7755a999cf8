"""Occupancy: random extents against a brute force that paints bytes x time."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memhouse.ingest.model.occupancy import Extents, changes, occupied_changes

ALLOCATIONS, BYTES, TIMES = 3, 12, 10


@st.composite
def extent(draw):
    """An allocation, a range of bytes in it, a life; both may be a single point."""
    low, high = sorted([draw(st.integers(0, BYTES)), draw(st.integers(0, BYTES))])
    start, end = sorted([draw(st.integers(0, TIMES - 1)), draw(st.integers(0, TIMES - 1))])
    return draw(st.integers(0, ALLOCATIONS - 1)), low, high, start, end


extents = st.lists(extent(), max_size=12)
# Few different ranges: nearly all alias one another.
aliases = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 4]),
        st.sampled_from([4, 8]),
        st.integers(0, 4),
        st.integers(4, 9),
    ),
    max_size=12,
)


def columns(rows):
    return np.array(rows, np.int64).reshape(-1, 5).T


def held(times, sums):
    """The sum at each time from 0."""
    by_time = dict(zip(times.tolist(), sums.tolist(), strict=True))
    now, found = 0, []
    for time in range(TIMES):
        now = by_time.get(time, now)
        found.append(now)
    return found


def painted(rows):
    """How many bytes are covered at each time."""
    canvas = np.zeros((ALLOCATIONS, BYTES, TIMES), bool)
    for allocation, low, high, start, end in rows:
        canvas[allocation, low:high, start : end + 1] = True
    return canvas.sum(axis=(0, 1)).tolist()


@given(extents)
@example([])
@example([(0, 0, 8, 0, 5), (0, 4, 12, 3, 9)])
@example([(0, 0, 4, 0, 3), (0, 0, 4, 4, 9)])
@example([(0, 0, 4, 0, 3), (1, 0, 4, 0, 3)])
@example([(0, 0, 0, 2, 4)])
@settings(max_examples=500, deadline=None)
def test_occupied_is_the_union(rows):
    times, sums = occupied_changes(Extents(*columns(rows)))
    assert held(times, sums) == painted(rows)


@given(aliases)
@settings(max_examples=300, deadline=None)
def test_aliases_count_once(rows):
    times, sums = occupied_changes(Extents(*columns(rows)))
    assert held(times, sums) == painted(rows)


@given(extents)
@settings(max_examples=200, deadline=None)
def test_changes_are_the_sum_of_what_is_live(rows):
    _, low, high, start, end = columns(rows)
    times, sums = changes(start, end, high - low)
    live = [sum(h - w for _, w, h, s, e in rows if s <= t <= e) for t in range(TIMES)]
    assert held(times, sums) == live


@given(extents)
@settings(max_examples=100, deadline=None)
def test_times_ascend_and_all_is_free_in_the_end(rows):
    for times, sums in (
        changes(*columns(rows)[3:5], columns(rows)[2]),  # type: ignore[call-arg]
        occupied_changes(Extents(*columns(rows))),
    ):
        assert (np.diff(times) > 0).all()
        assert not len(sums) or sums[-1] == 0


def test_both_ends_of_a_life_are_live():
    times, sums = changes(np.array([2]), np.array([4]), np.array([7]))
    assert held(times, sums) == [0, 0, 7, 7, 7, 0, 0, 0, 0, 0]


def test_many_extents_that_overlap():
    # More than one block and more than one table of comparisons.
    random = np.random.default_rng(1)
    low = random.integers(0, 1000, 3000)
    rows = np.stack(
        [
            random.integers(0, 2, 3000),
            low,
            low + random.integers(1, 50, 3000),
            start := random.integers(0, 900, 3000),
            start + random.integers(0, 99, 3000),
        ]
    )
    canvas = np.zeros((2, 1100, 1000), bool)
    for allocation, low, high, start, end in rows.T:
        canvas[allocation, low:high, start : end + 1] = True
    times, sums = occupied_changes(Extents(*rows))
    expected = canvas.sum(axis=(0, 1))
    assert sums[times < 1000].tolist() == expected[times[times < 1000]].tolist()
    assert sums.max() == expected.max()


def test_large_addresses():
    far = 2**49
    times, sums = occupied_changes(
        Extents(*columns([(9, far, far + 8, 0, 2**31 - 2), (9, far + 4, far + 12, 1, 1)]))
    )
    assert (times.tolist(), sums.tolist()) == ([0, 1, 2, 2**31 - 1], [8, 12, 8, 0])
