"""The map's rectangles: nothing that takes bytes is left out, and what is merged adds up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.reporting.module.map_colours import colourings
from memhouse.queries.reporting.module.map_rectangles import merged, rectangles
from memhouse.queries.reporting.module.module_buffers import module_buffers

from ..support.warehouse import reading

LENGTH = 1000


def table(rows):
    """Buffers as `module_buffers` has them: (category, allocation, address, size, start, end)."""
    names = ("category", "allocation_index", "address", "size_bytes", "start_time", "end_time")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.int32())
    return pa.table(
        {
            name: pa.array(column, type_)
            for name, column, type_ in zip(names, columns, types, strict=True)
        }
    )


def drawn(buffers, length, extent):
    found = rectangles(buffers, length, extent)
    return found, merged(found, buffers, length, extent)


def areas(together):
    return (together.right - together.left) * (together.top - together.bottom)


buffer = st.tuples(
    st.sampled_from(["argument", "temp", "constant"]),
    st.integers(0, 3),
    st.integers(0, 1 << 34),
    st.integers(0, 1 << 30),
    st.integers(0, LENGTH - 1),
    st.integers(0, LENGTH),
).map(
    lambda row: (
        (*row[:4], min(row[4:]), max(row[4:])) if row[0] == "temp" else (*row[:4], 0, LENGTH)
    )
)


@given(st.lists(buffer, max_size=40), st.integers(1 << 20, 1 << 40))
def test_bytes_times_positions_add_up(rows, extent):
    found, together = drawn(table(rows), LENGTH, extent)
    wanted = sum(
        size * (min(end + 1, LENGTH) - start)
        for _, _, _, size, start, end in rows
        if start < LENGTH
    )
    large = int(found.area[~found.is_small].sum())
    assert found.area.sum() == wanted
    assert large + areas(together).sum() == pytest.approx(wanted, rel=1e-9)
    assert together.count.sum() == found.is_small.sum()
    assert together.size_bytes.sum() == (found.top - found.bottom)[found.is_small].sum()


def test_neighbouring_arguments_are_one_rectangle_exactly():
    size = 1 << 10
    rows = [("argument", i, i * size, size, 0, LENGTH) for i in range(4)]
    _, together = drawn(table(rows), LENGTH, 1 << 30)
    assert (together.bottom.tolist(), together.top.tolist()) == ([0], [4 * size])
    assert (together.left.tolist(), together.right.tolist()) == ([0], [LENGTH])
    assert (together.count.tolist(), together.throughout) == ([4], 1)


def test_a_gap_between_arguments_stays_empty():
    size = 1 << 10
    rows = [("argument", i, i * 2 * size, size, 0, LENGTH) for i in range(2)]
    _, together = drawn(table(rows), LENGTH, 1 << 30)
    assert sorted(together.bottom.tolist()) == [0, 2 * size]


def test_values_of_other_lives_are_not_merged():
    rows = [("temp", 0, 0, 512, 0, 10), ("temp", 0, 512, 512, 500, 510)]
    _, together = drawn(table(rows), LENGTH, 1 << 30)
    assert together.count.tolist() == [1, 1]


def test_large_rectangles_come_before_those_on_them():
    rows = [("temp", 0, 0, 1 << 20, 5, 9), ("temp", 0, 0, 1 << 30, 0, 99)]
    found, _ = drawn(table(rows), LENGTH, 1 << 31)
    assert found.row.tolist() == [1, 0]


def test_every_buffer_of_a_module_is_drawn(filled):
    with reading(filled) as store:
        (module_id,) = store.connection.sql(
            "SELECT module_id FROM dumps WHERE workload = 'llama-v5e' LIMIT 1"
        ).fetchall()[0]
        buffers = module_buffers(store, module_id)
    length = max(buffers["end_time"].to_pylist())
    found, together = drawn(buffers, length, 400 << 20)
    assert sorted(found.row) == np.flatnonzero(buffers["size_bytes"].to_numpy()).tolist()
    assert 0 < len(together.count) < found.is_small.sum()
    peak = sum(buffers["peak_counted_bytes"].to_pylist())
    for way in colourings(buffers):
        assert sum(way.peak_bytes) == peak
        assert len(way.names) == len(way.colours) == len(way.peak_bytes)


@pytest.mark.parametrize(("workload", "way"), [("llama-v5e", "pass"), ("decode-h100", "role")])
def test_a_map_first_shows_colours_that_tell_something(filled, workload, way):
    """A decoding step is arguments and nothing else: its passes would be one colour."""
    with reading(filled) as store:
        (module_id,) = store.connection.sql(
            "SELECT module_id FROM dumps WHERE workload = $1 LIMIT 1", params=[workload]
        ).fetchall()[0]
        assert colourings(module_buffers(store, module_id))[0].key == way
