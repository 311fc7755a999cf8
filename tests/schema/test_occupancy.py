"""Occupancy: random extents against a brute force that paints bytes x time."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memhouse.xla import occupancy
from memhouse.xla.occupancy import Extents, occupied_changes

from ..support.rounds import rounds

BYTES, TIMES = 12, 10


@st.composite
def extent(draw):
    """A range of bytes and a life; both may be a single point."""
    low, high = sorted([draw(st.integers(0, BYTES)), draw(st.integers(0, BYTES))])
    start, end = sorted([draw(st.integers(0, TIMES - 1)), draw(st.integers(0, TIMES - 1))])
    return low, high, start, end


extents = st.lists(extent(), max_size=12)
# Few different ranges: nearly all alias one another.
aliases = st.lists(
    st.tuples(
        st.sampled_from([0, 4]),
        st.sampled_from([4, 8]),
        st.integers(0, 4),
        st.integers(4, 9),
    ),
    max_size=12,
)


@contextmanager
def swept(cells):
    """Extents are never cut into pieces; tables of more than so many cells are halved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occupancy, "_FEW_PIECES", -1)
        patch.setattr(occupancy, "_CELLS", cells)
        yield


def columns(rows):
    return np.array(rows, np.int64).reshape(-1, 4).T


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
    canvas = np.zeros((BYTES, TIMES), bool)
    for low, high, start, end in rows:
        canvas[low:high, start : end + 1] = True
    return canvas.sum(axis=0).tolist()


@given(extents | aliases)
@example([])
@example([(0, 8, 0, 5), (4, 12, 3, 9)])
@example([(0, 4, 0, 3), (0, 4, 4, 9)])
@example([(0, 0, 2, 4)])
@settings(max_examples=rounds(50), deadline=None)
def test_occupied_is_the_union(rows):
    times, sums = occupied_changes(Extents(*columns(rows)))
    assert held(times, sums) == painted(rows)


@given(extents, st.sampled_from([0, 6, 30, 200]))
@example([(0, 8, 0, 5), (4, 12, 3, 9)], 0)
@example([(0, 4, 0, 9), (4, 8, 0, 9), (0, 8, 2, 3)], 6)
@settings(max_examples=rounds(50), deadline=None)
def test_the_sweep_finds_the_union(rows, cells):
    with swept(cells):
        times, sums = occupied_changes(Extents(*columns(rows)))
    assert held(times, sums) == painted(rows)


def test_many_extents_that_overlap():
    # These would be cut into more pieces than there may be: they are swept.
    random = np.random.default_rng(1)
    low, start = random.integers(0, 1000, 3000), random.integers(0, 900, 3000)
    high, end = low + random.integers(1, 50, 3000), start + random.integers(0, 99, 3000)
    canvas = np.zeros((1100, 1000), bool)
    for row in range(3000):
        canvas[low[row] : high[row], start[row] : end[row] + 1] = True
    times, sums = occupied_changes(Extents(low, high, start, end))
    expected = canvas.sum(axis=0)
    assert sums[times < 1000].tolist() == expected[times[times < 1000]].tolist()
    assert sums.max() == expected.max()


def nested(count):
    """Extents of which each lies within the previous one, in bytes and in time."""
    number = np.arange(count)
    return Extents(number, 2 * count - number, number, 2 * count - number)


def test_nested_extents():
    times, sums = occupied_changes(nested(2000))
    assert (times[0], sums[0]) == (0, 4000)
    # The first extent holds all others, so that nothing changes until its end.
    assert set(sums[:-1].tolist()) == {4000}
    assert (times[-1], sums[-1]) == (4001, 0)


def swept_extents(monkeypatch, count):
    """How many extents all steps of the sweep look at."""
    sweep, seen = occupancy._sweep, []

    def counted(measure, low, *rest):
        seen.append(len(low))
        sweep(measure, low, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(occupancy, "_sweep", counted)
        occupied_changes(nested(count))
    return sum(seen)


def test_nested_extents_take_work_in_proportion(monkeypatch):
    assert 0 < swept_extents(monkeypatch, 8000) < 3 * swept_extents(monkeypatch, 4000)


def test_large_addresses():
    far = 2**49
    times, sums = occupied_changes(
        Extents(*columns([(far, far + 8, 0, 2**31 - 2), (far + 4, far + 12, 1, 1)]))
    )
    assert (times.tolist(), sums.tolist()) == ([0, 1, 2, 2**31 - 1], [8, 12, 8, 0])
