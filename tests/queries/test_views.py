"""The canned views: documented, portable, and what they say adds up."""

import json
from contextlib import closing
from itertools import pairwise

import pytest
import sqlglot

from memhouse.queries.catalogue import public_views, use_views, views
from memhouse.queries.dictionary import data_dictionary
from memhouse.schema.stores.duckdb import open_store
from memhouse.schema.tables import METRICS

from ..support.command import run_memhouse
from ..support.dumps import DATA
from ..support.warehouse import everything, rows

VIEWS = list(views())
every_view = pytest.mark.parametrize("view", VIEWS)


@every_view
def test_every_column_is_documented_in_its_order(filled, view):
    columns = [row[0] for row in rows(filled, f"DESCRIBE {view}")]
    assert list(views()[view].columns) == columns
    assert views()[view].answers.endswith((".", "?"))
    assert views()[view].description


@every_view
def test_documentation_is_stored(filled, view):
    query = f"SELECT comment FROM duckdb_views() WHERE view_name = '{view}'"
    ((stored,),) = rows(filled, query)
    answers, columns = stored.split("\n\n")
    assert answers == views()[view].answers
    assert dict(line.split(": ", 1) for line in columns.splitlines()) == views()[view].columns


@every_view
@pytest.mark.parametrize("dialect", ["spark", "postgres"])
def test_every_view_goes_to_other_databases(view, dialect):
    (there,) = sqlglot.transpile(
        views()[view].sql,
        read="duckdb",
        write=dialect,
        unsupported_level=sqlglot.ErrorLevel.RAISE,
    )
    assert sqlglot.parse_one(there, read=dialect)


@every_view
def test_every_view_runs_on_an_empty_warehouse(db, view):
    with closing(open_store(str(db), create=True)) as store:
        use_views(store, read_only=False)
    if view == "_devices":  # A table of facts: `tests/queries/test_kernels.py`.
        return
    expected = [(metric,) for metric in METRICS] if view == "_metric_names" else []
    assert rows(db, f"SELECT * FROM {view}") == expected


@every_view
def test_every_view_has_rows(history, view):
    assert rows(history, f"SELECT COUNT(*) FROM {view}") != [(0,)]


def test_the_data_dictionary_is_current():
    there = (DATA.parent.parent / "docs/data-dictionary.md").read_text()
    assert there == data_dictionary(), "run `make docs`"


def test_helpers_are_not_listed():
    assert set(VIEWS) - set(public_views()) == {name for name in VIEWS if name.startswith("_")}


def test_a_store_open_for_reading_gets_this_versions_views(copied):
    spoil(copied)
    with closing(open_store(str(copied), read_only=True)) as store:
        use_views(store, read_only=True)
        assert store.rows("SELECT COUNT(*) AS n FROM peaks")["n"].to_pylist()[0] > 20
    assert rows(copied, "SELECT * FROM view_set") == [("another",)]


def test_reading_takes_this_versions_views(copied):
    spoil(copied)
    before = everything(copied)
    run = run_memhouse("peaks", "--db", copied, "--format", "csv")
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) > 20
    assert everything(copied) == before


def test_writing_stores_this_versions_views(copied):
    spoil(copied)
    with closing(open_store(str(copied))) as store:
        use_views(store, read_only=False)
    assert rows(copied, "SELECT * FROM view_set") != [("another",)]
    assert rows(copied, "SELECT COUNT(*) FROM peaks")[0][0] > 20


def spoil(db):
    """Make it a warehouse that another version of memhouse wrote."""
    with closing(open_store(str(db))) as store:
        store.execute(
            "CREATE OR REPLACE VIEW peaks AS SELECT 1 AS other; "
            "UPDATE view_set SET digest = 'another'"
        )


# What each of these counts, by module and memory space, is the peak.
@pytest.mark.parametrize(
    "view", ["peak_buffers", "memory_by_op", "memory_by_source", "memory_by_scope WHERE depth = 0"]
)
def test_the_peak_is_accounted_for(filled, view):
    counted = dict_of(
        rows(
            filled,
            "SELECT module_id, memory_space, SUM(counted_bytes), SUM(share) "
            f"FROM {view} GROUP BY ALL",
        )
    )
    peaks = rows(
        filled,
        "SELECT module_id, memory_space, peak_bytes FROM module_memory WHERE peak_bytes > 0",
    )
    assert len(peaks) > 30
    for module_id, memory_space, peak_bytes in peaks:
        found, share = counted[module_id, memory_space]
        assert found == peak_bytes
        assert share == pytest.approx(1)


