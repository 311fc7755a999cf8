"""What becomes of an ingest when another process changes the same run just before it commits."""

import shutil
from contextlib import ExitStack

import pytest

import memhouse
from memhouse.ingest.given_paths import GivenPaths
from memhouse.ingest.pipeline import Run, ingest, ingest_programs
from memhouse.ingest.workers import Workers
from memhouse.queries.verify import verify
from memhouse.schema import arrow
from memhouse.schema.errors import ChangedMeanwhileError, UsageError
from memhouse.schema.lake import commits
from memhouse.schema.stores.base import Batch

from ..support.dumps import DATA
from ..support.history import NIGHTS
from ..support.lakes import between_plan_and_commit, lake_in, table_rows
from ..support.warehouse import reading

pytest.importorskip("deltalake")


@pytest.fixture
def lake(tmp_path):
    with lake_in(tmp_path / "lake", files=True) as store:
        yield store
        store.lake.refresh()
        assert len(verify(store).rows) == 0


@pytest.fixture
def faster(lake):
    """Another process's view of the same lake."""
    with lake_in(lake.name, files=True) as store:
        yield store


def put(store, *paths, **options):
    with Workers(1) as workers:
        return ingest(store, *paths, tool_version="test", workers=workers, **options)


def counts(store):
    """How many dumps each run has."""
    store.lake.refresh()
    query = """SELECT run_id, COUNT(dump_id) AS dumps FROM runs
        LEFT JOIN dumps USING (run_id) GROUP BY run_id ORDER BY run_id"""
    return {row["run_id"]: row["dumps"] for row in store.rows(query).to_pylist()}


def copied(nights, number, to):
    return shutil.copytree(nights / NIGHTS[number], to)


def test_other_dumps_of_the_same_name_become_a_later_night(
    lake, faster, nights, tmp_path, monkeypatch
):
    """Two machines ingest a folder named `dumps`: no night may be lost."""
    mine = copied(nights, 0, tmp_path / "mine" / "dumps")
    theirs = copied(nights, 5, tmp_path / "theirs" / "dumps")
    with between_plan_and_commit(monkeypatch, lambda: put(faster, theirs)):
        summary = put(lake, mine)
    assert summary.run_id.startswith("dumps@")
    assert counts(lake) == {"dumps": 4, summary.run_id: 4}


def test_a_named_run_that_another_stored_is_refused(lake, faster, nights, monkeypatch):
    def come_between():
        put(faster, nights / NIGHTS[5], run_id="night")

    with (
        between_plan_and_commit(monkeypatch, come_between),
        pytest.raises(UsageError, match="run 'night' holds other dumps"),
    ):
        put(lake, nights / NIGHTS[0], run_id="night")
    assert counts(lake) == {"night": 4}


def test_the_same_night_is_stored_once(lake, faster, nights, monkeypatch):
    with between_plan_and_commit(monkeypatch, lambda: put(faster, nights / NIGHTS[0])):
        summary = put(lake, nights / NIGHTS[0])
    assert (summary.run_id, counts(lake)) == (NIGHTS[0], {NIGHTS[0]: 4})
    # The second changed nothing.
    assert lake.rows("SELECT action FROM journal")["action"].to_pylist() == ["ingest"]


def test_half_a_night_and_the_whole_night_are_one_run(lake, faster, nights, tmp_path, monkeypatch):
    """The night was still being dumped when the other began."""
    half = copied(nights, 0, tmp_path / "half" / NIGHTS[0])
    shutil.rmtree(next(path for path in sorted(half.iterdir()) if path.is_dir()))
    with between_plan_and_commit(monkeypatch, lambda: put(faster, half)):
        put(lake, nights / NIGHTS[0])
    assert counts(lake) == {NIGHTS[0]: 4}


def test_modules_that_are_deleted_meanwhile_are_read_again(lake, faster, nights, monkeypatch):
    """The ingest leaves out modules that were stored when it began."""
    put(lake, nights / NIGHTS[0], run_id="before")
    faster.lake.refresh()
    with between_plan_and_commit(monkeypatch, lambda: faster.delete_runs(["before"])):
        summary = put(lake, nights / NIGHTS[0])
    assert counts(lake) == {NIGHTS[0]: 4}
    assert summary.new_modules == 4


def test_a_run_that_is_deleted_meanwhile_is_stored_whole(lake, faster, nights, monkeypatch):
    """The ingest would write only what has changed."""
    put(lake, nights / NIGHTS[0])
    with between_plan_and_commit(monkeypatch, lambda: faster.delete_runs([NIGHTS[0]])):
        put(lake, nights / NIGHTS[0], labels={"branch": "main"})
    assert counts(lake) == {NIGHTS[0]: 4}


