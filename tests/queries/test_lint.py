"""Traps in SQL: `memhouse sql` warns of what answers something else than was asked."""

import itertools
import json

import duckdb
import pytest

import memhouse
from memhouse.queries.catalogue import examples
from memhouse.queries.lint import lint
from memhouse.queries.sql import traps

from ..support.command import run_memhouse

# The rules that warn, and the query: the five traps first, as an analyst fell into them.
TRAPS = [
    ("spaces", "SELECT workload, SUM(peak_bytes) FROM peaks WHERE is_latest GROUP BY ALL"),
    (
        "estimated",
        """SELECT a.workload, a.peak_bytes - b.peak_bytes AS change FROM peaks AS a
        JOIN peaks AS b USING (workload, module_name, platform, occurrence, memory_space)
        WHERE a.run_id = '2026-10-02' AND b.run_id = '2026-10-01' AND memory_space = 0""",
    ),
    (
        "fan-out",
        """SELECT peaks.workload, SUM(peak_bytes) FROM peaks JOIN peak_buffers USING (dump_id)
        WHERE peaks.memory_space = 0 AND peaks.is_latest GROUP BY 1""",
    ),
    ("helper", "SELECT instruction, size_bytes FROM _module_buffers"),
    (
        "live_ranges",
        """SELECT SUM(size_bytes) FROM "values" AS v JOIN live_ranges USING (module_id, value_id)
        JOIN latest USING (module_id) JOIN module_memory AS m USING (module_id, memory_space)
        WHERE memory_space = 0 AND start_time <= m.peak_time AND end_time >= m.peak_time""",
    ),
    ("runs", "SELECT SUM(size_bytes) FROM buffers WHERE memory_space = 0"),
    ("runs", "SELECT SUM(size_bytes) FROM \"values\" WHERE space = 'hbm'"),
    (
        "depth",
        "SELECT SUM(counted_bytes) FROM memory_by_scope WHERE is_latest AND memory_space = 0",
    ),
    ("metric", "SELECT SUM(value_bytes) FROM metrics WHERE is_latest AND memory_space = 0"),
    ("fan-out", "FROM module_memory JOIN dumps USING (module_id)"),
    ("fan-out", "FROM peaks JOIN run_labels USING (run_id) WHERE memory_space = 0"),
    ("fan-out", "FROM peaks AS a JOIN peaks AS b USING (workload, memory_space)"),
    ("estimated", "SELECT peak_bytes - LAG(peak_bytes) OVER (ORDER BY run_at) FROM peaks"),
    (
        "estimated",
        "FROM peaks WHERE peak_bytes > (SELECT AVG(peak_bytes) FROM peaks WHERE is_latest"
        " AND memory_space = 0)",
    ),
    ("spaces runs", "SELECT SUM(size_bytes) FROM buffers WHERE memory_space <> 0"),
    ("spaces", "SELECT SUM(size_bytes) OVER (PARTITION BY dump_id) FROM buffers"),
    ("executions", "SELECT SUM(flops) FROM instructions JOIN latest USING (module_id)"),
    ("shared", "SELECT SUM(size_bytes) FROM peak_buffers WHERE memory_space = 0 AND is_latest"),
    ("shared spaces", "SELECT SUM(size_bytes) FROM buffers_at(module('llama-v5e'), NULL, 3)"),
    ("spaces", "SELECT SUM(counted_bytes) FROM live_at(module('llama-v5e'), 3)"),
    ("spaces depth", "SELECT SUM(counted_bytes) FROM callers_of(module('llama-v5e'), NULL)"),
    (
        "spaces",
        "SELECT SUM(change_bytes) FROM diff_buffers(module('llama-v5e'), module('flash-v5e'))",
    ),
    ("stretches", "SELECT AVG(occupied_bytes) FROM timeline WHERE memory_space = 0 AND is_latest"),
    (
        "reported",
        "SELECT peak_bytes, reported_peak_bytes FROM peaks JOIN modules USING (module_id)",
    ),
    ("host", "FROM dumps JOIN run_parts USING (run_id, host)"),
    # The same, asked as they are meant.
    ("", "SELECT SUM(counted_bytes) FROM buffers_at(module('llama-v5e'), 'hbm', NULL)"),
    ("", "SELECT SUM(counted_bytes) FROM owners_of(module('llama-v5e'), 'role', in_space := 0)"),
    (
        "",
        """SELECT SUM(flops * executions) FROM instructions JOIN computations
        USING (module_id, computation) JOIN latest USING (module_id)""",
    ),
    (
        "",
        """SELECT SUM(occupied_bytes * (end_time - start_time + 1)) / SUM(end_time - start_time + 1)
        FROM timeline WHERE memory_space = 0 AND is_latest""",
    ),
    ("", "SELECT SUM(peak_bytes) FROM peaks WHERE is_latest AND space = 'hbm'"),
    ("", "SELECT SUM(peak_bytes) FILTER (memory_space = 0) FROM peaks WHERE is_latest"),
    ("", "SELECT space, run_id AS night, SUM(peak_bytes) FROM peaks GROUP BY 1, night"),
    ("", "SELECT SUM(size_bytes) OVER (PARTITION BY dump_id, memory_space) FROM buffers"),
    ("", "SELECT MAX(origin), MAX(peak_bytes) - MIN(peak_bytes) FROM peaks"),
    ("", "SELECT peak_bytes - temp_bytes FROM peaks JOIN modules USING (module_id)"),
    ("", "FROM peaks JOIN run_labels AS l ON peaks.run_id = l.run_id AND 'jax' = l.key"),
    ("", "FROM peaks SEMI JOIN peak_buffers USING (dump_id)"),
    (
        "",
        """FROM gone JOIN history AS h ON h.previous_dump_id = gone.last_dump_id JOIN history AS s
        ON s.series_id = h.series_id AND s.chain_index = h.level_index""",
    ),
    (
        "",
        """SELECT SUM(counted_bytes) FILTER (workload = 'llama-v5e') - SUM(counted_bytes) FILTER (
        workload = 'decode8-v5e') AS more FROM memory_by_role WHERE memory_space = 0 AND is_latest
        AND workload IN ('llama-v5e', 'decode8-v5e')""",
    ),
    ("", "SELECT exceeded_bytes FROM oom_reports WHERE exceeded_bytes > used_bytes - limit_bytes"),
    (
        "fan-out estimated",
        """FROM peaks AS a JOIN peaks AS b USING (memory_space, dump_id) JOIN peaks AS other
        ON other.dump_id <> a.dump_id WHERE b.workload = 'llama-v5e'
        AND a.peak_bytes > other.peak_bytes""",
    ),
    (
        "",
        """WITH largest AS (SELECT dump_id, MAX(counted_bytes) AS most FROM peak_buffers GROUP BY 1)
        SELECT SUM(peak_bytes) FROM peaks JOIN largest USING (dump_id) WHERE memory_space = 0""",
    ),
]


