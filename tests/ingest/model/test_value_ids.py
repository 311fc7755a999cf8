"""Rows found by value_id, against a plain search."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memhouse.xla.runs import rows_of

from ...support.rounds import rounds

# Small ids are looked up in a table of places, large ones otherwise.
ids = st.lists(st.integers(0, 20) | st.integers(0, 2**31 - 1), max_size=8)


def column(numbers):
    """In two chunks, as readers of several files give it."""
    return pa.chunked_array([numbers[:3], numbers[3:]], pa.int32())


@settings(max_examples=rounds(50))
@given(ids, ids)
@example([], [])
@example([], [3])
@example([3, 1, 3], [3, 2, 9])
@example([2**31 - 1], [2**31 - 1, 0])
def test_the_first_row_of_each_id(keys, wanted):
    expected = [keys.index(id_) if id_ in keys else None for id_ in wanted]
    assert rows_of(column(keys), column(wanted)).to_pylist() == expected
