"""Lanes: live ranges side by side."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.lanes import lanes_of, most_at_once

RANGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(0, 5)).map(
        lambda found: (found[0], found[0] + found[1], found[2])
    ),
    max_size=40,
)


def columns(ranges):
    return ([row[place] for row in ranges] for place in range(3))


@given(RANGES)
def test_every_value_is_in_one_lane_and_overlaps_none_there(ranges):
    lanes = lanes_of(*columns(ranges))
    assert sorted(number for lane in lanes for number in lane) == list(range(len(ranges)))
    for lane in lanes:
        lives = sorted(ranges[number][:2] for number in lane)
        for (_, end), (start, _) in pairwise(lives):
            assert end < start


@given(RANGES)
def test_there_are_as_many_lanes_as_values_at_once_at_least(ranges):
    starts, ends, offsets = columns(ranges)
    at_once = max(
        (sum(start <= time <= end for start, end, _ in ranges) for time in range(50)), default=0
    )
    assert most_at_once(starts, ends) == at_once
    assert len(lanes_of(starts, ends, offsets)) >= at_once


def test_the_lowest_address_is_in_the_first_lane():
    starts, ends, offsets = [0, 0, 5, 3], [4, 4, 9, 9], [512, 0, 512, 1024]
    assert lanes_of(starts, ends, offsets) == [[1, 2], [0], [3]]
