"""What an agent's SQL cannot do: write, read files, tell of the process, or run on.

`tests/promises/test_sql_door.py` has more of what is refused: the door is the same.
"""

import subprocess
import sys

import pytest

from memhouse.queries.sql import require_harmless
from memhouse.schema.errors import QueryError, RefusedError

from ..support.agent import agent
from ..support.warehouse import reading

REFUSED = [
    # It would write to the warehouse, or to a file,
    "DELETE FROM runs",
    "WITH gone AS (DELETE FROM runs RETURNING *) FROM gone",
    "WITH new AS (INSERT INTO runs (run_id) VALUES ('x') RETURNING *) FROM new",
    "SELECT 1; DROP TABLE runs",
    "COPY (SELECT 1) TO '{there}/out.parquet'",
    # read a file, or reach the network,
    "FROM '{there}/secret.csv'",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    # show or change settings,
    "SET memory_limit = '100GB'",
    "SELECT * FROM pg_settings, (WITH pg_settings AS (SELECT 1) FROM pg_settings)",
    "SELECT * FROM information_schema.tables",
    "SELECT system.main.getenv('HOME')",
    "SHOW DATABASES",
]
# or is no question.
WRONG = [
    "",
    "-- nothing",
    "SELEC 1",
    "SELECT * FROM no_such_table",
    """WITH "{there}/secret.csv" AS (SELECT 1) FROM '{there}/secret.csv'""",
]
ANSWERED = [
    "WITH a AS (SELECT 1 AS one) SELECT one FROM a",
    "FROM range(2)",
    "VALUES (1); ",
    "SELECT 1 AS a -- a comment",
    "SELECT COUNT(*) AS n FROM main.runs",
    "SELECT UNNEST([1, 2]) AS a",
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) FROM a",
]
# Each would run for hours; DuckDB does not stop the last, even if it is told to.
ENDLESS = [
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a) SELECT COUNT(*) FROM a",
    'SELECT * FROM "values" AS a, "values" AS b, "values" AS c ORDER BY RANDOM()',
    "SELECT LEVENSHTEIN(REPEAT('a', 200000), REPEAT('b', 200000))",
]
# Each would take all memory; DuckDB does not count that of the last.
HUGE = [
    "SELECT RANGE(1000000000)",
    "SELECT BITSTRING('1', 2000000000)",
]
# What nobody may do even if the guard let it through.
CONFINED = [
    "FROM read_text('{there}/secret.csv')",
    "FROM '{there}/secret.csv'",
    "COPY (SELECT 1) TO '{there}/out.csv'",
    "COPY (SELECT 1) TO '{db}/out.csv'",
    "ATTACH '{there}/other.duckdb'",
    "FROM 'https://127.0.0.1:9/x.csv'",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "DELETE FROM runs",
    "CREATE TABLE x AS SELECT 1",
]
CONFINE = """
import sys
from memhouse.mcp_server.sql_process import confined
from memhouse.schema.store import open_store
store = open_store(sys.argv[1], read_only=True)
connection = confined(store)
print(connection.execute("SELECT COUNT(*) FROM peaks").fetchone()[0])
for query in sys.argv[2:]:
    try:
        connection.execute(query)
        print("done:", query)
    except Exception as error:
        print(type(error).__name__)
        connection.rollback()
    connection.execute("BEGIN TRANSACTION READ ONLY")
"""


@pytest.fixture
def there(tmp_path):
    """A folder with a file that is nobody's business."""
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "secret.csv").write_text("a,b\n1,SECRET\n")
    return folder


def test_what_does_more_than_select_is_refused(history, there):
    failures = []
    with reading(history) as store:
        for query in ANSWERED:
            require_harmless(query, store)
        for query in [*REFUSED, *WRONG]:
            try:
                require_harmless(query.format(there=there), store)
                failures.append(query)
            except QueryError as error:
                # An option of the command would let pass what is refused, not what is wrong.
                if isinstance(error, RefusedError) != (query in REFUSED) or "SECRET" in str(error):
                    failures.append((query, error))
    assert failures == []
    assert [path.name for path in there.iterdir()] == ["secret.csv"]


def test_an_agent_is_told_why(asked, there):
    for query in ("FROM '{there}/secret.csv'", REFUSED[0]):
        said = asked.error("sql", query=query.format(there=there))
        assert "--" not in said, "an agent has no options"
    for query, named in {
        "SELECT no_such_column FROM runs": "no_such_column",
        "SELECT 1 / 'x'": "'x'",
        f"SELECT {'(' * 5000}1{')' * 5000}": "depth",
    }.items():
        assert named in asked.error("sql", query=query)
    # Whether sqlglot takes what DuckDB takes depends on the version of Python.
    reply = asked.ask("sql", query=f"SELECT {'ABS(' * 900}1{')' * 900}")
    assert ("nested" if reply.failed else "[1]") in reply.text
    assert "seconds: " in asked.error("sql", query="SELECT 1", seconds=31)
    assert "rows: " in asked.error("sql", query="SELECT 1", rows=0)


def test_values_are_exact_and_rows_beyond_the_limit_are_told(asked):
    query = """SELECT 9223372036854775807 - i AS id, 'NaN'::DOUBLE AS x, NULL AS y,
        DATE '2026-10-01' AS d, [1, 2] AS l FROM range({}) AS t(i)"""
    found = asked.ask("sql", query=query.format(1000), rows=3)
    first = {"id": "9223372036854775807", "x": None, "y": None, "d": "2026-10-01", "l": "[1, 2]"}
    assert found.rows("result")[0] == first
    assert len(found.rows("result")) == 3
    assert "more" in found.said["result"]
    assert "more" not in asked.ask("sql", query=query.format(3), rows=3).said["result"]


def test_behind_the_guard_the_connection_is_confined(history, there):
    queries = [query.format(there=there, db=history) for query in CONFINED]
    command = [sys.executable, "-c", CONFINE, str(history), *queries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    peaks, *found = done.stdout.splitlines()
    assert int(peaks) > 10
    assert len(found) == len(queries), done.stderr
    assert not [line for line in found if line.startswith("done: ")]
    assert [path.name for path in there.iterdir()] == ["secret.csv"]


@pytest.mark.slow
def test_what_runs_on_is_stopped(asked):
    for query in ENDLESS:
        assert "stopped after 1 s" in asked.error("sql", query=query, seconds=1), query


@pytest.mark.slow
def test_what_needs_too_much_memory_is_stopped(asked):
    for query in HUGE:
        assert "memory" in asked.error("sql", query=query, seconds=30), query
    assert asked.ask("sql", query="SELECT 1 AS a").rows("result") == [{"a": 1}]


def test_a_session_imports_nothing_of_its_folder_and_leaves_nothing_behind(
    history, tmp_path, monkeypatch
):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "memhouse").mkdir()
    monkeypatch.chdir(tmp_path)
    before = set(history.parent.iterdir())
    with agent(history, tmp_path / "stderr") as asked:
        assert asked.ask("sql", query="SELECT 1 AS a").rows("result") == [{"a": 1}]
        asked.error("sql", query=ENDLESS[1], seconds=1)
    assert set(history.parent.iterdir()) == before
    assert {path.name for path in tmp_path.iterdir()} == {"json.py", "memhouse", "stderr"}
    assert list((tmp_path / "memhouse").iterdir()) == []
