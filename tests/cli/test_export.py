"""`memhouse export`: what is in the file is what the view says, whole or not at all."""

import csv
import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memhouse.queries.catalogue import public_views
from memhouse.schema.metric_names import METRICS

from ..support.command import run_memhouse
from ..support.history import copy_night
from ..support.warehouse import fill, rows

ENDINGS = ["csv", "json", "parquet", "arrow"]


@pytest.fixture(scope="session")
def small(nights, tmp_path_factory):
    """Two nights of decoding, and a training step in the first: every view has a row."""
    folder = tmp_path_factory.mktemp("small")
    chosen = {"2026-10-06": ["decode-v5e", "llama-cpu"], "2026-10-07": ["decode-v5e"]}
    for night, workloads in chosen.items():
        for workload in workloads:
            copy_night(nights / night / workload, folder / night / workload)
        fill(folder / "small.duckdb", folder / night)
    return folder / "small.duckdb"


def export(db, view, file, *args):
    done = run_memhouse("export", view, file, "--db", db, *args)
    assert (done.returncode, done.stdout) == (0, "")
    return read(file)


def read(file) -> list[dict]:
    """The rows of a file of any format."""
    if file.suffix == ".csv":
        with file.open(newline="") as stream:
            return list(csv.DictReader(stream))
    if file.suffix == ".json":
        return json.loads(file.read_text())
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()
    return pa.ipc.open_file(file).read_all().to_pylist()


def view_rows(db, view: str, clause: str = "") -> list[dict]:
    names = [name for (name,) in rows(db, f'SELECT column_name FROM (DESCRIBE "{view}")')]
    found = rows(db, f'SELECT * FROM "{view}" {clause}')
    return [dict(zip(names, row, strict=True)) for row in found]


