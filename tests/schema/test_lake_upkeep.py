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
from memhouse.schema.lake import compaction, portions
from memhouse.schema.lake.layout import relations
from memhouse.schema.lake.snapshot import Lake

from ..support.command import run_memhouse
from ..support.warehouse import everything

# Each store numbers runs and notes times of its own.
OF_INGEST = ("run_seq", "ingested_at", "entered_at", "tool_version")
OLD = time.time() - 30 * 86400


@pytest.fixture(scope="module")
def of_nights(tmp_path_factory, nights):
    """A lake of ten nights, ingested one by one. Only read it."""
    folder = tmp_path_factory.mktemp("lakes") / "lake"
    memhouse.lake.init(folder)
    with memhouse.open(folder) as warehouse:
        for night in sorted(nights.iterdir()):
            warehouse.ingest(night)
    return folder


@pytest.fixture
def lake(of_nights, tmp_path):
    """A copy of it, to write to."""
    return shutil.copytree(of_nights, tmp_path / "lake")


@pytest.fixture
def empty(tmp_path):
    """A lake without rows."""
    return Path(memhouse.lake.init(tmp_path / "empty"))


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


def test_compaction_keeps_every_row_in_one_file_a_relation(lake):
    before = rows_of(lake)
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    assert rows_of(lake) == before
    files = Lake(str(lake)).snapshot.files
    assert {name: len(found) for name, found in files.items() if len(found) > 1} == {}


def test_a_compacted_lake_is_left_as_it_is(lake):
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
        version = Lake(str(lake)).snapshot.version
        entries = len(warehouse.log())
        done = warehouse.compact()
        assert len(warehouse.log()) == entries
    assert done.before_bytes == done.after_bytes
    assert Lake(str(lake)).snapshot.version == version


def test_the_stored_history_stays_current(lake):
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    with memhouse.open(lake, read_only=True) as warehouse:
        assert len(warehouse.sql("FROM history")) > 0
        assert not warehouse._store._history_is_old


def test_what_does_not_fit_into_memory_becomes_several_files(lake, monkeypatch):
    before = rows_of(lake)
    monkeypatch.setattr(portions, "_MOST_CELLS", 300_000)
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    assert rows_of(lake) == before
    files = Lake(str(lake)).snapshot.of("instructions")
    assert len(files) > 1


def test_a_merged_file_is_sorted_by_module(lake):
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    (file,) = Lake(str(lake)).snapshot.of("values")
    modules = duckdb.sql(f"SELECT module_id FROM '{lake / file.path}'").fetchall()
    assert modules == sorted(modules)


@pytest.mark.slow
def test_a_compaction_that_others_overtake_merges_nothing_twice(lake, nights, monkeypatch):
    """A writer stores a run, and another deletes one, between the merge and the commit."""
    written = []
    commit = compaction.commit
    write = compaction.write_file

    def overtaken(*args):
        with memhouse.open(lake) as other:
            other.prune(["2026-10-01"])
            other.ingest(nights / "2026-10-01", run="again")
        return commit(*args)

    monkeypatch.setattr(compaction, "commit", overtaken)
    monkeypatch.setattr(
        compaction, "write_file", lambda *args: written.append(args[1]) or write(*args)
    )
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    assert sorted(written) == sorted(set(written))
    verified = run_memhouse("verify", "--db", lake)
    assert "no breaches" in verified.stderr, verified.stdout
    with memhouse.open(lake, read_only=True) as warehouse:
        assert len(warehouse.runs()) == 10


@pytest.mark.slow
def test_two_compactions_at_once_keep_every_row_once(lake, monkeypatch):
    before = rows_of(lake)
    commit = compaction.commit
    others = []

    def overtaken(*args):
        if not others:
            others.append(1)
            with memhouse.open(lake) as other:
                other.compact()
        return commit(*args)

    monkeypatch.setattr(compaction, "commit", overtaken)
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    assert others
    assert rows_of(lake) == before


# --- vacuum ---------------------------------------------------------------------------------


def test_vacuum_deletes_what_dead_writers_left_and_no_more(lake):
    before = rows_of(lake)
    orphan = lake / "relation=values/orphan.parquet"
    shutil.copy(next(lake.glob("relation=values/*")), orphan)
    os.utime(orphan, (OLD, OLD))
    gone = memhouse.lake.vacuum(lake)
    assert list(gone.files) == ["relation=values/orphan.parquet"]
    assert gone.size_bytes > 0
    assert not orphan.exists()
    assert rows_of(lake) == before


def test_files_of_a_writer_at_work_stay(lake):
    orphan = lake / "relation=values/new.parquet"
    shutil.copy(next(lake.glob("relation=values/*")), orphan)
    assert memhouse.lake.vacuum(lake).files == []
    assert orphan.exists()