def dict_of(found):
    return {(module_id, memory_space): rest for module_id, memory_space, *rest in found}


def test_padding_at_the_peak_is_that_of_its_buffers(filled):
    query = "SELECT module_id, memory_space, {} GROUP BY ALL ORDER BY ALL"
    by_buffer = rows(filled, query.format("CAST(SUM(padding_bytes) AS BIGINT) FROM peak_buffers"))
    by_module = rows(
        filled,
        query.format("SUM(padding_bytes) FROM module_memory WHERE peak_bytes > 0"),
    )
    assert by_buffer == by_module


def test_ranks_of_buffers_run_from_the_largest(filled):
    found = rows(
        filled,
        "SELECT module_id, memory_space, rank, counted_bytes, running_bytes FROM peak_buffers "
        "ORDER BY 1, 2, 3",
    )
    before = None
    for module_id, memory_space, rank, counted, running in found:
        if (module_id, memory_space) != (before and before[:2]):
            before = (module_id, memory_space, 0, counted, 0)
        assert rank == before[2] + 1
        assert counted <= before[3]
        assert running == before[4] + counted
        before = (module_id, memory_space, rank, counted, running)


def test_the_timeline_covers_the_schedule_and_reaches_the_peak(filled):
    found = rows(
        filled,
        "SELECT MIN(start_time), MAX(end_time), SUM(end_time - start_time + 1), "
        "  MAX(occupied_bytes), ANY_VALUE(schedule_length), ANY_VALUE(peak_bytes) "
        "FROM timeline INNER JOIN modules USING (module_id) "
        "INNER JOIN module_memory USING (module_id, memory_space) "
        "GROUP BY module_id, memory_space",
    )
    assert len(found) > 30
    for first, last, covered, most, length, peak in found:
        assert (first, last, covered) == (0, length - 1, length)
        assert most == peak


def test_fragmentation_is_what_a_temp_allocation_leaves_free(filled):
    for size, most, wasted, share in rows(
        filled, "SELECT size_bytes, live_bound_bytes, packing_bytes, wasted FROM fragmentation"
    ):
        assert wasted == size - most >= 0
        assert share == pytest.approx(wasted / size)


def test_padding_is_size_less_elements(filled):
    found = rows(filled, "SELECT size_bytes, logical_bytes, padding_bytes FROM padding")
    assert all(padding == size - logical > 0 for size, logical, padding in found)


def test_scopes_hold_what_is_under_them(filled):
    # Of each module and pass the rows of one depth are never more than those above.
    found = rows(
        filled,
        "SELECT module_id, memory_space, pass, depth, SUM(counted_bytes) FROM memory_by_scope "
        "GROUP BY ALL ORDER BY ALL",
    )
    for above, below in pairwise(found):
        if above[:3] == below[:3]:
            assert above[3] + 1 == below[3]
            assert above[4] >= below[4]


def test_the_flash_kernel_could_donate_its_arguments(filled):
    query = """SELECT argument_name, size_bytes FROM missed_donations
        INNER JOIN dumps USING (module_id) WHERE workload = 'flash-v5e' ORDER BY 1"""
    assert rows(filled, query) == [("k", 2**24), ("q", 2**24), ("v", 2**24)]


def test_seed_002_misses_no_donation(filled):
    query = """SELECT COUNT(*) FROM missed_donations INNER JOIN dumps USING (module_id)
        WHERE starts_with(module_name, '002')"""
    assert rows(filled, query) == [(0,)]


def test_without_history_there_is_no_trend(filled):
    changes = rows(
        filled,
        "SELECT DISTINCT previous_run_id, previous_bytes, change_bytes, change_pct FROM trends",
    )
    assert changes == [(None, None, None, None)]
    assert rows(filled, "SELECT * FROM regressions") == []


def test_runs_are_summed_up(filled):
    query = "SELECT run_id, workloads, dumps, incomplete, oom FROM runs_summary ORDER BY 1"
    assert rows(filled, query) == [
        ("cpu", 4, 11, 0, 0),
        ("gpu", 1, 1, 0, 0),
        ("seeds", 1, 5, 0, 0),
        ("tpu", 6, 6, 0, 1),
    ]