def test_two_that_replace_a_run_leave_the_dumps_of_one(lake, faster, nights, monkeypatch):
    put(lake, nights / NIGHTS[0], run_id="night")

    def come_between():
        put(faster, nights / NIGHTS[4], run_id="night", replaces=True)

    with between_plan_and_commit(monkeypatch, come_between):
        put(lake, nights / NIGHTS[5], run_id="night", replaces=True)
    assert counts(lake) == {"night": 4}
    assert lake.rows("SELECT source FROM runs")["source"].to_pylist() == [str(nights / NIGHTS[5])]


def labels(store):
    store.lake.refresh()
    rows = store.rows("SELECT key, value FROM run_labels").to_pylist()
    return {row["key"]: row["value"] for row in rows}


def test_labels_that_another_gives_meanwhile_stay(lake, faster, nights, monkeypatch):
    put(lake, nights / NIGHTS[0], labels={"branch": "main", "jax": "0.9"})

    def come_between():
        faster.label([NIGHTS[0]], {"owner": "a team", "jax": None})

    with between_plan_and_commit(monkeypatch, come_between):
        put(lake, nights / NIGHTS[0], labels={"branch": "pull/7"})
    assert labels(lake) == {"branch": "pull/7", "owner": "a team"}
    with between_plan_and_commit(monkeypatch, lambda: faster.label([NIGHTS[0]], {"a": "1"})):
        lake.label([NIGHTS[0]], {"b": "2"})
    assert labels(lake) == {"branch": "pull/7", "owner": "a team", "a": "1", "b": "2"}


def accept(store, dump_id, reason, accepted=7):
    row = {"dump_id": dump_id, "memory_space": 0, "metric": "peak_bytes"}
    rows = [row | {"accepted_bytes": accepted, "reason": reason}]
    store.write(Batch({"accepted_changes": arrow.rows("accepted_changes", rows)}))


def test_what_two_accept_at_once_is_accepted_once(lake, faster, nights, monkeypatch):
    put(lake, nights / NIGHTS[0])
    dump_id = lake.rows("SELECT MIN(dump_id) AS id FROM dumps")["id"].to_pylist()[0]
    with between_plan_and_commit(monkeypatch, lambda: accept(faster, dump_id, "theirs")):
        accept(lake, dump_id, "mine")
    assert lake.rows("SELECT reason FROM accepted_changes")["reason"].to_pylist() == ["theirs"]
    with (
        between_plan_and_commit(monkeypatch, lambda: faster.delete_runs([NIGHTS[0]])),
        pytest.raises(ChangedMeanwhileError, match="give the same command again"),
    ):
        accept(lake, dump_id, "again", 8)


def test_messages_of_two_logs_at_once_are_both_kept(lake, faster, nights, monkeypatch):
    put(lake, nights / NIGHTS[0])
    mine, theirs = DATA / "oom/jax0.10.2-pad.txt", DATA / "oom/jax0.10.2-args.txt"
    faster.lake.refresh()
    with between_plan_and_commit(monkeypatch, lambda: put(faster, theirs, run_id=NIGHTS[0])):
        put(lake, mine, run_id=NIGHTS[0])
    found = lake.rows("SELECT DISTINCT path FROM oom_reports ORDER BY path")["path"].to_pylist()
    assert found == sorted([mine.name, theirs.name])


def once_before_commit(monkeypatch, do, *, of_compaction):
    """Another writer does something after a change, or the merge of files, was planned."""
    attempt = commits.try_commit

    def interrupted(lake, actions, mark):
        if actions.same_rows == of_compaction:
            monkeypatch.setattr(commits, "try_commit", attempt)
            do()
        return attempt(lake, actions, mark)

    monkeypatch.setattr(commits, "try_commit", interrupted)


