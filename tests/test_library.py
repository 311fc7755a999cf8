"""The Python face: `memhouse.open`, queries to Arrow, pandas and polars, `ingest`."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import memhouse

from .support.dumps import DUMPS, copy_dump
from .support.warehouse import rows

PEAKS = (
    "SELECT workload, peak_bytes FROM peaks "
    "WHERE run_id = 'tpu' AND memory_space = 0 AND workload LIKE $1 ORDER BY 1"
)
LLAMA = [
    {"workload": "llama-v5e", "peak_bytes": 321896448},
    {"workload": "llama-v5e-jax0.7.0", "peak_bytes": 321896448},
]


@pytest.fixture
def dump(tmp_path):
    return copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night" / "mixed").parent


# --- reading --------------------------------------------------------------------------------


def test_a_query_as_arrow(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(PEAKS, ["llama-v5e%"]).arrow()
    assert isinstance(found, pa.Table)
    assert found.schema.field("peak_bytes").type == pa.int64()
    assert found.to_pylist() == LLAMA


def test_a_query_as_a_pandas_frame(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(PEAKS, ["llama-v5e%"]).df()
    assert isinstance(found, pd.DataFrame)
    assert found.to_dict("records") == LLAMA


def test_a_query_as_a_polars_frame(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(PEAKS, ["llama-v5e%"]).pl()
    assert isinstance(found, pl.DataFrame)
    assert found.to_dicts() == LLAMA


def test_the_rows_can_be_counted(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        assert len(warehouse.sql("SELECT * FROM runs")) == 4
        assert len(warehouse.sql("SELECT * FROM runs WHERE run_id = $1", ["nope"])) == 0


def test_rows_outlive_the_warehouse(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(PEAKS, ["llama-v5e"])
    assert found.arrow().to_pylist() == LLAMA[:1]
    assert found.pl().to_dicts() == LLAMA[:1]


def test_every_view_can_be_a_frame(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        for view in ("peaks", "peak_buffers", "trends", "memory_by_scope", "runs_summary"):
            found = warehouse.sql(f"SELECT * FROM {view}")
            assert len(found.df()) == len(found.pl()) == len(found) > 0


def test_two_can_read_at_once(filled):
    with (
        memhouse.open(filled, read_only=True) as one,
        memhouse.open(str(filled), read_only=True) as other,
    ):
        count = "SELECT COUNT(*) AS n FROM modules"
        assert one.sql(count).arrow() == other.sql(count).arrow()


def test_a_url_names_a_warehouse_too(filled):
    with memhouse.open(f"duckdb:///{filled}", read_only=True) as warehouse:
        assert len(warehouse.sql("SELECT * FROM runs")) == 4


# --- writing --------------------------------------------------------------------------------


def test_ingest_makes_a_warehouse_and_a_run(db, dump):
    with memhouse.open(db) as warehouse:
        assert len(warehouse.sql("SELECT * FROM runs")) == 0
        summary = warehouse.ingest(dump)
        assert (summary.run_id, summary.dumps, summary.new_modules) == ("night", 1, 1)
        assert summary.problems == []
        found = warehouse.sql("SELECT run_id, workload, peak_bytes FROM peaks").arrow()
    assert found.to_pylist() == [{"run_id": "night", "workload": "mixed", "peak_bytes": 148052}]


def test_what_was_ingested_stays(db, dump):
    with memhouse.open(db) as warehouse:
        warehouse.ingest(dump)
    with memhouse.open(db, read_only=True) as warehouse:
        assert len(warehouse.sql("SELECT * FROM peaks")) == 1


def test_a_run_has_a_name_a_time_and_labels(db, dump):
    at = datetime(2026, 10, 1, 3, tzinfo=timezone(timedelta(hours=2)))
    with memhouse.open(db) as warehouse:
        warehouse.ingest(str(dump), run="mine", at=at, labels={"branch": "main", "jax": "0.10.2"})
        found = warehouse.sql("SELECT run_id, run_at, source, tool_version FROM runs").arrow()
        labels = warehouse.sql("SELECT key, value FROM run_labels ORDER BY 1").arrow()
    (run,) = found.to_pylist()
    assert (run["run_id"], run["source"]) == ("mine", str(dump))
    assert run["run_at"] == datetime(2026, 10, 1, 1, tzinfo=UTC)
    assert run["tool_version"] == memhouse.__version__
    assert labels.to_pylist() == [
        {"key": "branch", "value": "main"},
        {"key": "jax", "value": "0.10.2"},
    ]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_time_without_a_zone_is_utc_wherever_it_runs(db, dump, zone):
    script = (
        "import memhouse, datetime\n"
        f"with memhouse.open({str(db)!r}) as warehouse:\n"
        f"    warehouse.ingest({str(dump)!r}, at=datetime.datetime(2026, 10, 1, 3))\n"
    )
    subprocess.run([sys.executable, "-c", script], env={"TZ": zone}, check=True, timeout=60)
    expected = datetime(2026, 10, 1, 3, tzinfo=UTC).timestamp()
    assert rows(db, "SELECT EPOCH(run_at) FROM runs") == [(expected,)]


def test_several_jobs_read_the_same(db, tmp_path):
    with memhouse.open(db) as warehouse:
        summary = warehouse.ingest(DUMPS / "cpu", run="2026-10-01", jobs=2)
        assert (summary.dumps, summary.new_modules, summary.problems) == (11, 11, [])
        two = warehouse.sql("SELECT * FROM peaks ORDER BY dump_id").arrow()
    with memhouse.open(tmp_path / "other.duckdb") as warehouse:
        warehouse.ingest(DUMPS / "cpu", run="2026-10-01")
        assert warehouse.sql("SELECT * FROM peaks ORDER BY dump_id").arrow() == two


def test_problems_are_told_not_raised(db, tmp_path):
    with memhouse.open(db) as warehouse:
        summary = warehouse.ingest(tmp_path / "nothing")
        assert summary.dumps == 0
        assert summary.problems == [f"{tmp_path / 'nothing'}: there is no such file or folder"]


# --- errors ---------------------------------------------------------------------------------


def test_a_warehouse_to_read_must_be_there(tmp_path):
    with pytest.raises(
        memhouse.WarehouseError, match=r"there is no warehouse at .*none\.duckdb: make one"
    ):
        memhouse.open(tmp_path / "none.duckdb", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_needs_a_folder(tmp_path):
    with pytest.raises(memhouse.WarehouseError, match="there is no folder"):
        memhouse.open(tmp_path / "no" / "folder.duckdb")


def test_what_is_no_warehouse_is_refused(tmp_path):
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).execute("CREATE TABLE t (a INT)").close()
    with pytest.raises(
        memhouse.WarehouseError, match="not a warehouse of memhouse: name another file"
    ):
        memhouse.open(other)
    text = tmp_path / "text.duckdb"
    text.write_text("no database")
    with pytest.raises(memhouse.WarehouseError, match="is not a DuckDB database"):
        memhouse.open(text)
    with pytest.raises(memhouse.WarehouseError, match="postgresql is not a store of memhouse"):
        memhouse.open("postgresql://localhost/x")


def test_a_wrong_query_raises_memhouses_own_error(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        with pytest.raises(memhouse.QueryError, match="no_such_table"):
            warehouse.sql("SELECT * FROM no_such_table")
        assert len(warehouse.sql("SELECT 1")) == 1


def test_read_only_writes_nothing(copied, dump):
    with memhouse.open(copied, read_only=True) as warehouse:
        with pytest.raises(memhouse.QueryError, match="was opened to read only: open it to write"):
            warehouse.sql("DELETE FROM runs", write=True)
        with pytest.raises(Exception, match="read-only"):
            warehouse.ingest(dump)
        assert len(warehouse.sql("SELECT * FROM runs")) == 4


WRONG = {
    "module": lambda w: w.owners("gone"),
    "several": lambda w: w.buffers("jit_mixed"),
    "timeline": lambda w: w.timeline("gone"),
    "metric": lambda w: w.trends(metric="size"),
    "since": lambda w: w.trends(since="soon"),
    "diff": lambda w: w.diff("tpu", "gone"),
    "workload": lambda w: w.diff("llama-v5e/jit", "llama-v5e-jax0.7.0", workload="x"),
    "run": lambda w: w.check("gone"),
    "baseline": lambda w: w.check(baseline="gone"),
    "both": lambda w: w.check(baseline="cpu", best=True),
    "growth": lambda w: w.check(max_growth=["lots"]),
    "limits": lambda w: w.check(limits="gone.toml"),
    "bucket": lambda w: w.ingest("s3://bucket/dumps"),
    "no path": lambda w: w.ingest(""),
    "prune": lambda w: w.prune(),
    "prune_run": lambda w: w.prune(["gone"]),
    "keep": lambda w: w.prune(keep="90"),
    "view": lambda w: w.export("nope", "x.csv"),
    "ending": lambda w: w.export("peaks", "x.xlsx"),
    "where": lambda w: w.export("peaks", "x.csv", where="a b"),
    "wide": lambda w: w.export("peaks", "x.csv", wide=True),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_usage_error(filled, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        memhouse.open(filled, read_only=True) as warehouse,
        pytest.raises(memhouse.UsageError) as raised,
    ):
        WRONG[name](warehouse)
    assert isinstance(raised.value, memhouse.MemhouseError)
    assert list(tmp_path.iterdir()) == []


def test_a_usage_error_names_the_argument(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        for call, argument in (("metric", "metric"), ("since", "since"), ("keep", "keep")):
            with pytest.raises(memhouse.UsageError) as raised:
                WRONG[call](warehouse)
            assert raised.value.argument == argument


def test_a_file_that_cannot_be_written_is_memhouses_own_error(filled, tmp_path):
    (tmp_path / "x.csv").mkdir()
    with (
        memhouse.open(filled, read_only=True) as warehouse,
        pytest.raises(memhouse.FileError, match=r"cannot write .*x\.csv: Is a directory"),
    ):
        warehouse.export("peaks", tmp_path / "x.csv")


@pytest.mark.parametrize(("package", "method"), [("pandas", "df"), ("polars", "pl")])
def test_without_the_package_it_says_what_to_install(filled, monkeypatch, package, method):
    monkeypatch.setitem(sys.modules, package, None)
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.runs()
    said = f"install {package} to get a data frame: pip install {package}"
    with pytest.raises(memhouse.MissingPackageError, match=said):
        getattr(found, method)()
    with pytest.raises(ImportError, match=said):
        getattr(found, method)()


# --- analyses -------------------------------------------------------------------------------

ANALYSES = {
    "runs": lambda w: w.runs(),
    "modules": lambda w: w.modules(run="2026-10-01"),
    "peaks": lambda w: w.peaks(workload="llama-v5e"),
    "fragmentation": lambda w: w.fragmentation(),
    "owners": lambda w: w.owners("llama-v5e"),
    "buffers": lambda w: w.buffers("llama-v5e", at=10),
    "donations": lambda w: w.donations("llama-v5e", run="2026-10-08"),
    "timeline": lambda w: w.timeline("llama-v5e", run="2026-10-01"),
    "trends": lambda w: w.trends(metric="temp"),
    "diff": lambda w: w.diff("2026-10-07", "2026-10-08"),
    "check": lambda w: w.check(max_growth=["2%"]),
    "verify": lambda w: w.verify(),
    "sql": lambda w: w.sql("SELECT * FROM metrics"),
}


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_converts_to_frames(nightly, name):
    found = ANALYSES[name](nightly)
    table = found.arrow()
    assert isinstance(table, pa.Table)
    assert len(found) == len(table) == len(found.df()) == len(found.pl())
    assert list(found.df().columns) == found.pl().columns == table.column_names
    assert (len(found) == 0) == (name == "verify")


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_prints_nothing(nightly, name, capfd):
    ANALYSES[name](nightly)._repr_html_()
    assert capfd.readouterr() == ("", "")


def test_what_writes_prints_nothing_either(db, dump, tmp_path, capfd):
    with memhouse.open(db) as warehouse:
        warehouse.ingest(dump, run="one")
        warehouse.accept(warehouse.check(), "we know")
        assert warehouse.export("peaks", tmp_path / "peaks.csv").rows == 1
        assert warehouse.prune(["one"]).run_ids == ["one"]
    assert capfd.readouterr() == ("", "")


def test_captions_say_what_is_shown(nightly):
    assert nightly.owners("llama-v5e").caption == "llama-v5e/jit_train_step of run 2026-10-10"
    assert nightly.check().rows.caption == "peak memory of 2026-10-10: 2 of 4 fail"


def test_a_check_can_be_accepted(own):
    with memhouse.open(own) as warehouse:
        found = warehouse.check("2026-10-08")
        assert not found.passes
        failing = ["llama-v5e", "resnet-h100", "decode-v5e"]
        assert [verdict.workload for verdict in found.breaches] == failing
        assert warehouse.accept(found, "a larger batch").passes
        assert warehouse.check("2026-10-08").passes


def test_trends_have_a_row_a_run_and_a_line_a_series(nightly):
    found = nightly.trends()
    assert len(found) == 39
    series = found.series.arrow().to_pylist()
    assert [row["workload"] for row in series] == [
        "decode-v5e", "llama-cpu", "llama-v5e", "resnet-h100",
    ]  # fmt: skip
    assert series[1]["trend"][6] is None
    assert len(series[1]["trend"]) == 10
    # Fourteen changes, and the night on which llama-cpu is missing.
    assert len(found.steps) == 15


# --- in a notebook --------------------------------------------------------------------------


def test_a_notebook_shows_a_table_with_human_sizes(nightly):
    shown = nightly.peaks(workload="llama-v5e")._repr_html_()
    assert '<th style="text-align: right">peak</th>' in shown
    assert '<td style="text-align: right">2.44 GiB</td>' in shown
    assert shown.count("<tr>") == 5


def test_a_notebook_shows_at_most_twenty_rows(nightly):
    shown = nightly.sql("SELECT range AS n FROM range(50)")._repr_html_()
    assert shown.count("<tr>") == 21
    assert "… and 30 more rows" in shown


def test_what_a_notebook_shows_is_escaped(nightly):
    query = "SELECT '<script>x</script>' || chr(27) AS \"<b>\""
    shown = nightly.sql(query)._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert "\x1b" not in shown


def test_no_rows_are_a_sentence(nightly):
    assert nightly.runs()._repr_html_().startswith("<table ")
    assert nightly.sql("SELECT 1 WHERE FALSE")._repr_html_() == "<p>no rows</p>"


def test_a_notebook_shows_all_tables_of_a_result(nightly):
    shown = nightly.diff("2026-10-07", "2026-10-08", workload="llama-v5e")._repr_html_()
    assert "<p>llama-v5e/jit_train_step: donation lost: 132 MiB of m, v, p</p>" in shown
    assert shown.count("<table ") == 2
    assert "▁▁▂▂▁▂▂▂▂█" in nightly.trends()._repr_html_()


# --- closing --------------------------------------------------------------------------------


def test_a_with_statement_closes(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        pass
    with pytest.raises(Exception, match=r"(?i)closed"):
        warehouse.sql("SELECT 1")


def test_a_with_statement_closes_after_an_error(db, dump):
    def ingest_and_fail():
        with memhouse.open(db) as warehouse:
            warehouse.ingest(dump)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ingest_and_fail()
    # The file is free for another process, and what was ingested is there.
    assert rows(db, "SELECT COUNT(*) FROM runs") == [(1,)]


def test_close_lets_go_of_the_file(db):
    warehouse = memhouse.open(db)
    warehouse.close()
    duckdb.connect(str(db), read_only=True).close()


# --- importing ------------------------------------------------------------------------------


def test_importing_it_is_light():
    heavy = ("duckdb", "pyarrow", "sqlalchemy", "rich", "typer")
    script = f"import sys, memhouse; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_night_of_failed_dumps_into_memory(tmp_path):
    """A warehouse in memory has one connection: nothing may be asked in the midst of a write."""
    night = tmp_path / "night"
    night.mkdir()
    (night / "module_0001.jit_f.cl_1.after_optimizations-live-range.txt").write_text("rubbish\n")
    with memhouse.open("duckdb:///:memory:") as warehouse:
        assert warehouse.ingest(night).failed == 1
        found = warehouse.sql("SELECT run_id, status FROM dumps").arrow().to_pylist()
    assert found == [{"run_id": "night", "status": "failed"}]
