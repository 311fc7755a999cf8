"""`memhouse export`: what is in the file is what the view says, whole or not at all."""

import csv
import json
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import memhouse
from memhouse.queries.catalogue import public_views

from ..support.command import run_memhouse
from ..support.history import TOLD_METRICS, copy_night
from ..support.traces import read_trace
from ..support.warehouse import fill, rows

ENDINGS = ["csv", "json", "parquet", "arrow"]
MODULE = "llama-v5e/jit_train_step"


@pytest.fixture(scope="module")
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
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
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


def test_a_file_has_the_rows_of_its_view(small, tmp_path):
    """Each view in one format, in turn, and trends, with every type, in all."""
    views = [*public_views(), "values", "dumps", "runs", "compiler_flags"]
    chosen = [(view, ENDINGS[number % 4]) for number, view in enumerate(views)]
    failures, without_rows = [], set()
    with memhouse.open(small, read_only=True) as warehouse:
        for view, ending in [*chosen, *(("trends", ending) for ending in ENDINGS)]:
            warehouse.export(view, tmp_path / f"rows.{ending}")
            found, expected = read(tmp_path / f"rows.{ending}"), view_rows(small, view)
            if not expected:
                assert found == []
                without_rows.add(view)
                continue
            names = list(expected[0])
            if ending == "csv":
                expected = [{n: as_text(value) for n, value in row.items()} for row in expected]
            if list(found[0]) != names or normal(found) != normal(expected):
                failures.append((view, ending))
    assert failures == []
    # The samples have no texts between the compiler's passes, and no hosts.
    assert without_rows == {"differing_hosts", "compiler_pass_steps"}


def test_types_survive_where_the_format_has_them(history, tmp_path):
    export(history, "trends", tmp_path / "t.parquet")
    export(history, "trends", tmp_path / "t.arrow")
    of_parquet = pq.read_schema(tmp_path / "t.parquet")
    of_arrow = pa.ipc.open_file(tmp_path / "t.arrow").schema
    comments = public_views()["trends"].columns
    for schema in (of_parquet, of_arrow):
        assert schema.field("value").type == pa.int64()
        assert schema.field("change_ratio").type == pa.float64()
        assert schema.field("content_changed").type == pa.bool_()
        assert schema.field("run_at").type == pa.timestamp("us", "UTC")
        told = {field.name: field.metadata[b"comment"].decode() for field in schema}
        assert told == comments
    times = f"SELECT MIN(run_at AT TIME ZONE 'UTC') FROM '{tmp_path / 't.parquet'}'"
    assert duckdb.sql(times).fetchall() == [(datetime(2026, 10, 1),)]