def as_text(value) -> str:
    """A value as csv has it; null is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def normal(table: list[dict]) -> list[tuple]:
    """Rows whose order and whose way to write numbers and times does not matter."""

    def plain(value):
        if isinstance(value, str):
            for read_as in (float, datetime.fromisoformat):
                try:
                    value = read_as(value)
                    break
                except ValueError:
                    continue
        if isinstance(value, datetime):
            return value.timestamp()
        # Sums of shares differ in the last digits from one query to the next.
        return float(f"{value:.10g}") if isinstance(value, int | float) else value

    return sorted((tuple(plain(v) for v in row.values()) for row in table), key=repr)


# --- round trips --------------------------------------------------------------------------


@pytest.mark.parametrize("view", public_views())
def test_every_format_has_the_rows_of_the_view(small, tmp_path, view):
    expected = view_rows(small, view)
    assert expected
    for ending in ("json", "parquet", "arrow"):
        found = export(small, view, tmp_path / f"rows.{ending}")
        assert list(found[0]) == list(expected[0])
        assert normal(found) == normal(expected), ending
    found = export(small, view, tmp_path / "rows.csv")
    assert list(found[0]) == list(expected[0])
    texts = [{name: as_text(value) for name, value in row.items()} for row in expected]
    assert normal(found) == normal(texts)


@pytest.mark.parametrize("table", ["values", "dumps", "runs", "compiler_flags"])
def test_a_table_can_be_exported_too(small, tmp_path, table):
    found = export(small, table, tmp_path / "rows.parquet")
    assert normal(found) == normal(view_rows(small, table)) != []


def test_types_survive_where_the_format_has_them(history, tmp_path):
    export(history, "trends", tmp_path / "t.parquet")
    export(history, "trends", tmp_path / "t.arrow")
    of_parquet = pq.read_schema(tmp_path / "t.parquet")
    of_arrow = pa.ipc.open_file(tmp_path / "t.arrow").schema
    for schema in (of_parquet, of_arrow):
        assert schema.field("value_bytes").type == pa.int64()
        assert schema.field("change_pct").type == pa.float64()
        assert schema.field("content_changed").type == pa.bool_()
        assert pa.types.is_timestamp(schema.field("run_at").type)


def test_the_count_is_told(history, tmp_path):
    file = tmp_path / "trends.csv"
    done = run_memhouse("export", "trends", file, "--db", history)
    (count,) = rows(history, "SELECT COUNT(*) FROM trends")[0]
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{file}: {count} rows of trends\n"


def test_times_are_utc_wherever_it_runs(history, tmp_path):
    file = tmp_path / "runs.csv"
    run_memhouse("export", "runs_summary", file, "--db", history, env={"TZ": "America/New_York"})
    assert "2026-10-01T00:00:00+00:00" in file.read_text()


def test_no_rows_are_a_whole_file(history, tmp_path):
    for ending in ENDINGS:
        file = tmp_path / f"none.{ending}"
        assert export(history, "trends", file, "--where", "FALSE") == []
    assert (tmp_path / "none.csv").read_text().startswith("run_id,run_at,run_number,branch,")
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_a_file_is_replaced(history, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("old\n")
    assert len(export(history, "runs_summary", file)) == 10


# --- which rows ---------------------------------------------------------------------------


def test_wide_trends_have_a_column_for_each_metric(history, tmp_path):
    long = export(history, "trends", tmp_path / "long.parquet")
    wide = export(history, "trends", tmp_path / "wide.parquet", "--wide")
    endings = {
        "": "value_bytes",
        "_previous": "previous_bytes",
        "_change": "change_bytes",
        "_change_pct": "change_pct",
        "_best": "best_bytes",
    }
    keys = ["run_id", "series_id", "memory_space"]
    by_key = {(*(row[key] for key in keys), row["metric"]): row for row in long}
    assert len(wide) == len(long) / len(METRICS)
    for row in wide:
        for metric in METRICS:
            expected = by_key[(*(row[key] for key in keys), metric)]
            for ending, column in endings.items():
                assert row[f"{metric}{ending}"] == expected[column]
    both = [name for name in long[0] if name != "metric" and name not in endings.values()]
    of_metrics = [f"{metric}{ending}" for metric in METRICS for ending in endings]
    assert list(wide[0]) == [*both, *of_metrics]


def test_wide_trends_can_be_chosen_from(history, tmp_path):
    where = ("--where", "peak_bytes > 2 * peak_bytes_previous AND memory_space = 0")
    found = export(history, "trends", tmp_path / "wide.json", "--wide", *where)
    assert [(row["run_id"], row["workload"]) for row in found] == [
        ("2026-10-05", "llama-cpu"),
        ("2026-10-10", "llama-v5e"),
    ]


def test_rows_for_which_something_holds(history, tmp_path):
    file = tmp_path / "rows.json"
    found = export(history, "trends", file, "--where", "content_changed AND memory_space = 0")
    assert len(found) == 14 * len(METRICS)
    found = export(history, "trends", file, "--where", "oom OR run_id = '2026-10-01'")
    assert {row["run_id"] for row in found} == {"2026-10-01"}


def test_conditions_are_all_held(history, tmp_path):
    found = export(
        history,
        "trends",
        tmp_path / "rows.json",
        *("--where", "metric = 'peak_bytes' AND (oom OR memory_space = 0)"),
        *("--since", "2026-10-09"),
        *("--workload", "llama-v5e"),
    )
    assert [(row["run_id"], row["workload"], row["memory_space"]) for row in found] == [
        ("2026-10-09", "llama-v5e", 0),
        ("2026-10-10", "llama-v5e", 0),
    ]


def test_since_a_date(history, tmp_path):
    for view in ("trends", "peaks", "runs_summary", "runs"):
        found = export(history, view, tmp_path / "rows.json", "--since", "2026-10-09")
        assert {row["run_id"] for row in found} == {"2026-10-09", "2026-10-10"}


def test_since_a_date_of_a_table_that_knows_its_run(history, tmp_path):
    found = export(history, "dumps", tmp_path / "rows.json", "--since", "2026-10-09")
    assert {row["run_id"] for row in found} == {"2026-10-09", "2026-10-10"}
    assert len(found) == 8


def test_of_one_workload(history, tmp_path):
    found = export(history, "trends", tmp_path / "rows.json", "--workload", "llama-cpu")
    assert [row["workload"] for row in found] == ["llama-cpu"] * 9 * len(METRICS)


@pytest.mark.parametrize("view", ["memory_by_op", "peak_buffers", "allocations", "padding"])
def test_of_one_workload_also_where_only_modules_are_known(history, tmp_path, view):
    found = export(history, view, tmp_path / "rows.json", "--workload", "decode-v5e")
    modules = "module_id IN (SELECT module_id FROM dumps WHERE workload = 'decode-v5e')"
    expected = view_rows(history, view, f"WHERE {modules}")
    assert normal(found) == normal(expected) != []
    assert len({row["module_id"] for row in found}) == 3


def test_since_a_date_also_where_only_modules_are_known(history, tmp_path):
    args = ("--since", "2026-10-10", "--workload", "llama-v5e")
    found = export(history, "memory_by_op", tmp_path / "rows.json", *args)
    latest = rows(
        history,
        "SELECT module_id FROM dumps WHERE run_id = '2026-10-10' AND workload = 'llama-v5e'",
    )
    assert {(row["module_id"],) for row in found} == set(latest)


def test_the_runs_that_have_a_workload(history, tmp_path):
    found = export(history, "runs", tmp_path / "rows.json", "--workload", "llama-cpu")
    assert len(found) == 9
    assert "2026-10-07" not in {row["run_id"] for row in found}


# --- wrong usage and failures ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["trends", "x.xlsx"], "x.xlsx ends in none of .csv, .json, .parquet, .arrow"),
        (["trends", "x"], "x ends in none of"),
        (["nope", "x.csv"], "there is no view or table nope: see `memhouse views`"),
        (["trends", "no/folder/x.csv"], "there is no folder"),
        (["trends", "x.csv", "--since", "soon"], "invalid time 'soon': use an ISO time"),
        (["compiler_flags", "x.csv", "--workload", "a"], "compiler_flags tells no workload"),
        # A quote in a name is no SQL.
        (["trends", "x.csv", "--workload", "l'lama"], 'there is no workload "l\'lama"'),
        (["peaks", "x.csv", "--wide"], "only the view trends can be wide"),
        (["trends"], "Missing argument"),
    ],
)
def test_wrong_usage(history, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    done = run_memhouse("export", *args, "--db", history)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "arrow"])
def test_a_condition_that_is_no_sql_is_wrong_usage(history, tmp_path, ending):
    done = run_memhouse(
        "export", "trends", tmp_path / f"x.{ending}", "--db", history, "--where", "a b"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_cannot_be_written_leaves_nothing_behind(history, tmp_path, ending):
    target = tmp_path / f"x.{ending}"
    target.mkdir()
    done = run_memhouse("export", "trends", target, "--db", history)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: cannot write {target}: ")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_half_way_leaves_the_old_file(history, tmp_path, ending):
    target = tmp_path / f"x.{ending}"
    target.write_text("old\n")
    fails = "CASE WHEN rank > 20 THEN error('boom') ELSE TRUE END"
    done = run_memhouse("export", "peak_buffers", target, "--db", history, "--where", fails)
    assert (done.returncode, done.stdout) == (1, "")
    assert "boom" in done.stderr
    assert target.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
