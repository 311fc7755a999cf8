"""`memhouse tables` and `export` on a lake: the same tables and columns as of a file."""

import pytest

from memhouse import UsageError, Warehouse
from memhouse.queries import lists
from memhouse.queries.catalogue import use_views
from memhouse.schema.lake.snapshot import Lake
from memhouse.schema.stores.by_name import open_store

from ..support.dumps import DUMPS


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A lake and a file of the same dumps."""
    folder = tmp_path_factory.mktemp("both")
    Lake(str(folder / "lake"), create=True)
    stores = [open_store(str(folder / name), create=True) for name in ("lake", "file.duckdb")]
    for store in stores:
        use_views(store, read_only=False)
        Warehouse(store).ingest(DUMPS / "seeds", run="2026-10-01")
    yield stores
    for store in stores:
        store.close()


def test_a_lake_has_the_tables_of_a_file(both):
    lake, file = (lists.tables(store).table.to_pylist() for store in both)
    assert sorted(lake, key=lambda row: row["table"]) == sorted(file, key=lambda row: row["table"])
    assert {row["table"]: row["rows"] for row in lake}["modules"] == 5


def test_a_lakes_table_has_the_columns_of_a_files(both):
    lake, file = both
    for table in lists.tables(lake).table["table"].to_pylist():
        # A file stores a shape in two columns.
        of_file = [row for row in columns(file, table) if not row["column"].startswith("_")]
        assert columns(lake, table) == of_file


def columns(store, table):
    return lists.columns(store, table).table.to_pylist()


def test_a_table_that_is_not_there(both):
    for store in both:
        with pytest.raises(UsageError, match="no table nope: see `memhouse tables`"):
            lists.columns(store, "nope")


def test_an_export_has_the_columns_of_the_table_or_view(both, tmp_path):
    for name in ("dumps", "allocations", "peaks"):
        texts = []
        for store in both:
            Warehouse(store).export(name, tmp_path / "all.csv")
            texts.append((tmp_path / "all.csv").read_text())
        assert texts[0] == texts[1]