@pytest.fixture(scope="module")
def samples(filled):
    """Programs of all samples: some are estimated."""
    with memhouse.open(filled, read_only=True) as warehouse:
        yield warehouse


@pytest.mark.parametrize(("rules", "query"), TRAPS)
def test_a_trap_is_told_by_its_rule(samples, rules, query):
    assert traps(samples._store, query).table["rule"].to_pylist() == rules.split()


def test_examples_have_no_traps(samples):
    serialize = duckdb.connect().execute
    for example in itertools.chain(*examples().values()):
        ((tree,),) = serialize("SELECT json_serialize_sql($1)", [example.sql]).fetchall()
        assert lint(json.loads(tree)["statements"], samples._store) == [], example.title


def test_every_way_to_ask_warns_and_a_check_answers_by_its_status(filled, samples):
    (rule, query), fine = TRAPS[0], next(query for rule, query in TRAPS if not rule)
    (said,) = samples.sql(query).warnings
    assert said in repr(samples.sql(query))
    asked = run_memhouse("sql", query, "--format", "csv", "--db", filled)
    assert (asked.returncode, asked.stderr) == (0, f"warning: {said}\n")
    checked = run_memhouse("sql", query, "--check", "--format", "csv", "--db", filled)
    assert (checked.returncode, checked.stdout) == (1, f'rule,advice\n{rule},"{said}"\n')
    well = run_memhouse("sql", fine, "--check", "--db", filled)
    assert (well.returncode, well.stdout) == (0, "")
    assert run_memhouse("sql", "SELECT a FROM runs", "--check", "--db", filled).returncode == 2
    assert run_memhouse("sql", fine, "--check", "--write", "--db", filled).returncode == 2
