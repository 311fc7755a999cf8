"""Warnings about SQL: sums over rows that a join repeats, and rows of several branches."""

import itertools
import json

import duckdb
import pytest

import memhouse
from memhouse.queries.catalogue import examples
from memhouse.queries.lint import lint
from memhouse.queries.sql import sql_warnings

from ..support.command import run_memhouse
from ..support.made_runs import make_run

FAN_OUTS = [
    """SELECT peaks.workload, SUM(peak_bytes) FROM peaks JOIN peak_buffers USING (dump_id)
    WHERE peaks.is_latest GROUP BY 1""",
    "SELECT SUM(peak_bytes) FROM peaks JOIN run_labels USING (run_id)",
    "SELECT SUM(total_bytes) FROM module_memory JOIN dumps USING (module_id)",
    "SELECT SUM(a.peak_bytes) FROM peaks AS a JOIN peaks AS b USING (workload)",
    """SELECT run_id, SUM(peak_bytes) OVER (PARTITION BY run_id) FROM peaks
    JOIN peak_buffers AS b USING (dump_id, run_id)""",
]
FINE = [
    "SELECT SUM(counted_bytes) FROM peak_buffers NATURAL JOIN dumps",
    "SELECT SUM(counted_bytes) FROM peak_buffers JOIN peaks USING (dump_id)",
    "SELECT SUM(peak_bytes) FROM peaks AS p JOIN run_labels AS l"
    " ON p.run_id = l.run_id AND 'jax' = l.key",
    "SELECT SUM(peak_bytes) FILTER (key = 'jax') FROM peaks JOIN run_labels USING (run_id)",
    "SELECT key, SUM(peak_bytes) FROM peaks JOIN run_labels USING (run_id) GROUP BY ALL",
    "SELECT SUM(peak_bytes) FROM peaks SEMI JOIN peak_buffers USING (dump_id)",
    "SELECT COUNT(*) FROM peaks JOIN peak_buffers USING (dump_id)",
    """SELECT SUM(change_bytes) FROM causes JOIN history USING (dump_id)
    JOIN missing ON history.previous_dump_id = missing.last_dump_id""",
    """WITH largest AS (SELECT dump_id, MAX(counted_bytes) AS most FROM peak_buffers GROUP BY 1)
    SELECT SUM(peak_bytes) FROM peaks JOIN largest USING (dump_id)""",
    """SELECT SUM(a.peak_bytes - b.peak_bytes) FROM peaks AS a JOIN peaks AS b
    USING (workload, module_name, platform, occurrence)
    WHERE a.run_id = '2026-10-02' AND b.run_id = '2026-10-01'""",
]
MIXED = [
    "SELECT run_at, peak_bytes FROM peaks WHERE workload = 'a' ORDER BY run_at",
    "SELECT workload, MAX(peak_bytes) FROM peaks GROUP BY workload",
    "SELECT peak_bytes - LAG(peak_bytes) OVER (PARTITION BY workload ORDER BY run_at) FROM peaks",
    "SELECT AVG(value) FROM trends WHERE run_at > TIMESTAMP '2026-10-01'",
]
OF_ONE_BRANCH = [
    "SELECT branch, MAX(value) FROM trends GROUP BY branch",
    "SELECT MAX(peak_bytes) FROM peaks WHERE branch = 'main'",
    """SELECT MAX(peak_bytes) FROM peaks
    WHERE run_id IN (SELECT run_id FROM run_labels WHERE key = 'branch' AND value = 'main')""",
    "SELECT MAX(peak_bytes) FROM peaks WHERE run_id IN (SELECT run_id FROM runs LIMIT 1)",
    "SELECT MAX(peak_bytes) FROM peaks WHERE is_latest",
    "SELECT MAX(total_bytes) FROM module_memory JOIN latest USING (module_id)",
    "SELECT MAX(occupied_bytes) FROM timeline_of(module('a/jit_f'))",
    "SELECT COUNT(*) FROM dumps",
]


@pytest.fixture(scope="module")
def samples(filled):
    """The samples, which have no branches."""
    with memhouse.open(filled, read_only=True) as warehouse:
        yield warehouse.store


@pytest.fixture(scope="module")
def branches(tmp_path_factory):
    """A warehouse of two branches."""
    db = tmp_path_factory.mktemp("branches") / "branches.duckdb"
    for day, branch in enumerate(["main", "topic"]):
        make_run(db, branch, {"a/jit_f": 1}, day=day, branch=branch)
    with memhouse.open(db, read_only=True) as warehouse:
        yield warehouse.store


def rules(store, query):
    return sql_warnings(store, query).table["rule"].to_pylist()


@pytest.mark.parametrize("query", FAN_OUTS)
def test_a_sum_over_rows_that_a_join_repeats(samples, query):
    assert rules(samples, query) == ["fan-out"]


@pytest.mark.parametrize("query", MIXED)
def test_rows_of_several_branches(samples, branches, query):
    assert rules(branches, query) == ["branches"]
    assert rules(samples, query) == []


@pytest.mark.parametrize("query", FINE)
def test_no_warning(samples, query):
    assert rules(samples, query) == []


@pytest.mark.parametrize("query", OF_ONE_BRANCH)
def test_rows_of_one_branch(branches, query):
    assert rules(branches, query) == []


def test_examples_have_no_warnings(samples):
    serialize = duckdb.connect().execute
    for example in itertools.chain(*examples().values()):
        ((tree,),) = serialize("SELECT json_serialize_sql($1)", [example.sql]).fetchall()
        assert lint(json.loads(tree)["statements"], samples) == [], example.title


def test_every_way_to_ask_warns_and_a_check_answers_by_its_status(filled):
    query, fine = FAN_OUTS[0], FINE[0]
    with memhouse.open(filled, read_only=True) as warehouse:
        (said,) = warehouse.sql(query).warnings
        assert said in repr(warehouse.sql(query))
    asked = run_memhouse("sql", query, "--format", "csv", "--db", filled)
    assert (asked.returncode, asked.stderr) == (0, f"warning: {said}\n")
    checked = run_memhouse("sql", query, "--check", "--format", "csv", "--db", filled)
    assert (checked.returncode, checked.stdout) == (1, f'rule,advice\nfan-out,"{said}"\n')
    well = run_memhouse("sql", fine, "--check", "--db", filled)
    assert (well.returncode, well.stdout) == (0, "")
    assert run_memhouse("sql", "SELECT a FROM runs", "--check", "--db", filled).returncode == 2
    assert run_memhouse("sql", fine, "--check", "--write", "--db", filled).returncode == 2
