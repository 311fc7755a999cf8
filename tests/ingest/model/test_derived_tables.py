"""The rows of the warehouse's tables that HLO text alone gives."""

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.schema.tables import metadata
from memhouse.xla.dataflow import value_sizes
from memhouse.xla.estimate import exact_tables, value_rows
from memhouse.xla.liveness import derive

from .texts import LOOP, derived, names


def test_columns_are_the_warehouses():
    hlo = read_hlo_text(split_lines(LOOP.encode()))
    found = derive(hlo)
    tables = exact_tables(found)
    assert set(tables.pop("schedule").column_names) <= set(metadata.tables["instructions"].c.keys())
    for name, table in tables.items():
        assert set(table.column_names) <= set(metadata.tables[name].c.keys()), name


def test_positions_start_with_the_defining_one():
    found = derived(LOOP)
    value = names(found).index("p{}")
    rows = [row for row in exact_tables(found)["positions"].to_pylist() if row["value_id"] == value]
    assert [row["position_index"] for row in rows] == list(range(8))
    assert found.program.names[rows[0]["instruction_id"]].as_py() == "p"


def test_values_have_their_sizes_and_shapes():
    hlo = read_hlo_text(split_lines(LOOP.encode()))
    found = derive(hlo)
    rows = value_rows(found.dataflow, value_sizes(found.dataflow, "cpu")).to_pylist()
    by_name = dict(zip(names(found), rows, strict=True))
    one, table = by_name["next{}"], by_name["loop{}"]
    assert (one["size_bytes"], one["logical_bytes"], one["element_type"]) == (4, 4, "s32")
    assert (table["size_bytes"], table["shape"]) == (16, "(s32[], f32[8]{0})")
    assert (table["element_type"], table["is_phi"]) == (None, True)