def test_merged_files_stay_for_readers_until_the_retention_is_over(lake):
    before_rows = rows_of(lake)
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    before = data_files(lake)
    memhouse.lake.vacuum(lake)
    assert data_files(lake) == before
    memhouse.lake.vacuum(lake, "0h", force=True)
    assert data_files(lake) == Lake(str(lake)).snapshot.paths
    assert rows_of(lake) == before_rows


def test_what_an_earlier_vacuum_deleted_is_not_told_again(lake):
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    assert memhouse.lake.vacuum(lake, "0h", force=True).files != []
    version = Lake(str(lake)).snapshot.version
    assert memhouse.lake.vacuum(lake, "0h", force=True, dry_run=True).files == []
    assert memhouse.lake.vacuum(lake, "0h", force=True).files == []
    assert Lake(str(lake)).snapshot.version == version


def test_a_short_retention_must_be_forced(lake):
    """It would delete the files of writers at work, as Delta's own vacuum says."""
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    before = data_files(lake)
    done = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "7h")
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.replace("│", "").split())
    assert "7h is less than 7d" in said
    assert "force it with --force (in Python force=True) if nobody does" in said
    assert data_files(lake) == before
    told = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "0h", "--dry-run")
    assert (told.returncode, data_files(lake)) == (0, before)
    done = run_memhouse("lake", "vacuum", "--db", lake, "--retention", "0h", "--force")
    assert (done.returncode, data_files(lake)) == (0, Lake(str(lake)).snapshot.paths)


def test_a_dry_run_only_says_what_would_go(lake):
    shutil.copy(next(lake.glob("relation=values/*")), lake / "relation=values/orphan.parquet")
    os.utime(lake / "relation=values/orphan.parquet", (OLD, OLD))
    version, before = Lake(str(lake)).snapshot.version, data_files(lake)
    told = run_memhouse("lake", "vacuum", "--db", lake, "--dry-run")
    assert told.stdout == "relation=values/orphan.parquet\n"
    assert told.stderr.startswith("would delete 1 file, ")
    assert data_files(lake) == before
    assert Lake(str(lake)).snapshot.version == version


def test_vacuum_keeps_the_history_current(lake):
    shutil.copy(next(lake.glob("relation=values/*")), lake / "relation=values/orphan.parquet")
    os.utime(lake / "relation=values/orphan.parquet", (OLD, OLD))
    memhouse.lake.vacuum(lake)
    with memhouse.open(lake, read_only=True) as warehouse:
        assert len(warehouse.sql("FROM history")) > 0
        assert not warehouse._store._history_is_old


@pytest.mark.parametrize("text", ["", "7", "-1d", "7 months", "1e9d"])
def test_a_wrong_retention_deletes_nothing(lake, text):
    with pytest.raises(UsageError, match="use 12h, 7d or 2w"):
        memhouse.lake.vacuum(lake, text)


# --- export ---------------------------------------------------------------------------------


def test_the_exported_file_holds_every_row(lake, db):
    with memhouse.open(lake, read_only=True) as warehouse:
        entries = len(warehouse.log())
    counted = sum(found["n"] for (found,) in rows_of(lake).values()) + entries
    assert memhouse.lake.export_file(lake, db) == counted > 0
    assert rows_of(db) == rows_of(lake)


@pytest.mark.slow
def test_the_exported_file_is_a_warehouse_like_any_other(lake, db, history, nights):
    memhouse.lake.export_file(lake, db)
    structure = "SELECT table_name, sql, comment FROM duckdb_tables() ORDER BY 1"
    views = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY 1"
    for query in (structure, views):
        with duckdb.connect(str(db)) as one, duckdb.connect(str(history)) as other:
            assert one.sql(query).fetchall() == other.sql(query).fetchall()
    done = run_memhouse("ingest", "--db", db, nights / "2026-10-01", "--run", "again")
    assert done.returncode == 0
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_a_file_that_is_there_is_not_written_over(lake, history, tmp_path):
    there = shutil.copy(history, tmp_path / "there.duckdb")
    before = everything(there)
    with pytest.raises(WarehouseError, match="is there already: name a file that is not"):
        memhouse.lake.export_file(lake, there)
    assert everything(there) == before


def test_an_export_that_fails_leaves_nothing(lake, tmp_path):
    victim = max(lake.glob("relation=uses/*"))
    victim.write_bytes(victim.read_bytes()[:100])
    target = tmp_path / "out" / "new.duckdb"
    target.parent.mkdir()
    done = run_memhouse("lake", "export", target, "--db", lake)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert list(target.parent.iterdir()) == []


# --- import ---------------------------------------------------------------------------------


def test_an_imported_file_is_the_lake(empty, history):
    memhouse.lake.import_file(empty, history)
    assert rows_of(empty) == rows_of(history)


def test_a_lake_and_a_file_that_were_ingested_alike_are_the_same(of_nights, history):
    assert rows_of(of_nights) == rows_of(history)


def test_an_import_is_one_commit_and_one_of_the_history(empty, history):
    before = Lake(str(empty)).snapshot.version
    memhouse.lake.import_file(empty, history)
    assert Lake(str(empty)).snapshot.version == before + 2


