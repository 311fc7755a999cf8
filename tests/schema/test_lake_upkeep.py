"""Keeping a lake: compaction, vacuum, and rows between it and a DuckDB file."""

import os
import shutil
import time
import uuid
from pathlib import Path

import duckdb
import pytest

import memhouse
import memhouse.lake
from memhouse.schema import arrow
from memhouse.schema.errors import UsageError, WarehouseError
from memhouse.schema.lake import data_files as portions
from memhouse.schema.lake import upkeep as compaction
from memhouse.schema.lake.data_files import relations
from memhouse.schema.lake.snapshot import Lake

from ..support.command import run_memhouse
from ..support.warehouse import everything

# Each store numbers runs and notes times of its own.
OF_INGEST = ("run_seq", "ingested_at", "entered_at", "tool_version")
OLD = time.time() - 30 * 86400


# Of the ten nights enough: one program that changes twice, and one that never does.
NIGHTS = ["2026-10-01", "2026-10-05", "2026-10-08"]


@pytest.fixture(scope="module")
def three(tmp_path_factory, nights):
    """Three nights, as folders, and a lake and a file that they were ingested into. Only read."""
    folder = tmp_path_factory.mktemp("upkeep")
    for night in NIGHTS:
        for workload in ("decode-v5e", "llama-cpu"):
            shutil.copytree(nights / night / workload, folder / "nights" / night / workload)
    for place in (folder / "file.duckdb", memhouse.lake.init(folder / "lake")):
        with memhouse.open(place) as warehouse:
            for night in NIGHTS:
                warehouse.ingest(folder / "nights" / night)
    return folder


@pytest.fixture
def lake(three, tmp_path):
    """A copy of the lake, to write to."""
    return shutil.copytree(three / "lake", tmp_path / "lake")


@pytest.fixture
def file(three):
    """The same rows in a file. Only read it."""
    return three / "file.duckdb"


@pytest.fixture(scope="module")
def expected(three):
    """What `rows_of` tells of both."""
    return rows_of(three / "file.duckdb")


@pytest.fixture
def empty(tmp_path):
    """A lake without rows."""
    return Path(memhouse.lake.init(tmp_path / "empty"))


def compact(lake):
    with memhouse.open(lake) as warehouse:
        return warehouse.compact()


def snapshot(lake):
    return Lake(str(lake)).snapshot


def is_history_current(lake):
    with memhouse.open(lake, read_only=True) as warehouse:
        assert len(warehouse.sql("FROM history")) > 0
        return not warehouse._store._history_is_old


def orphan(lake):
    """A file that a dead writer left."""
    path = lake / "relation=values/orphan.parquet"
    shutil.copy(next(lake.glob("relation=values/*")), path)
    os.utime(path, (OLD, OLD))
    return path


def rows_of(place):
    """Of every table but the journal, how many rows it has and a sum of their hashes."""
    names = [name for name in relations() if name != "journal"]
    with memhouse.open(place, read_only=True) as warehouse:
        return {name: tuple(warehouse.sql(sums(name)).arrow().to_pylist()) for name in names}


def sums(name):
    columns = [f'"{column}"' for column in arrow.schema(name).names if column not in OF_INGEST]
    hashes = f"SUM(HASH({', '.join(columns)})::HUGEINT)::VARCHAR"
    return f'SELECT COUNT(*) AS n, {hashes} AS hashes FROM "{name}"'


def data_files(folder):
    return {str(path.relative_to(folder)) for path in folder.glob("relation=*/*")}


# --- compaction -----------------------------------------------------------------------------


def test_compaction_keeps_every_row_in_one_file_a_relation(lake, expected):
    compact(lake)
    assert rows_of(lake) == expected
    now = snapshot(lake)
    assert {name: len(found) for name, found in now.files.items() if len(found) > 1} == {}
    assert is_history_current(lake)
    (values,) = now.of("values")
    modules = duckdb.sql(f"SELECT module_id FROM '{lake / values.path}'").fetchall()
    assert modules == sorted(modules)
    # Again, there is nothing to do, and nothing is entered.
    with memhouse.open(lake) as warehouse:
        entries = len(warehouse.log())
        done = warehouse.compact()
        assert len(warehouse.log()) == entries
    assert done.before_bytes == done.after_bytes
    assert snapshot(lake).version == now.version


@pytest.mark.scheduled
def test_what_does_not_fit_into_memory_becomes_several_files(
    lake, empty, file, expected, monkeypatch
):
    monkeypatch.setattr(portions, "_MOST_CELLS", 100_000)
    compact(lake)
    memhouse.lake.import_file(empty, file)
    for place in (lake, empty):
        assert rows_of(place) == expected
        assert len(snapshot(place).of("instructions")) > 1


