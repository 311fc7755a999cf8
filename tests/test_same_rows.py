"""`benchmarks/same_rows.py` tells which rows of two warehouses differ."""

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from .support.dumps import DUMPS

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "same_rows.py"
MADE = """
CREATE TABLE modules (module_id BIGINT);
CREATE TABLE dumps (dump_id BIGINT, module_id BIGINT, ingested_at TIMESTAMP);
CREATE TABLE uses (module_id BIGINT, name VARCHAR);
CREATE VIEW named AS SELECT module_id, name FROM uses WHERE name <> 'hidden';
INSERT INTO modules FROM range(20);
INSERT INTO dumps SELECT range, range, now() FROM range(20);
INSERT INTO uses VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, NULL);
"""


def made(path, change=""):
    """A small warehouse, with what changes it."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(MADE + change)
    return path


def same_rows(*arguments):
    command = [*map(str, [sys.executable, SCRIPT, *arguments])]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def a(tmp_path):
    return made(tmp_path / "a.duckdb")


def test_the_order_of_rows_and_the_time_of_ingest_do_not_count(a, tmp_path):
    change = "DELETE FROM uses WHERE name = 'b'; INSERT INTO uses VALUES (2, 'b')"
    done = same_rows(a, made(tmp_path / "b.duckdb", change), "--views")
    assert (done.returncode, done.stdout) == (0, "the warehouses have the same rows\n")


@pytest.mark.parametrize(
    ("change", "said", "example"),
    [
        # How often a row is there counts.
        ("INSERT INTO uses VALUES (2, 'b')", "0 rows only in A, 1 only in B", "B"),
        ("DELETE FROM uses WHERE name = 'b'", "1 rows only in A, 0 only in B", "A"),
        ("UPDATE uses SET name = 'c' WHERE name = 'b'", "1 rows only in A, 1 only in B", "A"),
    ],
)
def test_rows_that_differ_are_counted_and_shown(a, tmp_path, change, said, example):
    done = same_rows(a, made(tmp_path / "b.duckdb", change))
    assert done.returncode == 1
    first, second, *_, last = done.stdout.splitlines()
    assert first == f"table uses: {said}"
    assert second == f"  an example from {example}: {{'module_id': 2, 'name': 'b'}}"
    assert last == "the warehouses differ"


def test_views_are_compared_when_asked(a, tmp_path):
    b = made(tmp_path / "b.duckdb", "CREATE OR REPLACE VIEW named AS FROM uses WHERE name = 'a'")
    assert same_rows(a, b).returncode == 0
    done = same_rows(a, b, "--views")
    assert done.stdout.startswith("view named: 1 rows only in A, 0 only in B\n")


def test_the_last_digit_of_a_float_in_a_view_does_not_count(a, tmp_path):
    view = "CREATE OR REPLACE VIEW named AS SELECT {}::DOUBLE AS share"
    with duckdb.connect(str(a)) as connection:
        connection.execute(view.format("0.9999934899647804"))
    b = made(tmp_path / "b.duckdb", view.format("0.9999934899647805"))
    assert same_rows(a, b, "--views").returncode == 0
    c = made(tmp_path / "c.duckdb", view.format("0.99998"))
    assert same_rows(a, c, "--views").returncode == 1


def test_tables_and_columns_of_one_warehouse_are_named(a, tmp_path):
    change = "CREATE TABLE more (n BIGINT); ALTER TABLE modules ADD COLUMN size BIGINT"
    done = same_rows(a, made(tmp_path / "b.duckdb", change))
    assert done.stdout.splitlines() == [
        "table modules: column size only in B",
        "table more: only in B",
        "the warehouses differ",
    ]


def test_a_file_that_is_no_warehouse_is_named(a, tmp_path):
    other = tmp_path / "other.duckdb"
    other.write_text("no database " * 1000)
    done = same_rows(a, other)
    assert done.returncode == 1
    assert "other.duckdb" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_warehouse_and_its_copy(tmp_path):
    a, b = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    memhouse = Path(sys.executable).parent / "memhouse"
    command = [memhouse, "ingest", "--db", a, DUMPS / "seeds"]
    subprocess.run(command, check=True, capture_output=True)
    shutil.copyfile(a, b)
    assert same_rows(a, b, "--views").returncode == 0
    with duckdb.connect(str(b)) as connection:
        connection.execute("UPDATE dumps SET workload = 'other'")
    assert "table dumps: 5 rows only in A, 5 only in B" in same_rows(a, b).stdout
