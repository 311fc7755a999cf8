"""The canned views: documented, of this version, and quick to ask of one module."""

import json
from contextlib import closing

from memhouse.queries.catalogue import macro_columns, public_macros, public_views, use_views, views
from memhouse.schema.stores.duckdb import open_file

from ..support.command import run_memhouse
from ..support.warehouse import everything, reading, rows


def test_every_view_and_column_is_documented_in_the_warehouse(filled):
    stored = dict(rows(filled, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"))
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = "
    for name, view in public_views().items():
        assert list(view.columns) == [row[0] for row in rows(filled, f"DESCRIBE {name}")], name
        assert view.answers.endswith((".", "?")), name
        assert view.description, name
        assert stored[name] == view.answers
        columns = rows(filled, f"{query}'{name}' ORDER BY column_index")
        assert columns == list(view.columns.items()), name
    assert stored.keys() - {"instructions"} == views().keys()
    for name, macro in public_macros().items():
        columns = macro_columns(macro)
        if macro.is_table:
            given = ", ".join("NULL" for _ in macro.parameters)
            called = rows(filled, f"DESCRIBE FROM {name}({given})")
            assert list(columns) == [row[0] for row in called], name
        assert macro.notes.keys() <= macro.parameters.keys() | columns.keys(), name


def test_views_of_another_version_are_replaced_but_only_stored_by_who_writes(copied):
    with closing(open_file(str(copied))) as store:
        store.execute(
            "CREATE OR REPLACE VIEW peaks AS SELECT 1 AS other; "
            "UPDATE view_set SET digest = 'another'"
        )
    before = everything(copied)
    run = run_memhouse("peaks", "--db", copied, "--format", "csv")
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) > 20
    # Two readers at once, too.
    with reading(copied) as one, closing(open_file(str(copied), read_only=True)) as other:
        use_views(other, read_only=True)
        for store in (one, other):
            assert store.rows("SELECT COUNT(*) AS n FROM peaks")["n"].to_pylist()[0] > 20
    assert everything(copied) == before
    with closing(open_file(str(copied))) as store:
        use_views(store, read_only=False)
    assert rows(copied, "SELECT * FROM view_set") != [("another",)]
    assert rows(copied, "SELECT COUNT(*) FROM peaks")[0][0] > 20


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

        of_modules = [name for name in views() if name.startswith("_module_")]
        # No sample has its rows, and DuckDB plans no scan of an empty table.
        of_modules.remove("_module_pass_steps")
        found = {view: list(scans(f"SELECT * FROM {view} WHERE {asked}")) for view in of_modules}
        without = {
            view: [table for table, filters in tables if "module_id = " not in filters]
            for view, tables in found.items()
        }
        of_metric = list(
            scans(f"SELECT * FROM _module_metrics WHERE metric = 'temp_bytes' AND {asked}")
        )
    assert all(found.values())
    # The depth of scopes is that of the whole warehouse.
    whole = {view: tables for view, tables in without.items() if tables}
    assert list(whole) == ["_module_memory_by_scope"]
    assert [table.rpartition(".")[2] for table in whole.popitem()[1]] == ["scopes"]
    # A filter on a metric leaves one scan.
    assert [table.rpartition(".")[2] for table, _ in of_metric] == ["module_memory"]