@pytest.mark.scheduled
def test_a_compaction_that_others_overtake_merges_nothing_twice(lake, three, monkeypatch):
    """A writer stores a run, deletes one, or compacts, between the merge and the commit."""
    commit = compaction.commit
    write = compaction.write_file

    def change(warehouse):
        warehouse.prune([NIGHTS[0]])
        warehouse.ingest(three / "nights" / NIGHTS[0], run="again")

    for overtake in (change, lambda other: other.compact()):
        written, overtaken = [], []

        def overtaking(*args, overtake=overtake, overtaken=overtaken):
            if not overtaken:
                overtaken.append(args)
                with memhouse.open(lake) as other:
                    overtake(other)
            return commit(*args)

        def noting(*args, written=written):
            written.append(args[1])
            return write(*args)

        with monkeypatch.context() as patched:
            patched.setattr(compaction, "commit", overtaking)
            if overtake is change:
                patched.setattr(compaction, "write_file", noting)
            compact(lake)
        assert overtaken
        assert sorted(written) == sorted(set(written))
        with memhouse.open(lake) as warehouse:
            assert len(warehouse.verify().rows) == 0
            assert len(warehouse.runs()) == 3
            warehouse.label("again", labels={"more": "files"})


# --- vacuum ---------------------------------------------------------------------------------


def test_vacuum_deletes_what_dead_writers_left_and_no_more(lake, expected):
    dead, at_work = orphan(lake), lake / "relation=values/new.parquet"
    shutil.copy(dead, at_work)
    version, files = snapshot(lake).version, data_files(lake)
    told = run_memhouse("lake", "vacuum", "--db", lake, "--dry-run")
    assert told.stdout == "relation=values/orphan.parquet\n"
    assert (snapshot(lake).version, data_files(lake)) == (version, files)
    for wrong in ("", "7", "-1d", "7 months", "1e9d"):
        with pytest.raises(UsageError):
            memhouse.lake.vacuum(lake, wrong)
    assert data_files(lake) == files
    gone = memhouse.lake.vacuum(lake)
    assert list(gone.files) == ["relation=values/orphan.parquet"]
    assert gone.size_bytes > 0
    assert not dead.exists()
    assert at_work.exists()
    assert rows_of(lake) == expected
    assert is_history_current(lake)


def test_merged_files_stay_for_readers_until_the_retention_is_over(lake, expected):
    compact(lake)
    before = data_files(lake)
    memhouse.lake.vacuum(lake)
    assert data_files(lake) == before
    # A short retention would delete the files of writers at work: it must be forced.
    done = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "7h")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--force" in done.stderr
    told = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "0h", "--dry-run")
    assert (told.returncode, data_files(lake)) == (0, before)
    assert told.stdout.splitlines()
    done = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "0h", "--force")
    assert (done.returncode, data_files(lake)) == (0, snapshot(lake).paths)
    assert rows_of(lake) == expected
    # What is deleted is not told again.
    version = snapshot(lake).version
    assert memhouse.lake.vacuum(lake, "0h", force=True, dry_run=True).files == []
    assert memhouse.lake.vacuum(lake, "0h", force=True).files == []
    assert snapshot(lake).version == version


# --- export ---------------------------------------------------------------------------------


@pytest.mark.scheduled
def test_the_exported_file_holds_every_row_and_is_a_warehouse_like_any_other(
    lake, file, expected, three, db
):
    with memhouse.open(lake, read_only=True) as warehouse:
        entries = len(warehouse.log())
    counted = sum(found["n"] for (found,) in expected.values()) + entries
    assert memhouse.lake.export_file(lake, db) == counted > 0
    assert rows_of(db) == rows_of(lake) == expected
    structure = "SELECT table_name, sql, comment FROM duckdb_tables() ORDER BY 1"
    views = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY 1"
    for query in (structure, views):
        with duckdb.connect(str(db)) as one, duckdb.connect(str(file)) as other:
            assert one.sql(query).fetchall() == other.sql(query).fetchall()
    with memhouse.open(db) as warehouse:
        warehouse.ingest(three / "nights" / NIGHTS[0], run="again")
        assert len(warehouse.verify().rows) == 0
    # It is not written over.
    before = everything(db)
    with pytest.raises(WarehouseError, match=str(db)):
        memhouse.lake.export_file(lake, db)
    assert everything(db) == before


