"""Warehouses of every released schema version open, upgrade, verify and can be gone on with."""

import duckdb
import pytest

from memhouse.schema.stores.duckdb import open_file
from memhouse.schema.versions import LAYOUTS, READER_VERSION, SCHEMA_VERSION, layout_digest

from ..support.command import run_memhouse
from ..support.upgrade_samples import DATA, SAMPLES, WAREHOUSES, unpack, write_sample
from ..support.warehouse import content, everything, fill, rows

VERSIONS = sorted(WAREHOUSES.glob("v*.duckdb.zst"))
MAKE = "`make warehouse-sample` writes that of this version"
# What older readers, other checkouts and older views told of the same dumps.
OWN_COLUMNS = (
    *("claimed_at", "source", "reader_version"),
    *("is_root", "parameter_number", "tuple_index", "fusion_kind", "attributes"),
    *("source_file", "source_line", "source_frame_id", "library_file", "library_line"),
    *("module_path", "fold"),
    *("flops", "unknown_loops", "executions", "trip_count"),
)
OWN_TABLES = dict.fromkeys(("view_set", "schema_version"), ())
# What older readers told otherwise of the same dumps, or not at all.
READ_TABLES = dict.fromkeys(("kernel_parts", "peak_parts", "traits"), ())


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
    open_file(str(db)).close()


def layout(db):
    """Every table and column with its type and comment."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.sql(
            """SELECT table_name, column_name, data_type, is_nullable, duckdb_columns.comment,
                duckdb_tables.comment
            FROM duckdb_columns() LEFT JOIN duckdb_tables() USING (table_name)
            WHERE table_name = 'instructions' OR table_name IN
                (SELECT table_name FROM duckdb_tables())
            ORDER BY table_name, column_name"""
        ).fetchall()


def test_every_version_has_its_warehouse():
    assert set(LAYOUTS) == set(range(1, SCHEMA_VERSION + 1))
    # What versions 2 to 6 need is done to version 1 as well.
    assert set(map(version, VERSIONS)) == set(LAYOUTS) - {2, 3, 4, 5, 6}, MAKE
    assert all(path.stat().st_size < 400 << 10 for path in VERSIONS)


def test_its_tables_are_those_that_layouts_names(released):
    db, number = released
    names = {name for name, *_ in layout(db)}
    assert names > {"runs", "modules", "schema_version"}
    with duckdb.connect(str(db), read_only=True) as connection:
        columns = connection.sql(
            """SELECT table_name, column_name, data_type FROM duckdb_columns()
            WHERE list_has_any(
                [table_name, '_' || table_name], (SELECT list(table_name) FROM duckdb_tables())
            )"""
        ).fetchall()
    assert layout_digest(columns) == LAYOUTS[number], "the sample of a version does not change"


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
        assert f"version {number}" in line
        assert "`memhouse ingest`" in line
    assert db.read_bytes() == before


def test_opened_for_writing_it_is_upgraded(released, fresh):
    db, _ = released
    upgrade(db)
    version = (SCHEMA_VERSION, LAYOUTS[SCHEMA_VERSION])
    assert rows(db, "SELECT version, layout FROM schema_version") == [version]
    assert layout(db) == layout(fresh), MAKE
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_a_table_that_no_version_had_is_refused_and_left_alone(released):
    """A memhouse between two releases may have written it."""
    db, number = released
    with duckdb.connect(str(db)) as connection:
        connection.execute("ALTER TABLE modules ADD COLUMN mood TEXT")
        if number > 1:
            connection.execute("UPDATE schema_version SET layout = 'another'")
    before = db.read_bytes()
    for command in (["peaks"], ["ingest", DATA / "dumps" / SAMPLES[0]]):
        run = run_memhouse(*command, "--db", db)
        assert (run.returncode, run.stdout) == (1, "")
        (line,) = run.stderr.splitlines()
        assert line.startswith(f"error: {db} ")
        assert db.read_bytes() == before


def test_the_journal_tells_of_each_run_and_of_the_upgrade(released):
    db, number = released
    upgrade(db)
    told = rows(db, "SELECT action, run_id FROM journal ORDER BY entry")
    upgrades = [] if number == SCHEMA_VERSION else [("upgrade", None)]
    assert told == [*(("ingest", sample.split("/")[1]) for sample in SAMPLES), *upgrades]
    assert rows(db, "SELECT DISTINCT run_at = TIMESTAMPTZ '2026-10-01 00:00:00Z' FROM runs") == [
        (True,)
    ]
    assert len(rows(db, "SELECT run_id, host, source FROM run_parts WHERE host IS NULL")) == 3


def test_ingesting_the_same_dumps_again_changes_at_most_what_older_readers_read(released, fresh):
    db, number = released
    upgrade(db)
    paths = [DATA / "dumps" / sample for sample in SAMPLES]
    ((reader,),) = rows(db, "SELECT MIN(reader_version) FROM modules")
    if number < SCHEMA_VERSION or reader < READER_VERSION:
        for summary in fill(db, *paths):
            assert len(summary.notes) == (reader < READER_VERSION)
    before = everything(db)
    for summary in fill(db, *paths):
        assert summary.problems == []
        assert summary.dumps == summary.unchanged > 0
    after = everything(db)
    # Another set of views is another memhouse, no other content.
    assert {**after, "view_set": []} == {**before, "view_set": []}
    columns = ("claimed_at", "source")
    assert content(db, *columns) | OWN_TABLES == content(fresh, *columns) | OWN_TABLES


def test_it_has_what_this_version_makes_of_the_same_dumps(released, fresh):
    db, _ = released
    upgrade(db)
    found, expected = content(db, *OWN_COLUMNS), content(fresh, *OWN_COLUMNS)
    left_out = OWN_TABLES | READ_TABLES
    assert found | left_out == expected | left_out, MAKE