def test_a_second_import_changes_nothing(empty, history):
    assert len(memhouse.lake.import_file(empty, history)) == 10
    version = Lake(str(empty)).snapshot.version
    assert memhouse.lake.import_file(empty, history) == []
    assert Lake(str(empty)).snapshot.version == version


def test_runs_that_the_lake_has_are_not_stored_again(lake, history, own):
    with memhouse.open(lake) as warehouse:
        warehouse.prune(["2026-10-02", "2026-10-09"])
    assert memhouse.lake.import_file(lake, own) == ["2026-10-02", "2026-10-09"]
    assert rows_of(lake) == rows_of(history)
    with memhouse.open(lake, read_only=True) as warehouse:
        numbers = warehouse.sql("SELECT run_seq FROM runs").arrow()["run_seq"].to_pylist()
    assert len(set(numbers)) == 10


def test_runs_whose_numbers_are_taken_follow_those_of_the_lake(empty, history, nights):
    with memhouse.open(empty) as warehouse:
        warehouse.ingest(nights / "2026-10-05", run="first")
    memhouse.lake.import_file(empty, history)
    with memhouse.open(empty, read_only=True) as warehouse:
        query = "SELECT run_id FROM runs ORDER BY run_seq"
        names = warehouse.sql(query).arrow()["run_id"].to_pylist()
    assert names == ["first", *sorted(night.name for night in nights.iterdir())]


def test_a_run_with_other_rows_is_refused_and_nothing_is_stored(lake, own):
    with memhouse.open(own) as warehouse:
        warehouse.label("2026-10-03", labels={"branch": "mine"})
        warehouse.prune(["2026-10-01"])
    version, before = Lake(str(lake)).snapshot.version, rows_of(lake)
    done = run_memhouse("lake", "import", own, "--db", lake)
    assert done.returncode == 1
    assert "the lake holds the run '2026-10-03' with other run_labels: drop" in done.stderr
    assert Lake(str(lake)).snapshot.version == version
    assert rows_of(lake) == before


def test_rows_that_do_not_fit_into_memory_are_imported_in_several_files(
    empty, history, monkeypatch
):
    monkeypatch.setattr(portions, "_MOST_CELLS", 300_000)
    memhouse.lake.import_file(empty, history)
    assert len(Lake(str(empty)).snapshot.of("instructions")) > 1
    assert rows_of(empty) == rows_of(history)


def test_a_killed_import_can_be_given_again(empty, history, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("memhouse.schema.stores.delta.plan", killed)
        with pytest.raises(KeyboardInterrupt):
            memhouse.lake.import_file(empty, history)
    assert Lake(str(empty)).snapshot.files == {}
    memhouse.lake.import_file(empty, history)
    assert rows_of(empty) == rows_of(history)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("absent.duckdb", "there is no warehouse at"),
        ("text.duckdb", "is not a DuckDB database"),
        (":memory:", "is no file: name the file of a warehouse"),
    ],
)
def test_what_cannot_be_imported_is_told_in_a_line(empty, tmp_path, file, says):
    (tmp_path / "text.duckdb").write_text("not a database, but long enough to look at" * 100)
    name = file if file == ":memory:" else tmp_path / file
    done = run_memhouse("lake", "import", name, "--db", empty)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert says in done.stderr


@pytest.mark.parametrize("command", ["vacuum", "ddl", "compact", "import x", "export y"])
def test_a_file_is_not_a_lake(own, command):
    done = run_memhouse("lake", *command.split(), "--db", own)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {own} is ")
    assert "not a lake: `memhouse " in done.stderr
    assert done.stderr.count("\n") == 1


# --- all of it in a bucket ------------------------------------------------------------------


def test_a_lake_in_a_bucket_is_kept_alike(bucket, history, nights, db):
    memhouse.lake.init(bucket.url)
    memhouse.lake.import_file(bucket.url, history)
    with memhouse.open(bucket.url) as warehouse:
        warehouse.prune(["2026-10-10"])
        warehouse.ingest(nights / "2026-10-10")
        assert rows_of(bucket.url) == rows_of(history)
        warehouse.compact()
    orphan = f"memhouse/relation=values/{uuid.uuid4().hex}.parquet"
    bucket.server.client.put_object(Bucket=bucket.name, Key=orphan, Body=b"of a dead writer")
    assert memhouse.lake.vacuum(bucket.url).files == []
    gone = memhouse.lake.vacuum(bucket.url, "0h", force=True)
    assert orphan.removeprefix("memhouse/") in gone.files
    keys = bucket.keys()
    assert {f"memhouse/{path}" for path in Lake(bucket.url).snapshot.paths} == {
        key for key in keys if "relation=" in key
    }
    assert rows_of(bucket.url) == rows_of(history)
    assert memhouse.lake.export_file(bucket.url, db) > 0
    assert rows_of(db) == rows_of(history)
