"""Thresholds of `memhouse check`: percentages and sizes."""

import pytest

from memhouse.queries.checking.thresholds import parse_growth


@pytest.mark.parametrize(
    ("text", "base", "allowed"),
    [
        ("1%", 1000, 10),
        ("0.5%", 1000, 5),
        ("2 %", 1000, 20),
        ("0%", 1000, 0),
        ("100%", 1000, 1000),
        ("100B", 1000, 100),
        ("64KiB", 1000, 64 * 1024),
        ("1.5 MiB", 1000, 1.5 * 2**20),
        ("2GiB", 0, 2 * 2**30),
        ("1TiB", 0, 2**40),
    ],
)
def test_growth_is_a_percentage_or_a_size(text, base, allowed):
    threshold = parse_growth(text)
    assert threshold.of(base) == allowed
    assert threshold.text == text


@pytest.mark.parametrize(
    "text",
    ["", "%", "lots", "-1%", "1,5%", "64MB", "64mib", "64M", "1e3MiB", "1 2MiB", "1%%", "95% of x"],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="is neither a percentage such as 2% nor a size such as"):
        parse_growth(text)
