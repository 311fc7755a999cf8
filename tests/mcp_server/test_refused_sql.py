"""What an agent's SQL cannot do: write, read files, tell of the process, or run on."""

import json
import re
import subprocess
import sys
import time

import pytest

import memhouse.lake
from memhouse.mcp_server.ask_sql import sql
from memhouse.queries.sql import require_harmless
from memhouse.schema.errors import QueryError

from ..support.agent import agent
from ..support.lakes import lake_of
from ..support.warehouse import reading

ALONE = "a query reads the tables and views of this warehouse alone"
SELECT = "only one SELECT is answered"
REFUSED = {
    # It would write to the warehouse,
    "DELETE FROM runs": SELECT,
    "WITH gone AS (DELETE FROM runs RETURNING *) FROM gone": SELECT,
    "WITH new AS (INSERT INTO runs (run_id) VALUES ('x') RETURNING *) FROM new": SELECT,
    "UPDATE runs SET run_id = 'x'": SELECT,
    "DROP TABLE runs": SELECT,
    "CREATE TABLE x AS SELECT 1": SELECT,
    "CREATE TEMP TABLE x AS SELECT 1": SELECT,
    "SELECT 1; DROP TABLE runs": SELECT,
    "BEGIN": SELECT,
    "CHECKPOINT": SELECT,
    "VACUUM": SELECT,
    "MERGE INTO runs USING runs AS b ON TRUE WHEN MATCHED THEN DELETE": SELECT,
    # to files,
    "COPY runs TO '{there}/out.csv'": SELECT,
    "COPY (SELECT 1) TO '{there}/out.parquet'": SELECT,
    "EXPORT DATABASE '{there}/out'": SELECT,
    "EXPLAIN ANALYZE COPY runs TO '{there}/out.csv'": SELECT,
    "SELECT * FROM enable_profiling(save_location := '{there}/out.json')": ALONE,
    "SELECT write_log('x')": ALONE,
    # read files,
    "SELECT * FROM read_csv('{there}/secret.csv')": ALONE,
    "SELECT * FROM read_text('{there}/secret.csv')": ALONE,
    "SELECT * FROM read_blob('{there}/secret.csv')": ALONE,
    "SELECT * FROM read_parquet('{there}/*')": ALONE,
    "SELECT * FROM sniff_csv('{there}/secret.csv')": ALONE,
    "SELECT * FROM glob('{there}/*')": ALONE,
    "FROM '{there}/secret.csv'": ALONE,
    'SELECT * FROM "{there}/secret.csv"': ALONE,
    "SELECT (SELECT content FROM read_text('{there}/secret.csv'))": ALONE,
    "SELECT * FROM runs WHERE run_id IN (FROM read_text('{there}/secret.csv'))": ALONE,
    """WITH "{there}/secret.csv" AS (SELECT 1) FROM '{there}/secret.csv'""": "is no name",
    "SELECT * FROM query('FROM read_text(''{there}/secret.csv'')')": ALONE,
    "SELECT * FROM query_table('{there}/secret.csv')": ALONE,
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))": ALONE,
    "SUMMARIZE '{there}/secret.csv'": ALONE,
    "DESCRIBE (FROM read_text('{there}/secret.csv'))": ALONE,
    "ATTACH '{there}/other.duckdb'": SELECT,
    # reach the network, or load code,
    "FROM 'https://127.0.0.1:9/x.csv'": ALONE,
    "SELECT * FROM read_csv('s3://bucket/x.csv')": ALONE,
    "INSTALL httpfs": SELECT,
    "LOAD httpfs": SELECT,
    # show or change settings,
    "SET memory_limit = '100GB'": SELECT,
    "PRAGMA database_list": SELECT,
    "CALL enable_logging()": SELECT,
    "SELECT * FROM duckdb_settings()": ALONE,
    "SELECT * FROM duckdb_secrets()": ALONE,
    "SELECT * FROM pg_settings": ALONE,
    "SELECT * FROM pg_catalog.pg_settings": ALONE,
    "SELECT * FROM pg_settings, (WITH pg_settings AS (SELECT 1) FROM pg_settings)": ALONE,
    "SELECT * FROM information_schema.tables": ALONE,
    "SHOW DATABASES": "SHOW is refused",
    "SELECT current_setting('temp_directory')": ALONE,
    "SELECT getenv('HOME')": ALONE,
    "SELECT system.main.getenv('HOME')": ALONE,
    # or is no question.
    "": SELECT,
    "-- nothing": SELECT,
    "SELEC 1": "syntax error",
    "SELECT * FROM no_such_table": ALONE,
}
ANSWERED = {
    "WITH a AS (SELECT 1 AS one) SELECT one FROM a": [{"one": 1}],
    "FROM range(2)": [{"range": 0}, {"range": 1}],
    "VALUES (1); ": [{"col0": 1}],
    "SELECT 1 AS a -- a comment": [{"a": 1}],
    "SELECT COUNT(*) AS n FROM main.runs": [{"n": 10}],
    "SELECT UNNEST([1, 2]) AS a": [{"a": 1}, {"a": 2}],
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) FROM a": [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ],
    "SELECT 9223372036854775807 AS id, 'NaN'::DOUBLE AS x, NULL AS y, DATE '2026-10-01' AS d, "
    "[1, 2] AS l": [
        {"id": "9223372036854775807", "x": None, "y": None, "d": "2026-10-01", "l": "[1, 2]"}
    ],
}
# Each would run for hours; DuckDB does not stop the last, even if it is told to.
ENDLESS = [
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a) SELECT COUNT(*) FROM a",
    'SELECT * FROM "values" AS a, "values" AS b, "values" AS c ORDER BY RANDOM()',
    "SELECT COUNT(*) FROM RANGE(1000000000000)",
    "SELECT LEVENSHTEIN(REPEAT('a', 200000), REPEAT('b', 200000))",
]
# Each would take all memory; DuckDB does not count that of the last.
HUGE = [
    "SELECT RANGE(1000000000)",
    "SELECT STRING_AGG(REPEAT('x', 100000), '') FROM RANGE(1000000)",
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
from memhouse.queries.catalogue import use_views
from memhouse.schema.stores.by_name import open_store
store = open_store(sys.argv[1], read_only=True)
use_views(store, read_only=True)
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


@pytest.fixture(scope="module", params=["file", "lake"])
def db(request, history, tmp_path_factory):
    """The ten nights, as a file and as a lake."""
    if request.param == "lake":
        return lake_of(history, tmp_path_factory.mktemp("refused") / "lake")
    return history


@pytest.fixture(scope="module")
def asked(db, tmp_path_factory):
    with agent(db, tmp_path_factory.mktemp("agent") / "stderr") as found:
        yield found


@pytest.fixture(scope="module")
def nights_asked(history, tmp_path_factory):
    """An agent of the file alone."""
    with agent(history, tmp_path_factory.mktemp("agent") / "stderr") as found:
        yield found


@pytest.fixture(scope="module")
def store(history):
    with reading(history) as found:
        yield found


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A folder with a file that is nobody's business."""
    folder = tmp_path_factory.mktemp("there")
    (folder / "secret.csv").write_text("a,b\n1,SECRET\n")
    return folder


@pytest.mark.parametrize("query", REFUSED)
def test_what_does_more_than_select_is_refused(store, there, query):
    with pytest.raises(QueryError, match=re.escape(REFUSED[query])) as error:
        require_harmless(query.format(there=there), store)
    assert "SECRET" not in str(error.value)
    assert [path.name for path in there.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("query", [*REFUSED][::9])
def test_an_agent_is_told_why(asked, there, query):
    assert REFUSED[query] in asked.error("sql", query=query.format(there=there))


@pytest.mark.parametrize("query", ANSWERED)
def test_what_only_selects_is_not_refused(store, query):
    require_harmless(query, store)


def test_what_only_selects_is_answered(asked):
    for query, rows in [*ANSWERED.items()][-2:]:
        assert asked.ask("sql", query=query).rows("result") == rows, query


def test_behind_the_guard_the_connection_is_confined(db, there):
    require_confined(db, there)


def test_a_lake_on_an_object_store_is_confined_too(history, bucket, there):
    memhouse.lake.init(bucket.url)
    memhouse.lake.import_file(bucket.url, history)
    bucket.server.client.put_object(Bucket=bucket.name, Key="secret.csv", Body=b"a,b")
    require_confined(bucket.url, there, f"FROM 's3://{bucket.name}/secret.csv'")
    rows = json.loads(sql(bucket.url, "SELECT COUNT(*) FROM runs", seconds=30))["result"]["rows"]
    assert rows == [[10]]


def require_confined(db, there, *more):
    queries = [query.format(there=there, db=db) for query in [*CONFINED, *more]]
    command = [sys.executable, "-c", CONFINE, str(db), *queries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    peaks, *found = done.stdout.splitlines()
    assert int(peaks) > 10
    assert len(found) == len(queries), done.stderr
    assert not [line for line in found if line.startswith("done: ")]
    assert [path.name for path in there.iterdir()] == ["secret.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("query", ENDLESS)
def test_what_runs_on_is_stopped(nights_asked, query):
    began = time.monotonic()
    said = nights_asked.error("sql", query=query, seconds=1)
    assert said == "stopped after 1 s: filter or aggregate earlier"
    # On a busy machine it takes long to start a process.
    assert time.monotonic() - began < 25


@pytest.mark.slow
@pytest.mark.parametrize("query", HUGE)
def test_what_needs_too_much_memory_is_stopped(nights_asked, query):
    assert "memory" in nights_asked.error("sql", query=query, seconds=30)


WRONG = {
    "SELECT no_such_column FROM runs": 'Referenced column "no_such_column" not found',
    "SELECT $1": "parameter",
    "SELECT 1 / 'x'": "Could not convert string 'x'",
    f"SELECT {'(' * 5000}1{')' * 5000}": "Max expression depth limit",
}


@pytest.mark.parametrize("query", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told(nights_asked, query):
    assert WRONG[query] in nights_asked.error("sql", query=query)


def test_what_is_nested_deeply_has_an_outcome(nights_asked):
    """DuckDB takes it; whether sqlglot does depends on the version of Python."""
    reply = nights_asked.ask("sql", query=f"SELECT {'ABS(' * 900}1{')' * 900}")
    expected = "the query is nested too deeply" if reply.failed else "[1]"
    assert expected in reply.text


def test_the_server_goes_on_after_a_query_that_died(nights_asked):
    asked = nights_asked
    asked.error("sql", query=HUGE[0])
    assert asked.ask("sql", query="SELECT 1 AS a").rows("result") == [{"a": 1}]


@pytest.mark.parametrize("seconds", [0, 31, 1e9, "forever"])
def test_an_agent_cannot_take_more_time(nights_asked, seconds):
    assert "seconds: " in nights_asked.error("sql", query="SELECT 1", seconds=seconds)


def test_rows_beyond_the_limit_are_told(nights_asked):
    asked = nights_asked
    found = asked.ask("sql", query="FROM range(1000)", rows=3)
    assert [row["range"] for row in found.rows("result")] == [0, 1, 2]
    assert found.said["result"]["more"].startswith("more rows than these: ")
    assert "more" not in asked.ask("sql", query="FROM range(3)", rows=3).said["result"]


WIDE = {
    "long texts": "SELECT REPEAT('x', 100000) AS a, i FROM range(300) AS t(i)",
    "many columns": f"SELECT {', '.join(f'{n} AS column_{n}' for n in range(900))}",
    "long names": f"""SELECT {", ".join(f'{n} AS "{chr(97 + n) * 3000}"' for n in range(5))}""",
    "many rows": "SELECT i, i * 1000000 AS j, 'text ' || i AS k FROM range(100000) AS t(i)",
    "long lists": "SELECT RANGE(10000) AS a FROM range(10)",
    "of four bytes each": "SELECT REPEAT('😀', 5000) AS a FROM range(100)",
    "escaped": "SELECT REPEAT(CHR(34) || CHR(92), 5000) AS a FROM range(100)",
}


@pytest.mark.parametrize("query", WIDE.values(), ids=WIDE)
def test_every_answer_is_small(nights_asked, query):
    found = nights_asked.ask("sql", query=query, rows=200)
    assert not found.failed
    assert found.rows("result")


def test_nothing_of_the_folder_that_the_server_runs_in_is_imported(history, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "memhouse").mkdir()
    monkeypatch.chdir(tmp_path)
    with agent(history, tmp_path / "stderr") as asked:
        assert asked.ask("sql", query="SELECT 1 AS a").rows("result") == [{"a": 1}]


def test_a_session_leaves_nothing_behind(history, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(history.parent.iterdir())
    with agent(history, tmp_path / "stderr") as asked:
        asked.error(
            "sql", query='SELECT * FROM "values" a, "values" b ORDER BY RANDOM()', seconds=1
        )
    assert set(history.parent.iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["stderr"]
