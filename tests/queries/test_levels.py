"""Levels of made-up series: by the rules and the figures that the rules were chosen with."""

import pytest

from memhouse.queries.series import (
    Level,
    Recovery,
    alternating,
    drift,
    levels,
    parse_tolerance,
    recovered,
)
from memhouse.schema.errors import UsageError

MIB = 1 << 20


def of(values, programs=None, **options):
    """The levels of these figures, each of a program of its own unless told."""
    return levels(values, programs or [None] * len(values), **options)


def in_mib(*values):
    return of([round(value * MIB) for value in values])


def test_a_level_lasts_until_the_figure_steps():
    assert in_mib(100, 100, 200, 200, 200) == [Level(0, 1, 100 * MIB), Level(2, 4, 200 * MIB)]
    assert in_mib(100) == [Level(0, 0, 100 * MIB)]
    assert of([]) == []


@pytest.mark.parametrize(
    ("found", "count"),
    [
        # A drift does not carry the level along: each night is within 0.2 % of the night before.
        (of([round(1000 * MIB * 1.0015**night) for night in range(12)]), 6),
        # A drift is a level a night.
        (in_mib(*(100 * 1.009**night for night in range(12))), 12),
        # The same program is the same level; what is not known is not the same.
        (of([100 * MIB, 101 * MIB, 102 * MIB], [7, 7, 8]), 2),
        (of([100 * MIB, 101 * MIB]), 2),
        # A page more of a small program is no step.
        (in_mib(2, 2 + 1 / 16), 1),
        (in_mib(2, 2 + 1 / 15), 2),
        # Tiny programs are exact, unless one figure is above 1 MiB.
        (of([1000, 1000, 1004]), 2),
        (of([1000, 1000, 1004, 2 * MIB]), 2),
    ],
)
def test_how_many_levels_there_are(found, count):
    assert len(found) == count


def test_a_tolerance_replaces_the_rule():
    series = [100 * MIB, 103 * MIB, 110 * MIB]
    assert len(of(series)) == 3
    assert len(of(series, tolerance=parse_tolerance("5%"))) == 2
    assert len(of(series, tolerance=parse_tolerance("16MiB"))) == 1
    assert len(of([100 * MIB, 100 * MIB + 1], tolerance=parse_tolerance("0%"))) == 2
    assert parse_tolerance(None) is None


@pytest.mark.parametrize("wrong", ["5", "much", "-1%", "3 XB", "5iB"])
def test_a_wrong_tolerance_is_refused(wrong):
    with pytest.raises(UsageError, match=r"neither a percentage such as 2% nor a size"):
        parse_tolerance(wrong)


def test_two_answers_of_autotuning_alternate():
    assert alternating(in_mib(*[100, 101] * 10)) == (100 * MIB, 101 * MIB)
    # What came before does not matter, nor does jitter around the two.
    assert alternating(in_mib(300, 50, 100, 101, 100.1, 101, 100, 101)) == (
        100 * MIB,
        101 * MIB,
    )
    # Fewer than six levels do not.
    assert alternating(in_mib(100, 101, 100, 101, 100)) is None
    assert alternating(in_mib(100, 101, 100, 101, 100, 102)) is None


def test_a_growth_that_was_taken_back():
    assert recovered(in_mib(100, 100, 114, 114, 100)) == [Recovery(1, 2, 14 * MIB)]
    # Back is where the figure is within a percent of what it was.
    assert recovered(in_mib(100, 114, 100.9)) == [Recovery(1, 2, 14 * MIB)]
    assert recovered(in_mib(100, 114, 102)) == []
    # A growth of up to a percent is none.
    assert recovered(in_mib(100, 100.9, 100)) == []
    # A growth in two steps is back at once.
    assert recovered(in_mib(100, 110, 120, 100)) == [
        Recovery(1, 3, 10 * MIB),
        Recovery(2, 3, 10 * MIB),
    ]


def crept(found, accepted=0):
    """The lowest level, the steps and the growth in percent."""
    told = drift(found, accepted)
    return told and (told.lowest, told.steps, round(100 * told.growth_ratio, 2))


def test_a_drift_is_told_from_the_lowest_on():
    assert crept(in_mib(*(100 * 1.009**night for night in range(12)))) == (0, 11, 10.36)
    # A level that was higher before does not count.
    assert crept(in_mib(300, 100, 104, 108)) == (1, 2, 8)
    for values in ((100, 110), (100, 100.5, 101), (100, 110, 90), ()):
        assert crept(in_mib(*values)) is None, values


def test_an_accepted_growth_is_the_new_floor():
    series = in_mib(100, 104, 108, 112, 116)
    assert crept(series) == (0, 4, 16)
    assert crept(series, accepted=2) == (2, 2, 7.41)
    assert crept(series, accepted=3) is None


def test_a_figure_that_was_nothing_has_no_percentage():
    series = [Level(0, 0, 0), Level(1, 1, 5 * MIB), Level(2, 2, 9 * MIB)]
    assert crept(series) == (0, 2, float("inf"))
