"""Sparklines and units: what notebooks and commands share."""

import pytest

from memhouse.queries.cells import sparkline
from memhouse.queries.units import UNITS, unit_for


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], ""),
        ([None, None], ""),
        ([5], "▄"),
        ([7, None, 7], "▄ ▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([1, None, 8], "▁ █"),
        ([3, 1, 4, 1, 5, 9, 2, 6], "▃▁▄▁▄█▂▅"),
    ],
)
def test_a_sparkline_has_a_bar_a_value(values, shown):
    assert sparkline(values) == shown


@pytest.mark.parametrize(
    ("size", "unit"),
    [(0, "B"), (1023, "B"), (1024, "KiB"), (-(2**20), "MiB"), (2**63, "PiB"), (1048570.9, "MiB")],
)
def test_a_size_has_the_largest_unit_that_fits(size, unit):
    assert unit_for(size) == unit
    assert unit in UNITS
