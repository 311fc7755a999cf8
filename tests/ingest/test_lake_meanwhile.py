"""What becomes of an ingest when another process changes the same run just before it commits."""

from contextlib import ExitStack

import pytest

import memhouse
from memhouse.ingest.batches import Workers
from memhouse.ingest.pipeline import GivenPaths, Run, ingest, ingest_programs
from memhouse.queries.label import label
from memhouse.queries.verify import verify
from memhouse.schema import arrow
from memhouse.schema.errors import ChangedMeanwhileError, UsageError
from memhouse.schema.lake import commits
from memhouse.schema.stores.base import Batch

from ..support.dumps import DATA, DUMPS, copy_dump
from ..support.lakes import between_plan_and_commit, lake_in, table_rows
from ..support.warehouse import reading

pytest.importorskip("deltalake")


# A program of two nights, which has changed in between.
FIRST, THEN = "2026-10-01/decode-v5e", "2026-10-06/decode-v5e"


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


def column(store, query):
    """The rows of a query with one column."""
    store.lake.refresh()
    return store.rows(query)[0].to_pylist()


def test_a_night_that_another_stores_meanwhile_is_stored_once_and_no_other_is_lost(
    lake, faster, nights, tmp_path, monkeypatch
):
    mine, theirs = nights / FIRST, nights / THEN
    # Two machines ingest a folder of one name.
    with between_plan_and_commit(monkeypatch, lambda: put(faster, theirs)):
        summary = put(lake, mine)
    assert summary.run_id.startswith("decode-v5e@")
    assert counts(lake) == {"decode-v5e": 1, summary.run_id: 1}
    # The user named the run.
    with (
        between_plan_and_commit(monkeypatch, lambda: put(faster, theirs, run_id="named")),
        pytest.raises(UsageError, match="named"),
    ):
        put(lake, mine, run_id="named")
    assert counts(lake)["named"] == 1
    # The same dumps, and a night that was still being dumped when the other began.
    half = copy_dump("cpu/jax-0.10.2/module_0002*", tmp_path / "jax-0.10.2")
    for run, path, number in (("same", DUMPS / "cpu/jax-0.9.0", 2), ("half", half, 3)):
        whole = DUMPS / "cpu" / path.name
        with between_plan_and_commit(
            monkeypatch, lambda run=run, path=path: put(faster, path, run_id=run)
        ):
            assert put(lake, whole, run_id=run).run_id == run
        assert counts(lake)[run] == number
    # Who was second and had nothing to add enters nothing.
    of_same = "SELECT action FROM journal WHERE run_id = 'same'"
    assert column(lake, of_same) == ["ingest"]


def test_what_is_deleted_meanwhile_is_stored_whole(lake, faster, nights, monkeypatch):
    """The ingest would leave out modules and dumps that were stored when it began."""
    put(lake, nights / FIRST, run_id="before")
    faster.lake.refresh()
    with between_plan_and_commit(monkeypatch, lambda: faster.delete_runs(["before"])):
        assert put(lake, nights / FIRST, run_id="night").new_modules == 1
    assert counts(lake) == {"night": 1}
    with between_plan_and_commit(monkeypatch, lambda: faster.delete_runs(["night"])):
        put(lake, nights / FIRST, run_id="night", labels={"branch": "main"})
    assert counts(lake) == {"night": 1}
    with between_plan_and_commit(
        monkeypatch, lambda: put(faster, nights / FIRST, run_id="night", replaces=True)
    ):
        put(lake, nights / THEN, run_id="night", replaces=True)
    assert counts(lake) == {"night": 1}
    assert column(lake, "SELECT source FROM runs") == [str(nights / THEN)]


def labels(store):
    store.lake.refresh()
    rows = store.rows("SELECT key, value FROM run_labels").to_pylist()
    return {row["key"]: row["value"] for row in rows}


def accept(store, dump_id, reason, accepted=7):
    row = {"dump_id": dump_id, "memory_space": 0, "metric": "peak_bytes"}
    rows = [row | {"accepted_bytes": accepted, "reason": reason}]
    store.write(Batch({"accepted_changes": arrow.rows("accepted_changes", rows)}))


def test_what_two_say_of_a_run_at_once_is_kept(lake, faster, nights, monkeypatch):
    put(lake, nights / FIRST, run_id="night", labels={"branch": "main", "jax": "0.9"})

    def beside(theirs):
        faster.lake.refresh()
        return between_plan_and_commit(monkeypatch, theirs)

    with beside(lambda: faster.label(["night"], {"owner": "a team", "jax": None})):
        put(lake, nights / FIRST, run_id="night", labels={"branch": "pull/7"})
    assert labels(lake) == {"branch": "pull/7", "owner": "a team"}
    with beside(lambda: faster.label(["night"], {"a": "1"})):
        lake.label(["night"], {"b": "2"})
    assert labels(lake) == {"branch": "pull/7", "owner": "a team", "a": "1", "b": "2"}
    logs = [DATA / f"oom/jax0.10.2-{name}.txt" for name in ("args", "pad")]
    with beside(lambda: put(faster, logs[0], run_id="night")):
        put(lake, logs[1], run_id="night")
    query = "SELECT DISTINCT path FROM oom_reports ORDER BY path"
    assert column(lake, query) == [log.name for log in logs]
    (dump_id,) = column(lake, "SELECT dump_id FROM dumps")
    with beside(lambda: accept(faster, dump_id, "theirs")):
        accept(lake, dump_id, "mine")
    assert column(lake, "SELECT reason FROM accepted_changes") == ["theirs"]
    with beside(lambda: faster.delete_runs(["night"])), pytest.raises(ChangedMeanwhileError):
        accept(lake, dump_id, "again", 8)


