"""The canned views: documented, of this version, and quick to ask of one module."""

import json
from contextlib import closing

import pytest

from memhouse.queries.catalogue import (
    macro_columns,
    open_with_views,
    public_macros,
    public_views,
)
from memhouse.schema.errors import WarehouseError
from memhouse.schema.store import open_file

from ..support.command import run_memhouse
from ..support.warehouse import everything, reading, rows


def test_every_view_and_column_is_documented_in_the_warehouse(filled):
    query = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
    assert {name for (name,) in rows(filled, query)} == public_views().keys()
    query = """SELECT column_name, comment FROM duckdb_columns()
        WHERE schema_name = 'main' AND table_name = """
    for name, view in public_views().items():
        assert list(view.columns) == [row[0] for row in rows(filled, f"DESCRIBE {name}")], name
        assert view.answers.endswith((".", "?")), name
        columns = rows(filled, f"{query}'{name}' ORDER BY column_index")
        assert columns == list(view.columns.items()), name
    for name, macro in public_macros().items():
        columns = macro_columns(macro)
        if macro.is_table:
            given = ", ".join("NULL" for _ in macro.parameters)
            called = rows(filled, f"DESCRIBE FROM {name}({given})")
            assert list(columns) == [row[0] for row in called], name
        assert macro.notes.keys() <= macro.parameters.keys() | columns.keys(), name


def test_views_of_another_version_are_renewed(copied):
    with closing(open_file(str(copied))) as store:
        store.execute(
            "CREATE OR REPLACE VIEW peaks AS SELECT 1 AS other; "
            "CREATE VIEW mine AS SELECT 2 AS own; "
            "UPDATE internal.view_set SET digest = 'another'"
        )
    before = everything(copied)
    run = run_memhouse("peaks", "--db", copied, "--format", "csv")
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) > 20
    assert rows(copied, "SELECT * FROM internal.view_set") != [("another",)]
    assert rows(copied, "SELECT COUNT(*) FROM peaks")[0][0] > 20
    assert rows(copied, "FROM mine") == [(2,)]
    assert everything(copied) == before


def test_views_of_another_version_that_cannot_be_renewed_are_an_error(copied):
    with closing(open_file(str(copied))) as store:
        store.execute("UPDATE internal.view_set SET digest = 'another'")
    with reading(copied), pytest.raises(WarehouseError, match="of another version"):
        open_with_views(str(copied), read_only=True)


# --- plans --------------------------------------------------------------------------------


def test_a_filter_on_one_module_reaches_every_scan(filled):
    ((llama,),) = rows(filled, "SELECT module_id FROM dumps WHERE workload = 'llama-v5e'")
    asked = f"module_id = {llama}"
    with reading(filled) as store:

        def scans(query):
            """The tables that a query reads, each with the filters on its scan and above it."""
            ((_, plan),) = store.connection.sql(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
            steps = [(step, "") for step in json.loads(plan)]
            while steps:
                step, above = steps.pop()
                details = step["extra_info"]
                if "Table" in details:
                    yield details["Table"], f"{details.get('Filters')} {above}"
                here = str(details["Expression"]) if step["name"] == "FILTER" else ""
                steps += [(below, here) for below in step["children"]]

        columns = store.rows(
            "SELECT table_name AS view FROM duckdb_columns() "
            "WHERE schema_name = 'internal' AND column_name = 'module_id' "
            "AND table_name NOT IN (SELECT table_name FROM duckdb_columns() "
            "WHERE schema_name = 'internal' AND column_name IN ('run_id', 'series_id')) "
            # No sample has its rows, and DuckDB plans no scan of an empty table.
            "AND table_name <> 'compiler_pass_steps' ORDER BY ALL"
        )
        of_modules = [f"internal.{name}" for name in columns["view"].to_pylist()]
        found = {view: list(scans(f"SELECT * FROM {view} WHERE {asked}")) for view in of_modules}
        without = {
            view: [table for table, filters in tables if "module_id = " not in filters]
            for view, tables in found.items()
        }
        of_metric = list(
            scans(f"SELECT * FROM internal.metrics WHERE metric = 'temp_bytes' AND {asked}")
        )
    assert all(found.values())
    assert {view: tables for view, tables in without.items() if tables} == {}
    # A filter on a metric leaves one scan.
    assert [table.rpartition(".")[2] for table, _ in of_metric] == ["module_memory"]
