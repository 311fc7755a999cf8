"""`memhouse sql` reads; with --write it changes the warehouse, wholly or not at all."""

import pytest

from ..support.command import run_memhouse
from ..support.dumps import one_file
from ..support.warehouse import everything, fill, rows


@pytest.fixture
def small(db):
    fill(db, one_file("seeds/002*"), labels={"branch": "main"})
    return db


def write(db, query, *options, stdin=None):
    run = run_memhouse("sql", "--write", query, "--db", db, *options, stdin=stdin)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def test_with_write_it_is_committed(small):
    assert write(small, "UPDATE runs SET source = 'x'", "-f", "csv") == ("Count\n1\n", "")
    assert write(small, "CREATE TABLE mine (a INTEGER)") == ("", "done\n")
    assert (
        write(small, "INSERT INTO mine VALUES (1), (2) RETURNING a", "-f", "csv")[0] == "a\n1\n2\n"
    )
    assert write(small, "-", stdin="DELETE FROM mine WHERE a = 1;\n")[1] == ""
    assert rows(small, "SELECT source, a FROM runs, mine") == [("x", 2)]


def test_of_what_fails_nothing_is_done(small):
    before = everything(small)
    for query in ("SELEC 1", "DELETE FROM nights", "INSERT INTO runs SELECT * FROM runs",
                  "\nSELECT 'x'::INTEGER"):  # fmt: skip
        run = run_memhouse("sql", "--write", f"DELETE FROM run_labels; {query}", "--db", small)
        assert (run.returncode, run.stdout) == (2, ""), query
        (line,) = run.stderr.splitlines()
        assert line.startswith("error: ")
        assert everything(small) == before


def test_the_history_follows_what_was_written(small):
    (before,) = rows(small, "SELECT COUNT(*) FROM history")
    assert before[0] > 0
    write(small, "DELETE FROM dumps")
    assert rows(small, "SELECT COUNT(*) FROM history") == [(0,)]


def test_it_makes_no_warehouse(db):
    run = run_memhouse("sql", "--write", "SELECT 1", "--db", db)
    assert run.returncode == 1
    assert str(db) in run.stderr
    assert list(db.parent.iterdir()) == []
