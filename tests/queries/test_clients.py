"""Clients of older DuckDB open the file: every view, function and example has the rows of today."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.warehouse import reading

# `make` installs the wheels here; memhouse's environment has a newer DuckDB.
CLIENTS = Path(sys.prefix) / "clients"
VERSIONS = ["1.4.5", "1.5.5"]
ROOT = Path(__file__).parents[2]
# Sums of floats differ in their last digits.
ASK = """
import duckdb, hashlib, json, sys
connection = duckdb.connect(sys.argv[1], read_only=True)
connection.execute("SET TimeZone = 'UTC'")
connection.execute("SET enable_progress_bar = false")
def told(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return [told(part) for part in value]
    return str(value)
answers = {"version": duckdb.__version__}
for name, query in json.load(sys.stdin).items():
    rows = sorted(json.dumps(told(row)) for row in connection.execute(query).fetchall())
    answers[name] = [len(rows), hashlib.sha256("".join(rows).encode()).hexdigest()]
print(json.dumps(answers))
"""


def ask(db, queries, path=""):
    done = subprocess.run(
        [sys.executable, "-c", ASK, db],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def asked(history):
    """The queries, and today's answers."""
    with reading(history) as store:
        relations = store.connection.sql(
            """SELECT schema_name, table_name FROM duckdb_tables() UNION ALL
            SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"""
        ).fetchall()
    queries = {f"{schema}.{name}": f'FROM {schema}."{name}"' for schema, name in relations}
    examples = (ROOT / "queries/examples.sql").read_text()
    written = re.findall(r"^-- (\w+): ([^\n]+)\n(.+?);$", examples, re.M | re.S)
    queries |= {f"{name}: {title}": query for name, title, query in written}
    # Grafana puts a condition there, and the nights have no branch.
    recipes = re.findall(r"^```sql\n(.+?)^```", (ROOT / "docs/clients.md").read_text(), re.M | re.S)
    for query in recipes:
        queries[query] = query.replace("$__timeFilter(run_at)", "TRUE").replace("'main'", "''")
    answers = ask(history, queries)
    assert [answers[query][0] for query in recipes] == [4 * 10 - 1]
    return queries, answers


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_client_has_the_same_rows(history, asked, version):
    queries, expected = asked
    found = ask(history, queries, CLIENTS / version)
    assert found.pop("version") == version
    assert len(found) > 200
    assert [name for name in found if found[name] != expected[name]] == []


def test_the_file_says_the_oldest_client(history):
    with reading(history) as store:
        query = "SELECT tags FROM duckdb_databases() WHERE database_name = current_database()"
        ((tags,),) = store.connection.sql(query).fetchall()
    assert "v1.4.0" in str(tags)
