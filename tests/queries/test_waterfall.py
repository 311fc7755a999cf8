"""The bars from one peak to another add up, whatever changes."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.reporting.difference.waterfall import Bar, bars, waterfall_chart

SIZES = st.integers(-(2**45), 2**45).filter(bool)


def changes_of(sizes):
    ordered = sorted(sizes, key=lambda size: -abs(size))
    names = [f"owner {place}" for place in range(len(ordered))]
    return pa.table(
        {"owner": pa.array(names, pa.string()), "change_bytes": pa.array(ordered, pa.int64())}
    )


def bars_of(sizes, limit=12):
    before = sum(-size for size in sizes if size < 0)
    a, b = Bar("A", 0, before, is_peak=True), Bar("B", 0, before + sum(sizes), is_peak=True)
    return bars(changes_of(sizes), a, b, limit)


@given(st.lists(SIZES, max_size=60), st.integers(1, 12))
def test_the_bars_lead_from_peak_to_peak(sizes, limit):
    made = bars_of(sizes, limit)
    for before, after in pairwise(made[:-1]):
        assert after.before_bytes == before.after_bytes
    assert made[-2].after_bytes == made[-1].after_bytes
    assert len(made) <= limit + 4


@given(st.lists(SIZES, min_size=1, max_size=60))
def test_a_bar_says_its_direction_without_a_colour(sizes):
    for bar in bars_of(sizes)[1:-1]:
        grows = bar.after_bytes > bar.before_bytes
        assert bar.text.startswith("▲ +" if grows else "▼ -")


def test_the_rest_is_a_bar_of_growths_and_one_of_falls():
    made = bars_of([900, -800, 30, 20, -10], limit=2)
    assert [(bar.name, bar.after_bytes - bar.before_bytes) for bar in made[1:-1]] == [
        ("owner 0", 900),
        ("owner 1", -800),
        ("2 smaller growths", 50),
        ("1 smaller fall", -10),
    ]


def test_one_change_more_has_its_own_bar():
    assert [bar.name for bar in bars_of([3, 2, 1], limit=2)][1:-1] == [
        "owner 0",
        "owner 1",
        "owner 2",
    ]


def test_an_estimate_is_marked():
    a, b = Bar("A", 0, 1024, is_peak=True, is_estimated=True), Bar("B", 0, 3072, is_peak=True)
    made = bars(changes_of([2048]), a, b)
    assert [bar.text for bar in made] == ["≈1.00 KiB", "▲ ≈+2.00 KiB", "3.00 KiB"]
    assert [bar.peak_text for bar in made] == ["≈1.00 KiB", "≈3.00 KiB", "3.00 KiB"]


@pytest.mark.parametrize(
    ("peak", "change", "begins_at"), [(1000, 900, 0), (1000, 10, 995), (1000, -1000, 0), (0, 0, 0)]
)
def test_the_axis_begins_where_the_changes_can_be_seen(peak, change, begins_at):
    a, b = Bar("A", 0, peak, is_peak=True), Bar("B", 0, peak + change, is_peak=True)
    made = bars(changes_of([change] if change else []), a, b)
    chart = waterfall_chart({"source": made}, "HBM", ())
    assert chart.model.x_range.start == begins_at
    assert ("not at 0" in chart.note) == (begins_at > 0)
