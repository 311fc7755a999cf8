"""The rows that a name means: the default branch, the main memory, programs that are alive."""

import csv

import duckdb
import pytest

import memhouse
from memhouse.queries.catalogue import public_views

from ..support.command import run_memhouse
from ..support.made_runs import make_run
from ..support.warehouse import rows

GONE = [f"night-{day}" for day in range(3, 13)]


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Twelve nights of main, of which ten lack a program; a pull request; a job of its own."""
    db = tmp_path_factory.mktemp("meant") / "memhouse.duckdb"
    for day in range(1, 13):
        programs = {"train/jit_step": 100 + day, "serve/jit_decode": 10}
        if f"night-{day}" in GONE:
            del programs["serve/jit_decode"]
        make_run(db, f"night-{day}", programs, day=day, branch="main")
    make_run(db, "other-job", {"eval/jit_eval": 5}, day=2, branch="main")
    make_run(db, "pr", {"train/jit_step": 999}, day=20, branch="fix")
    return db


def test_every_view_of_dumps_says_its_run_and_branch():
    wrong = {
        name
        for name, view in public_views().items()
        if "dump_id" in view.columns
        and not {"run_id", "run_at", "branch", "suite", "workload"} <= view.columns.keys()
    }
    # The files of a dump, as a table of it.
    assert wrong <= {"dump_files"}


def test_the_newest_run_is_of_the_default_branch(nights):
    query = "SELECT run(-1), run(-2), run(-1, of_branch := 'fix')"
    assert rows(nights, query) == [("night-12", "night-11", "pr")]
    for missing in ("run(-2, of_branch := 'fix')", "run(0)", "module('nope')"):
        with pytest.raises(duckdb.Error, match="there is no"):
            rows(nights, f"SELECT {missing}")


def test_a_name_means_the_program_of_the_default_branch(nights):
    query = "SELECT run_id, branch, peak_bytes / 1048576 FROM peaks WHERE workload = 'train'"
    assert rows(nights, f"{query} AND is_latest") == [("night-12", "main", 112)]
    assert (("pr", "fix", 999)) in rows(nights, query)


@pytest.mark.parametrize(("options", "most"), [((), 112), (("--branch", "*"), 999)])
def test_trends_for_a_spreadsheet_are_of_one_branch(nights, tmp_path, options, most):
    append = ("--append", "--metric", "peak")
    done = run_memhouse("export", "trends", tmp_path, "--db", nights, *append, *options)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with (tmp_path / "peak.csv").open(newline="") as text:
        written = list(csv.DictReader(text))
    peaks = [row["value"] for row in written if row["workload"] == "train"]
    assert max(int(peak) for peak in peaks) == most * 2**20
    assert {row["run"] for row in written} >= {"night-1", "night-12"}


def test_a_program_that_is_gone_is_not_the_latest(nights):
    assert rows(nights, "SELECT DISTINCT workload FROM peaks WHERE is_latest ORDER BY 1") == [
        ("eval",),
        ("train",),
    ]
    assert rows(nights, "SELECT workload FROM latest ORDER BY 1") == [("eval",), ("train",)]
    # A name still finds it.
    assert rows(nights, "SELECT module('serve') IS NOT NULL") == [(True,)]


def test_a_program_is_missing_in_each_night_that_lacks_it(nights):
    found = rows(nights, "SELECT workload, run_id, last_run_id FROM missing ORDER BY run_at")
    assert found == [("serve", night, "night-2") for night in GONE]
    query = """SELECT workload, branch, runs, first_run_id, last_run_id, is_alive
        FROM series ORDER BY branch, workload"""
    assert rows(nights, query) == [
        ("train", "fix", 1, "pr", "pr", True),
        ("eval", "main", 1, "other-job", "other-job", True),
        ("serve", "main", 2, "night-1", "night-2", False),
        ("train", "main", 12, "night-1", "night-12", True),
    ]


def test_a_row_a_dump_is_of_the_main_memory(filled):
    """A plain SELECT mixes no memory spaces."""
    with memhouse.open(filled, read_only=True) as warehouse:
        ask = warehouse.store.connection.sql
        twice = "SELECT COUNT(*) - COUNT(DISTINCT dump_id) FROM peaks"
        assert ask(twice).fetchall() == [(0,)]
        query = "SELECT COUNT(*) - COUNT(DISTINCT (dump_id, metric)) FROM trends"
        assert ask(query).fetchall() == [(0,)]
        # Main memory is HBM, and the host's for CPU programs.
        spaces = "SELECT DISTINCT space::VARCHAR FROM peaks ORDER BY 1"
        assert ask(spaces).fetchall() == [("hbm",), ("host",)]
        both = """SELECT (SELECT SUM(peak_bytes) FROM peaks)
            = (SELECT SUM(peak_bytes) FROM peaks_by_space WHERE memory_space = 0),
            (SELECT COUNT(*) FROM peaks_by_space WHERE memory_space > 0) > 10"""
        assert ask(both).fetchall() == [(True, True)]


def test_a_table_of_nights_is_a_pivot(nights):
    query = """PIVOT (SELECT workload, run_id, peak_bytes // 1048576 AS mib FROM peaks
        WHERE branch = 'main' AND run_at > '2026-01-11') ON run_id USING MAX(mib)"""
    with memhouse.open(nights, read_only=True) as warehouse:
        found = warehouse.sql(query).table.to_pylist()
    assert found == [{"workload": "train", "night-11": 111, "night-12": 112}]


def test_sums_are_numbers_that_pandas_reckons_with(nights):
    with memhouse.open(nights, read_only=True) as warehouse:
        found = warehouse.sql("SELECT SUM(peak_bytes) AS bytes FROM peaks WHERE is_latest")
        assert (found.df()["bytes"] * 1.5).to_list() == [117 * 2**20 * 1.5]
        assert str(found.table.schema.field("bytes").type) == "int64"


def test_a_sample_of_rows_is_a_query(nights):
    with memhouse.open(nights, read_only=True) as warehouse:
        assert len(warehouse.sql("SELECT workload FROM peaks USING SAMPLE 3")) == 3
