"""The Python face: `memhouse.open`, queries to Arrow, pandas and polars, `ingest`."""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import memhouse

from .support.dumps import copy_dump
from .support.warehouse import rows

PEAKS = (
    "SELECT workload, peak_bytes FROM peaks_by_space AS peaks "
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


def test_a_query_as_arrow_pandas_and_polars_outlives_the_warehouse(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(PEAKS, ["llama-v5e%"])
    assert isinstance(found.arrow(), pa.Table)
    assert found.arrow().schema.field("peak_bytes").type == pa.int64()
    assert found.arrow().to_pylist() == LLAMA
    assert isinstance(found.df(), pd.DataFrame)
    assert found.df().to_dict("records") == LLAMA
    assert isinstance(found.pl(), pl.DataFrame)
    assert found.pl().to_dicts() == LLAMA


def test_two_can_read_at_once_and_a_url_names_a_warehouse_too(filled):
    with (
        memhouse.open(filled, read_only=True) as one,
        memhouse.open(f"duckdb:///{filled}", read_only=True) as other,
    ):
        count = "SELECT COUNT(*) AS n FROM modules"
        assert one.sql(count).arrow() == other.sql(count).arrow()
        assert len(other.sql("SELECT * FROM runs WHERE run_id = $1", ["nope"])) == 0


# --- writing --------------------------------------------------------------------------------


def test_ingest_makes_a_warehouse_and_a_run_which_stays(db, dump):
    with memhouse.open(db) as warehouse:
        assert len(warehouse.sql("SELECT * FROM runs")) == 0
        summary = warehouse.ingest(dump)
        assert (summary.run_id, summary.dumps, summary.new_modules) == ("night", 1, 1)
        assert summary.problems == []
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.sql("SELECT run_id, workload, peak_bytes FROM peaks").arrow()
    assert found.to_pylist() == [{"run_id": "night", "workload": "mixed", "peak_bytes": 148052}]


def test_a_run_has_a_name_a_time_and_labels(db, dump):
    at = datetime(2026, 10, 1, 3, tzinfo=timezone(timedelta(hours=2)))
    with memhouse.open(db) as warehouse:
        warehouse.ingest(str(dump), run="mine", at=at, labels={"branch": "main", "jax": "0.10.2"})
        found = warehouse.sql("SELECT run_id, run_at, source, tool_version FROM runs").arrow()
        labels = warehouse.sql("SELECT key, value FROM run_labels ORDER BY 1").arrow()
    (run,) = found.to_pylist()
    assert (run["run_id"], run["source"]) == ("mine", str(dump))
    assert run["run_at"] == datetime(2026, 10, 1, 1)
    assert run["tool_version"] == memhouse.__version__
    assert labels.to_pylist() == [
        {"key": "branch", "value": "main"},
        {"key": "jax", "value": "0.10.2"},
    ]


def test_a_time_without_a_zone_is_utc_wherever_it_runs(db, dump, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        with memhouse.open(db) as warehouse:
            warehouse.ingest(dump, at=datetime(2026, 10, 1, 3))
    finally:
        monkeypatch.undo()
        time.tzset()
    expected = datetime(2026, 10, 1, 3, tzinfo=UTC).timestamp()
    assert rows(db, "SELECT EPOCH(run_at) FROM runs") == [(expected,)]


def test_problems_are_told_not_raised(db, tmp_path):
    with memhouse.open(db) as warehouse:
        summary = warehouse.ingest(tmp_path / "nothing")
    (problem,) = summary.problems
    assert summary.dumps == 0
    assert problem.startswith(str(tmp_path / "nothing"))


# --- errors ---------------------------------------------------------------------------------


def test_what_is_no_warehouse_is_refused_and_named(tmp_path):
    none, no_folder = tmp_path / "none.duckdb", tmp_path / "no" / "folder.duckdb"
    for options, path in (({"read_only": True}, none), ({}, no_folder)):
        with pytest.raises(memhouse.WarehouseError, match=path.parent.name):
            memhouse.open(path, **options)
    assert list(tmp_path.iterdir()) == []
    other, text = tmp_path / "other.duckdb", tmp_path / "text.duckdb"
    duckdb.connect(str(other)).execute("CREATE TABLE t (a INT)").close()
    text.write_text("no database")
    for name in (other, text, "postgresql://localhost/x"):
        with pytest.raises(memhouse.WarehouseError, match=str(name).partition(":")[0]):
            memhouse.open(name)


def test_a_wrong_query_raises_memhouses_own_error(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        with pytest.raises(memhouse.QueryError, match="no_such_table"):
            warehouse.sql("SELECT * FROM no_such_table")
        assert len(warehouse.sql("SELECT 1")) == 1


def test_read_only_writes_nothing(copied, dump):
    with memhouse.open(copied, read_only=True) as warehouse:
        with pytest.raises(memhouse.QueryError):
            warehouse.sql("DELETE FROM runs", write=True)
        with pytest.raises(Exception, match="read-only"):
            warehouse.ingest(dump)
        assert len(warehouse.sql("SELECT * FROM runs")) == 4


WRONG = {
    "module": lambda w: w.owners("gone"),
    "several": lambda w: w.buffers("jit_mixed"),
    "metric": lambda w: w.trends(metric="size"),
    "since": lambda w: w.trends(since="soon"),
    "diff": lambda w: w.diff("tpu", "gone"),
    "run": lambda w: w.check("gone"),
    "limits": lambda w: w.check(limits="gone.toml"),
    "bucket": lambda w: w.ingest("s3://bucket/dumps"),
    "no path": lambda w: w.ingest(""),
    "prune": lambda w: w.prune(),
    "keep": lambda w: w.prune(keep="90"),
    "view": lambda w: w.export("nope", "x.csv"),
}


def test_a_wrong_argument_is_a_usage_error(filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = {}
    with memhouse.open(filled, read_only=True) as warehouse:
        for name, ask in WRONG.items():
            try:
                ask(warehouse)
                arguments[name] = "no error"
            except memhouse.UsageError as error:
                arguments[name] = error.argument
    assert "no error" not in arguments.values(), arguments
    assert {name: arguments[name] for name in ("metric", "since", "keep")} == {
        "metric": "metric",
        "since": "since",
        "keep": "keep",
    }
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_memhouses_own_error(filled, tmp_path):
    (tmp_path / "x.csv").mkdir()
    with (
        memhouse.open(filled, read_only=True) as warehouse,
        pytest.raises(memhouse.FileError, match=r"x\.csv"),
    ):
        warehouse.export("peaks", tmp_path / "x.csv")


def test_without_the_package_it_says_what_to_install(filled, monkeypatch):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.runs()
    for package, method in (("pandas", "df"), ("polars", "pl")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(memhouse.MissingPackageError, match=f"pip install {package}") as raised:
            getattr(found, method)()
        assert isinstance(raised.value, ImportError)


# --- writing without a word ------------------------------------------------------------------


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


def test_what_writes_prints_nothing(db, dump, tmp_path, capfd):
    with memhouse.open(db) as warehouse:
        warehouse.ingest(dump, run="one")
        warehouse.accept(warehouse.check(), "we know")
        assert warehouse.export("peaks", tmp_path / "peaks.csv").rows == 1
        assert warehouse.prune(["one"]).run_ids == ["one"]
    assert capfd.readouterr() == ("", "")


# --- in a notebook: `test_notebook_outputs.py` has more --------------------------------------


def test_what_a_notebook_shows_is_escaped(nightly):
    query = "SELECT '<script>x</script>' || chr(27) AS \"<b>\""
    shown = nightly.sql(query)._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert "\x1b" not in shown


# --- closing --------------------------------------------------------------------------------


def test_a_with_statement_closes_after_an_error_too(db, dump):
    def ingest_and_fail():
        with memhouse.open(db) as warehouse:
            kept.append(warehouse)
            warehouse.ingest(dump)
            raise ZeroDivisionError

    kept = []
    with pytest.raises(ZeroDivisionError):
        ingest_and_fail()
    with pytest.raises(Exception, match=r"(?i)closed"):
        kept[0].sql("SELECT 1")
    # The file is free for another process, and what was ingested is there.
    with duckdb.connect(str(db)) as other:
        assert other.sql("SELECT COUNT(*) FROM runs").fetchall() == [(1,)]


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
