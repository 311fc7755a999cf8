"""Warehouses of every released schema version open, upgrade, verify and can be gone on with."""

import duckdb
import pytest

from memhouse.schema.stores.duckdb import open_store
from memhouse.schema.stores.duckdb_file import schema_version

from ..support.command import run_memhouse
from ..support.upgrade_samples import DATA, SAMPLES, WAREHOUSES, unpack, write_sample
from ..support.warehouse import everything, fill, rows

SCHEMA_VERSION = schema_version()
VERSIONS = sorted(WAREHOUSES.glob("v*.duckdb.zst"))
MAKE = "`make warehouse-sample` writes it anew"


def version(path):
    return int(path.name.split(".")[0].removeprefix("v"))


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def released(request, db):
    """A copy of the warehouse of a released version, and that version."""
    unpack(request.param, db)
    return db, version(request.param)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The same warehouse as this version makes it."""
    db = tmp_path_factory.mktemp("fresh") / "fresh.duckdb"
    write_sample(db)
    return db


def upgrade(db):
    open_store(str(db)).close()


def layout(db):
    """Every table and column with its type and comment."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.sql(
            """SELECT table_name, column_name, data_type, is_nullable, duckdb_columns.comment,
                duckdb_tables.comment
            FROM duckdb_columns() INNER JOIN duckdb_tables() USING (table_name)
            ORDER BY table_name, column_name"""
        ).fetchall()


def test_every_version_has_its_warehouse():
    assert set(map(version, VERSIONS)) == set(range(1, SCHEMA_VERSION + 1)), MAKE
    assert all(path.stat().st_size < 400 << 10 for path in VERSIONS)


def test_opened_for_reading_it_answers_or_says_what_to_do(released):
    db, number = released
    before = db.read_bytes()
    run = run_memhouse("peaks", "--db", db)
    if number == SCHEMA_VERSION:
        assert (run.returncode, run.stderr) == (0, "")
        assert "jit_mixed" in run.stdout
    else:
        assert run.returncode == 1
        (line,) = run.stderr.splitlines()
        assert f"has the older schema version {number}: any `memhouse ingest`" in line
    assert db.read_bytes() == before


def test_opened_for_writing_it_is_upgraded(released, fresh):
    db, _ = released
    upgrade(db)
    assert rows(db, "SELECT version FROM schema_version") == [(SCHEMA_VERSION,)]
    assert layout(db) == layout(fresh), MAKE
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_ingesting_the_same_dumps_again_changes_nothing(released):
    db, _ = released
    upgrade(db)
    before = everything(db)
    for summary in fill(db, *(DATA / "dumps" / sample for sample in SAMPLES)):
        assert summary.problems == []
        assert summary.dumps == summary.unchanged > 0
    after = everything(db)
    # Another set of views is another memhouse, no other content.
    assert {**after, "view_set": []} == {**before, "view_set": []}


def test_it_has_what_this_version_makes_of_the_same_dumps(released, fresh):
    db, _ = released
    upgrade(db)
    found, expected = everything(db), everything(fresh)
    assert {**found, "view_set": []} == {**expected, "view_set": []}, MAKE