def once_before_commit(monkeypatch, do, *, of_compaction):
    """Another writer does something after a change, or the merge of files, was planned."""
    attempt = commits.try_commit

    def interrupted(lake, actions, mark):
        if actions.same_rows == of_compaction:
            monkeypatch.setattr(commits, "try_commit", attempt)
            do()
        return attempt(lake, actions, mark)

    monkeypatch.setattr(commits, "try_commit", interrupted)


@pytest.mark.scheduled
def test_a_compaction_beside_a_change_of_files_keeps_each_row_once(
    lake, faster, nights, monkeypatch
):
    """The one that comes second would write the rows of removed files once more."""
    changes = [
        ("label", lambda: lake.label(["first"], {"owner": "a team"})),
        ("replace", lambda: put(lake, nights / THEN, run_id="first", replaces=True)),
        ("prune", lambda: lake.delete_runs(["first"])),
    ]
    for is_ahead in (True, False):
        put(lake, nights / FIRST, run_id="first")
        put(lake, DUMPS / "cpu/jax-0.9.0", run_id="kept")
        for kind, change in changes:
            lake.label(["kept"], {kind: str(is_ahead)})
            first, second = (faster.compact, change) if is_ahead else (change, faster.compact)
            once_before_commit(monkeypatch, first, of_compaction=not is_ahead)
            second()
            faster.lake.refresh()
            expected = {"kept": 2} if kind == "prune" else {"first": 1, "kept": 2}
            assert counts(lake) == expected, (kind, is_ahead)
            assert labels(lake)[kind] == str(is_ahead)
            modules = column(lake, "SELECT module_id FROM modules")
            in_dumps = column(lake, "SELECT DISTINCT module_id FROM dumps")
            assert sorted(modules) == sorted(in_dumps), (kind, is_ahead)


@pytest.mark.scheduled
def test_a_file_that_two_import_at_once_is_imported_once(
    lake, faster, nights, tmp_path, monkeypatch
):
    db = str(tmp_path / "given.duckdb")
    with memhouse.open(db) as warehouse:
        warehouse.ingest(nights / FIRST)
        warehouse.ingest(*(DATA / "oom").glob("*.txt"), run="oom")
    with between_plan_and_commit(monkeypatch, lambda: faster.import_file(db)):
        lake.import_file(db)
    with reading(db) as file:
        assert table_rows(lake) == table_rows(file)
    # Nor does an import join other dumps of its run.
    lake.delete_runs(["decode-v5e"])
    with (
        between_plan_and_commit(monkeypatch, lambda: put(faster, nights / THEN)),
        pytest.raises(ChangedMeanwhileError, match="decode-v5e"),
    ):
        lake.import_file(db)
    assert counts(lake)["decode-v5e"] == 1


def join(store, folder):
    """Add a folder's programs to the run `r`."""
    with Workers(1) as workers, ExitStack() as cleanup:
        programs = GivenPaths([folder]).programs(store, cleanup, pytest.fail)
        run = Run("r", "test", "test", is_named=True, adds=True)
        return ingest_programs(store, programs, run, workers)


@pytest.mark.scheduled
def test_two_that_join_a_run_number_their_dumps_apart(lake, faster, monkeypatch):
    """As two processes that record into one run: each has the first program of the name."""
    dumps = sorted((DUMPS / "cpu").iterdir())[:2]
    with between_plan_and_commit(monkeypatch, lambda: join(faster, dumps[0])):
        join(lake, dumps[1])
    rows = "SELECT module_name, occurrence, COUNT(*) AS n FROM dumps GROUP BY ALL"
    found = lake.rows(rows).to_pylist()
    assert {row["n"] for row in found} == {1}
    assert {row["occurrence"] for row in found} == {1, 2}


@pytest.mark.scheduled
def test_hosts_that_ingest_at_once_are_parts_of_one_run(lake, faster, nights, monkeypatch):
    """Also one that replaces its part while another adds its own."""

    def parts():
        lake.lake.refresh()
        query = """SELECT run_parts.host, COUNT(dump_id) AS dumps FROM run_parts
            LEFT JOIN dumps USING (run_id, host) GROUP BY ALL ORDER BY ALL"""
        return [tuple(row.values()) for row in lake.rows(query).to_pylist()]

    def add(store, host, night, **options):
        put(store, nights / night, run_id="night", host=host, **options)

    with between_plan_and_commit(monkeypatch, lambda: add(faster, "b", FIRST)):
        add(lake, "a", FIRST)
    assert parts() == [("a", 1), ("b", 1)]
    with between_plan_and_commit(monkeypatch, lambda: add(faster, "c", FIRST)):
        add(lake, "a", THEN, replaces=True)
    assert parts() == [("a", 1), ("b", 1), ("c", 1)]
    with between_plan_and_commit(monkeypatch, lambda: add(faster, "c", THEN, replaces=True)):
        add(lake, "a", FIRST, replaces=True)
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


def test_a_run_that_another_drops_meanwhile_has_no_labels(lake, faster, nights, monkeypatch):
    """It is unknown then, as it would have been a moment later; the simulator's seed 5056."""
    put(lake, nights / FIRST, run_id="run")
    with (
        between_plan_and_commit(monkeypatch, lambda: faster.delete_runs(["run"])),
        pytest.raises(UsageError, match="run"),
    ):
        label(lake, ["run"], {"suite": "gpu"})
    assert counts(lake) == {}