def test_the_catalogue_reads_like_the_files():
    with_columns = public_views()["peaks"]
    assert with_columns.answers.startswith("What each dumped module needs")
    assert with_columns.columns["memory_space"].startswith("XLA's number of the space")
    assert with_columns.sql.startswith("SELECT")


def test_views_can_be_read_while_another_reads(filled):
    with (
        closing(open_store(str(filled), read_only=True)),
        closing(open_store(str(filled), read_only=True)) as second,
    ):
        assert second.rows("SELECT COUNT(*) AS n FROM peaks")["n"].to_pylist()[0] > 30


# --- metrics ------------------------------------------------------------------------------


def test_the_metrics_are_those_of_the_schema(filled):
    names = rows(filled, "SELECT metric FROM _metric_names")
    assert [name for (name,) in names] == list(METRICS)
    found = rows(filled, "SELECT DISTINCT metric FROM metrics ORDER BY ALL")
    assert [name for (name,) in found] == sorted(METRICS)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_a_column_of_module_memory(filled, metric):
    query = "SELECT module_id, memory_space, {} ORDER BY ALL"
    found = rows(filled, query.format(f"value_bytes FROM metrics WHERE metric = '{metric}'"))
    assert len(found) > 30
    assert found == rows(filled, query.format(f"{metric} FROM module_memory"))


def test_a_filter_on_metric_leaves_one_scan(filled):
    where = f"metric = 'temp_bytes' AND module_id = {llama(filled)}"
    ((table, filters),) = scans(filled, f"SELECT * FROM metrics WHERE {where}")
    assert table.endswith("module_memory")
    assert "module_id = " in filters


OF_MODULES = [
    name
    for name, view in public_views().items()
    if "module_id" in view.columns and "run_id" not in view.columns
]


@pytest.mark.parametrize("view", OF_MODULES)
def test_a_filter_on_one_module_reaches_every_scan(filled, view):
    found = scans(filled, f"SELECT * FROM {view} WHERE module_id = {llama(filled)}")
    assert len(found) > 0
    assert [table for table, filters in found if "module_id = " not in filters] == []


def llama(db):
    ((module_id,),) = rows(db, "SELECT module_id FROM dumps WHERE workload = 'llama-v5e'")
    return module_id


def scans(db, query):
    """The tables that a query reads, each with the filters on its scan and right above it."""
    ((_, plan),) = rows(db, f"EXPLAIN (FORMAT JSON) {query}")
    steps = [(step, "") for step in json.loads(plan)]
    found = []
    while steps:
        step, above = steps.pop()
        details = step["extra_info"]
        if "Table" in details:
            found.append((details["Table"], f"{details.get('Filters')} {above}"))
        here = str(details["Expression"]) if step["name"] == "FILTER" else ""
        steps += [(below, here) for below in step["children"]]
    return found


def test_trends_have_a_row_for_each_dump_space_and_metric(history):
    by_metric = rows(history, "SELECT metric, COUNT(*) FROM trends GROUP BY ALL ORDER BY ALL")
    ((dumped,),) = rows(
        history, "SELECT COUNT(*) FROM dumps INNER JOIN module_memory USING (module_id)"
    )
    assert by_metric == [(metric, dumped) for metric in sorted(METRICS)]


def test_a_dump_without_figures_has_a_row_for_each_metric(own):
    with closing(open_store(str(own))) as store:
        store.execute(
            "UPDATE dumps SET module_id = NULL, status = 'failed' "
            "WHERE run_id = '2026-10-05' AND workload = 'llama-v5e'"
        )
        store.work_out_history()
    found = rows(
        own,
        "SELECT metric, memory_space, value_bytes, previous_run_id, best_bytes, is_last "
        "FROM trends WHERE run_id = '2026-10-05' AND workload = 'llama-v5e' ORDER BY 1",
    )
    assert found == [(metric, 0, None, None, None, False) for metric in sorted(METRICS)]
    after = rows(
        own,
        "SELECT DISTINCT previous_run_id, missed_runs FROM trends "
        "WHERE run_id = '2026-10-06' AND workload = 'llama-v5e'",
    )
    assert after == [("2026-10-04", 1)]