@pytest.mark.parametrize("is_ahead", [True, False], ids=["compaction", "change"])
@pytest.mark.parametrize("kind", ["prune", "label", "replace"])
def test_a_compaction_beside_a_change_of_files_keeps_each_row_once(
    lake, faster, nights, monkeypatch, kind, is_ahead
):
    """The one that comes second would write the rows of removed files once more."""
    for number in (0, 5):
        put(lake, nights / NIGHTS[number])
    change = {
        "prune": lambda: lake.delete_runs([NIGHTS[0]]),
        "label": lambda: lake.label([NIGHTS[0]], {"owner": "a team"}),
        "replace": lambda: put(lake, nights / NIGHTS[2], run_id=NIGHTS[0], replaces=True),
    }[kind]
    first, second = (faster.compact, change) if is_ahead else (change, faster.compact)
    once_before_commit(monkeypatch, first, of_compaction=not is_ahead)
    second()
    faster.lake.refresh()
    expected = {NIGHTS[0]: 4, NIGHTS[5]: 4}
    if kind == "prune":
        del expected[NIGHTS[0]]
    assert counts(lake) == expected
    assert labels(lake) == ({"owner": "a team"} if kind == "label" else {})
    assert len(lake.rows("SELECT module_id FROM modules")) == len(
        set(lake.rows("SELECT module_id FROM dumps")["module_id"].to_pylist())
    )


def test_a_file_that_two_import_at_once_is_imported_once(lake, faster, tmp_path, monkeypatch):
    db = file_of(tmp_path, DATA / "oom-dumps.tar.zst", DATA / "oom")
    with between_plan_and_commit(monkeypatch, lambda: faster.import_file(db)):
        lake.import_file(db)
    with reading(db) as file:
        assert table_rows(lake) == table_rows(file)


def test_an_import_does_not_join_other_dumps_of_its_run(
    lake, faster, nights, tmp_path, monkeypatch
):
    db = file_of(tmp_path, nights / NIGHTS[0])
    theirs = copied(nights, 5, tmp_path / "theirs" / NIGHTS[0])
    with (
        between_plan_and_commit(monkeypatch, lambda: put(faster, theirs)),
        pytest.raises(ChangedMeanwhileError, match="stored other dumps of run '2026-10-01'"),
    ):
        lake.import_file(db)
    assert counts(lake) == {NIGHTS[0]: 4}


def file_of(folder, *paths):
    """A DuckDB warehouse, each path a run."""
    db = str(folder / "given.duckdb")
    with memhouse.open(db) as warehouse:
        for path in paths:
            warehouse.ingest(path)
    return db


def test_two_that_join_a_run_number_their_dumps_apart(lake, faster, monkeypatch):
    """As two processes that record into one run: each has the first program of the name."""
    dumps = sorted((DATA / "dumps" / "cpu").iterdir())[:2]
    with between_plan_and_commit(monkeypatch, lambda: join(faster, dumps[0])):
        join(lake, dumps[1])
    rows = "SELECT module_name, occurrence, COUNT(*) AS n FROM dumps GROUP BY ALL"
    found = lake.rows(rows).to_pylist()
    assert {row["n"] for row in found} == {1}
    assert {row["occurrence"] for row in found} == {1, 2}


def join(store, folder):
    """Add a folder's programs to the run `r`."""
    with Workers(1) as workers, ExitStack() as cleanup:
        programs = GivenPaths([folder]).programs(store, cleanup, pytest.fail, None)
        run = Run("r", "test", "test", is_named=True, adds=True)
        return ingest_programs(store, programs, run, workers)


def test_hosts_that_ingest_at_once_are_parts_of_one_run(lake, faster, nights, monkeypatch):
    """Also one that replaces its part while another adds its own."""

    def parts():
        lake.lake.refresh()
        query = """SELECT run_parts.host, COUNT(dump_id) AS dumps FROM run_parts
            LEFT JOIN dumps USING (run_id, host) GROUP BY ALL ORDER BY ALL"""
        return [tuple(row.values()) for row in lake.rows(query).to_pylist()]

    def add(store, host, night, **options):
        put(store, nights / NIGHTS[night] / "llama-cpu", run_id="night", host=host, **options)

    with between_plan_and_commit(monkeypatch, lambda: add(faster, "b", 0)):
        add(lake, "a", 0)
    assert parts() == [("a", 1), ("b", 1)]
    with between_plan_and_commit(monkeypatch, lambda: add(faster, "c", 0)):
        add(lake, "a", 4, replaces=True)
    assert parts() == [("a", 1), ("b", 1), ("c", 1)]
    with between_plan_and_commit(monkeypatch, lambda: add(faster, "c", 4, replaces=True)):
        add(lake, "a", 0, replaces=True)
    assert parts() == [("a", 1), ("b", 1), ("c", 1)]
    entered = lake.rows("SELECT entry, action, host FROM journal ORDER BY entry").to_pylist()
    assert [tuple(row.values()) for row in entered] == [
        (1, "ingest", "b"),
        (2, "ingest", "a"),
        (3, "ingest", "c"),
        (4, "replace", "a"),
        (5, "replace", "c"),
        (6, "replace", "a"),
    ]