def test_a_file_is_replaced_its_rows_are_counted_and_times_are_utc(history, tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("old\n")
    zone = {"TZ": "America/New_York"}
    done = run_memhouse("export", "runs_summary", file, "--db", history, env=zone)
    assert (done.returncode, done.stdout) == (0, "")
    assert {str(file), "10", "runs_summary"} <= set(done.stderr.replace(":", "").split())
    assert len(read(file)) == 10
    assert "2026-10-01T00:00:00," in file.read_text()


def test_a_query_is_a_file(history, tmp_path):
    """In each format, with the functions of memhouse.toml and the warnings of `memhouse sql`."""
    (tmp_path / "own.sql").write_text("CREATE MACRO twice(bytes) AS bytes * 2;\n")
    (tmp_path / "memhouse.toml").write_text('macros = ["own.sql"]\n')
    query = """SELECT workload, run_at, twice(peak_bytes) AS twice_bytes FROM peaks
        WHERE run_id = '2026-10-01' ORDER BY workload"""
    expected = rows(history, query.replace("twice(peak_bytes)", "peak_bytes * 2"))
    for ending in ENDINGS:
        file = tmp_path / f"query.{ending}"
        done = run_memhouse("export", "--sql", query, "-o", file, "--db", history, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert {"4", "query"} <= set(done.stderr.split())
        assert normal(read(file)) == normal([dict(enumerate(row)) for row in expected])
    assert pq.read_schema(tmp_path / "query.parquet").field("run_at").type.tz == "UTC"
    repeats = "SELECT SUM(peak_bytes) FROM module_memory JOIN dumps USING (module_id)"
    done = run_memhouse("export", "--sql", repeats, "-o", "x.csv", "--db", history, cwd=tmp_path)
    assert "warning: " in done.stderr
    with memhouse.open(history, read_only=True, macros=[tmp_path / "own.sql"]) as warehouse:
        assert warehouse.export_sql(query, tmp_path / "python.csv").rows == 4
    assert (tmp_path / "python.csv").read_text() == (tmp_path / "query.csv").read_text()


def test_no_rows_are_a_whole_file(history, tmp_path):
    for ending in ENDINGS:
        assert export(history, "trends", tmp_path / f"none.{ending}", "--where", "FALSE") == []
    assert (tmp_path / "none.csv").read_text().startswith("run_id,run_at,branch,suite,")
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_a_trace_is_told_by_the_option_or_the_ending(filled, history, tmp_path):
    for name, *options in (("a.csv", "-f", "perfetto"), ("a.pftrace",), ("a.perfetto-trace",)):
        done = run_memhouse("export", MODULE, tmp_path / name, *options, "--db", filled)
        assert (done.returncode, done.stdout) == (0, "")
        assert {"972", "4"} <= set(done.stderr.split())
        assert len(read_trace(tmp_path / name)) > 100
    file = tmp_path / "a.pftrace"
    args = ("llama-cpu", file, "--run", "2026-10-01", "--db", history)
    assert run_memhouse("export", *args).returncode == 0
    assert "memory space 0 (memory)" in [track.name for track in read_trace(file)]
    assert len(list(tmp_path.iterdir())) == 3


# --- which rows ---------------------------------------------------------------------------


def test_rows_for_which_all_conditions_hold(history, tmp_path):
    file = tmp_path / "rows.json"
    found = export(history, "trends", file, "--where", "content_changed")
    assert len(found) == 14 * len(TOLD_METRICS)
    found = export(
        history,
        "trends_by_space",
        file,
        *("--where", "metric = 'peak_bytes' AND (oom OR memory_space = 0)"),
        *("--since", "2026-10-09"),
        *("--workload", "llama-v5e"),
    )
    assert [(row["run_id"], row["workload"], row["memory_space"]) for row in found] == [
        ("2026-10-09", "llama-v5e", 0),
        ("2026-10-10", "llama-v5e", 0),
    ]


def test_since_a_date_and_of_a_workload(history, tmp_path):
    """Whether rows know their run, their workload, or only their module."""
    file = tmp_path / "rows.json"
    for view in ("trends", "peaks", "runs_summary", "runs", "dumps"):
        found = export(history, view, file, "--since", "2026-10-09")
        assert {row["run_id"] for row in found} == {"2026-10-09", "2026-10-10"}, view
    assert len(found) == 8
    of_decoding = "module_id IN (SELECT module_id FROM dumps WHERE workload = 'decode-v5e')"
    for view in ("peak_buffers", "allocations"):
        found = export(history, view, file, "--workload", "decode-v5e")
        assert normal(found) == normal(view_rows(history, view, f"WHERE {of_decoding}")), view
        assert len({row["module_id"] for row in found}) == 3
    found = export(history, "runs", file, "--workload", "llama-cpu")
    assert len(found) == 9
    assert "2026-10-07" not in {row["run_id"] for row in found}


# --- wrong usage and failures ---------------------------------------------------------------


def test_wrong_usage_writes_nothing(history, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A quote in a name is no SQL.
    wrong = {
        ("trends", "x.xlsx"): "x.xlsx",
        ("nope", "x.csv"): "nope",
        ("trends", "no/folder/x.csv"): "no/folder",
        ("trends", "x.csv", "--since", "soon"): "'soon'",
        ("compiler_flags", "x.csv", "--workload", "a"): "compiler_flags",
        ("trends", "x.csv", "--workload", "l'lama"): "l'lama",
        ("trends", "x.csv", "--metric", "nope"): "'nope'",
        ("peaks", "x.csv", "--metric", "peak"): "metric",
        ("trends", "x.csv", "--where", "a b"): "",
        ("nope", "x.pftrace"): "'nope'",
        (MODULE, "x.pftrace", "--run", "nope"): "'nope'",
        (MODULE, "x.pftrace", "--where", "size_bytes > 1"): "--where",
        (MODULE, "x.pftrace", "--since", "2026-10-01"): "--since",
        (MODULE, "x.pftrace", "--wide"): "--wide",
        ("peaks", "x.csv", "--run", "2026-10-01"): "--run",
        (): "--sql",
        ("peaks",): "-o FILE",
        ("--sql", "FROM peaks"): "-o FILE",
        ("--sql", "FROM peaks", "x.csv"): "-o",
        ("--sql", "FROM peaks", "-o", "x.csv", "--where", "oom"): "--where",
        ("--sql", "FROM peaks", "-o", "x.txt"): "x.txt",
        ("--sql", "FROM nope", "-o", "x.csv"): "nope",
        ("--sql", "FROM read_text('/etc/passwd')", "-o", "x.csv"): "read_text",
        ("--sql", "COPY peaks TO 'y.csv'", "-o", "x.csv"): "SELECT",
        (MODULE, "x.pftrace", "--format", "svg"): "'svg'",
    }
    failures = []
    for args, named in wrong.items():
        done = run_memhouse("export", *args, "--db", history)
        if (done.returncode, done.stdout) != (2, "") or named not in done.stderr:
            failures.append((args, done.returncode, done.stderr))
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_nothing_behind(history, tmp_path):
    for ending, view in (*((ending, "trends") for ending in ENDINGS), ("pftrace", MODULE)):
        target = tmp_path / f"x.{ending}"
        target.mkdir()
        done = run_memhouse("export", view, target, "--db", history)
        assert (done.returncode, done.stdout) == (1, "")
        assert str(target) in done.stderr
        assert list(tmp_path.iterdir()) == [target]
        assert list(target.iterdir()) == []
        target.rmdir()


def test_a_failure_half_way_leaves_the_old_file(history, tmp_path):
    fails = "CASE WHEN rank > 20 THEN error('boom') ELSE TRUE END"
    for ending in ENDINGS:
        target = tmp_path / f"x.{ending}"
        target.write_text("old\n")
        done = run_memhouse("export", "peak_buffers", target, "--db", history, "--where", fails)
        assert (done.returncode, done.stdout) == (1, "")
        assert "boom" in done.stderr
        assert target.read_text() == "old\n"
        assert list(tmp_path.iterdir()) == [target]
        target.unlink()
