"""Sparklines and units: what notebooks and commands share."""

import pyarrow as pa
import pytest

from memhouse.queries.result import human, sparkline, text_columns, without_layout

TIMES = "\N{MULTIPLICATION SIGN}"


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
    ("change", "shown"),
    [
        (0.0753, "+7.5 %"),
        (10.0, "+1000.0 %"),
        (11.0, f"{TIMES}12"),
        (-11.0, "-1100.0 %"),
        (12345.67, f"{TIMES}12,347"),
    ],
)
def test_a_change_of_over_a_thousand_percent_is_a_multiple(change, shown):
    assert human("change_ratio", change) == shown


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ("bf16[8,2048,4096]{2,1,0:T(8,128)(2,1)S(1)}", "bf16[8,2048,4096]"),
        ("f32[]{:T(128)}", "f32[]"),
        ("s4[<=8,16]{1,0:E(4)}", "s4[<=8,16]"),
        ("pred[8]", "pred[8]"),
        ("token[]", "token[]"),
        ("()", "()"),
        (
            "(f32[4]{0}, (u32[]{:S(2)}, s8[2,2]{1,0}), /*index=5*/bf16[3]{0})",
            "(f32[4], (u32[], s8[2,2]), bf16[3])",
        ),
    ],
)
def test_a_shape_without_layout(shape, shown):
    assert without_layout(shape) == shown


def test_a_column_that_no_mark_stands_for_is_shown():
    """The origin of a row without sizes, and whether an owner is a guess that is not shown."""
    rows = pa.table({"origin": ["estimated"], "is_guess": [True]})
    assert [cells for _, cells in text_columns(rows)] == [["estimated"], ["yes"]]
    beside = pa.table(
        {"origin": ["estimated"], "size_bytes": [8], "is_guess": [True], "role": ["a"]}
    )
    assert [field.name for field, _ in text_columns(beside)] == ["size_bytes", "role"]