def test_an_export_that_fails_leaves_nothing(lake, tmp_path):
    victim = max(lake.glob("relation=uses/*"))
    victim.write_bytes(victim.read_bytes()[:100])
    target = tmp_path / "out" / "new.duckdb"
    target.parent.mkdir()
    done = run_memhouse("lake", "export", target, "--db", lake)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert list(target.parent.iterdir()) == []


# --- import ---------------------------------------------------------------------------------


def test_an_imported_file_is_the_lake(empty, file, expected, monkeypatch):
    """In one commit and one of the history, also after an import that was killed."""

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("memhouse.schema.stores.delta.plan", killed)
        with pytest.raises(KeyboardInterrupt):
            memhouse.lake.import_file(empty, file)
    assert snapshot(empty).files == {}
    before = snapshot(empty).version
    assert memhouse.lake.import_file(empty, file) == NIGHTS
    assert rows_of(empty) == expected
    assert snapshot(empty).version == before + 2
    assert memhouse.lake.import_file(empty, file) == []
    assert snapshot(empty).version == before + 2


@pytest.mark.scheduled
def test_runs_that_the_lake_has_are_not_stored_again(lake, empty, file, expected, three):
    with memhouse.open(lake) as warehouse:
        warehouse.prune([NIGHTS[0], NIGHTS[2]])
    assert memhouse.lake.import_file(lake, file) == [NIGHTS[0], NIGHTS[2]]
    assert rows_of(lake) == expected
    # Where a number is taken, runs follow those of the lake.
    with memhouse.open(empty) as warehouse:
        warehouse.ingest(three / "nights" / NIGHTS[1], run="first")
    memhouse.lake.import_file(empty, file)
    with memhouse.open(empty, read_only=True) as warehouse:
        found = warehouse.sql("SELECT run_id, run_seq FROM runs ORDER BY run_seq").arrow()
    assert found["run_id"].to_pylist() == ["first", *NIGHTS]
    assert len(set(found["run_seq"].to_pylist())) == 4


def test_a_run_with_other_rows_is_refused_and_nothing_is_stored(lake, file, expected, tmp_path):
    other = shutil.copy(file, tmp_path / "other.duckdb")
    with memhouse.open(other) as warehouse:
        warehouse.label(NIGHTS[1], labels={"branch": "mine"})
        warehouse.prune([NIGHTS[0]])
    version = snapshot(lake).version
    done = run_memhouse("lake", "import", other, "--db", lake)
    assert done.returncode == 1
    assert NIGHTS[1] in done.stderr
    assert "run_labels" in done.stderr
    assert snapshot(lake).version == version
    assert rows_of(lake) == expected


def test_what_is_no_file_of_a_warehouse_or_no_lake_is_told_in_a_line(empty, file, tmp_path):
    text = tmp_path / "text.duckdb"
    text.write_text("not a database, but long enough to look at" * 100)
    for name in (tmp_path / "absent.duckdb", text, ":memory:"):
        done = run_memhouse("lake", "import", name, "--db", empty)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert str(name) in done.stderr
    for command in ("vacuum", "ddl", "compact", "import x", "export y"):
        done = run_memhouse("lake", *command.split(), "--db", file)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert done.stderr.startswith(f"error: {file} is ")


# --- all of it in a bucket ------------------------------------------------------------------


@pytest.mark.scheduled
def test_a_lake_in_a_bucket_is_kept_alike(bucket, file, expected, three, db):
    memhouse.lake.init(bucket.url)
    memhouse.lake.import_file(bucket.url, file)
    with memhouse.open(bucket.url) as warehouse:
        warehouse.prune([NIGHTS[2]])
        warehouse.ingest(three / "nights" / NIGHTS[2])
        assert rows_of(bucket.url) == expected
        warehouse.compact()
    left = f"memhouse/relation=values/{uuid.uuid4().hex}.parquet"
    bucket.server.client.put_object(Bucket=bucket.name, Key=left, Body=b"of a dead writer")
    assert memhouse.lake.vacuum(bucket.url).files == []
    gone = memhouse.lake.vacuum(bucket.url, "0h", force=True)
    assert left.removeprefix("memhouse/") in gone.files
    keys = bucket.keys()
    assert {f"memhouse/{path}" for path in snapshot(bucket.url).paths} == {
        key for key in keys if "relation=" in key
    }
    assert rows_of(bucket.url) == expected
    assert memhouse.lake.export_file(bucket.url, db) > 0
    assert rows_of(db) == expected
