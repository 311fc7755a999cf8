"""Instructions in a file: rows and kinds are all that was stored, whatever their names."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.schema import arrow
from memhouse.schema.kinds import name_parts, rows_and_kinds
from memhouse.schema.stores.duckdb import insert, open_file

COLUMNS = arrow.schema("instructions").names
PIECES = st.sampled_from(
    [
        "0",
        "00",
        "1",
        "7",
        "12",
        "4294967296",
        "999999999",
        ".",
        ".clone",
        ".1",
        ".01",
        "a",
        "é",
        "fusion.",
        "\n",
    ]
)
NAMES = st.lists(PIECES, max_size=6).map("".join) | st.text(st.characters(codec="utf-8"))
FEW = st.none() | st.sampled_from([0, 1, 2**31 - 1])
WORDS = st.none() | st.sampled_from(["", "x", "y" * 5000])
ROWS = st.fixed_dictionaries(
    {"module_id": st.sampled_from([3, 5]), "instruction": NAMES}
    | dict.fromkeys(("computation", "shape", "op_name"), WORDS)
    | dict.fromkeys(("schedule_time", "scope_id", "flops", "parameter_number"), FEW)
    | {"pass": st.sampled_from([None, "forward"]), "is_root": st.sampled_from([None, True, False])}
)


@pytest.fixture(scope="module")
def store():
    store = open_file(":memory:", create=True)
    yield store
    store.close()


@settings(max_examples=25)
@given(rows=st.lists(ROWS, max_size=40))
def test_what_is_stored_is_what_is_read(store, rows):
    for number, row in enumerate(rows):
        row["instruction_id"] = number
    table = arrow.rows("instructions", rows)
    store.connection.begin()
    try:
        insert(store.connection, "instructions", table)
        found = store.rows("FROM instructions ORDER BY instruction_id")
    finally:
        store.connection.rollback()
    assert arrow.plain(found).to_pylist() == table.to_pylist()


def test_names_that_differ_in_a_number_are_of_one_kind():
    names = [
        "fusion.1",
        "fusion.20",
        "a.7.clone",
        "a.123.clone",
        "a.01",
        "b.2.clone.3",
        "b.3.clone.3",
    ]
    rows = [
        {"module_id": 1, "instruction_id": at, "instruction": of} for at, of in enumerate(names)
    ]
    stored = dict(rows_and_kinds(arrow.rows("instructions", rows)))
    assert stored["_instructions"]["number"].to_pylist() == [1, 20, 7, 123, 1, 2, 3]
    assert stored["_instructions"]["kind_id"].to_pylist() == [0, 0, 1, 1, 2, 3, 3]
    assert stored["_instruction_kinds"]["after"].to_pylist() == ["", ".clone", "", ".clone.3"]


def test_a_slice_of_names_is_read_in_its_bounds():
    names = pa.chunked_array([pa.array(["x.1", "y.22", "3z.4"])]).slice(1)
    assert [part.to_pylist() for part in name_parts(names)] == [["y.", "3z."], [22, 4], ["", ""]]
