"""The commit protocol of a lake: one version, one writer, whatever is lost on the way."""

import json
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from memhouse.schema import arrow
from memhouse.schema.errors import ChangedMeanwhileError, WarehouseError
from memhouse.schema.lake import commits, storage
from memhouse.schema.lake.commits import Actions, commit, discard, try_commit
from memhouse.schema.lake.data_files import LAKE_VERSION, PROPERTIES, relations, write_file
from memhouse.schema.lake.snapshot import Lake

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "lake")


def labels(lake, run):
    """A file with a label of a run."""
    rows = pa.table({"run_id": [run], "key": ["branch"], "value": ["main"]})
    return write_file(lake.place, "run_labels", rows)


def paths(lake):
    """What is in the lake, in its newest version."""
    return [file.path for file in Lake(lake.place).snapshot.of("run_labels")]


def on_disk(lake):
    return sorted(str(p.relative_to(lake.place)) for p in Path(lake.place).glob("rel*/*.parquet"))


def test_who_adds_to_a_version_that_is_not_the_last_is_refused(place):
    """deltalake alone would let both add, and a module would be stored twice."""
    first, second = Lake(place, create=True), Lake(place)
    mine, others = labels(first, "a"), labels(second, "b")
    assert try_commit(first, Actions([mine]), "first")
    assert not try_commit(second, Actions([others]), "second")
    assert paths(first) == [mine.path]


def test_two_that_write_the_same_file_anew_do_not_both_succeed(place):
    first, second = Lake(place, create=True), Lake(place)
    old = labels(first, "a")
    assert try_commit(first, Actions([old]), "begin")
    first.refresh(), second.refresh()
    new = [labels(lake, "a") for lake in (first, second)]
    assert try_commit(first, Actions([new[0]], [old]), "first")
    assert not try_commit(second, Actions([new[1]], [old]), "second")
    assert paths(first) == [new[0].path]


def test_who_was_slower_plans_again_for_what_is_there_now(place):
    mine, faster = Lake(place, create=True), Lake(place)
    seen = []

    def plan(snapshot):
        seen.append(snapshot.version)
        if len(seen) == 1:
            assert try_commit(faster, Actions([labels(faster, "b")]), "faster")
        return Actions([labels(mine, "a")])

    done = commit(mine, plan)
    assert seen == [0, 1]
    assert len(paths(mine)) == 2
    # The file of the first attempt is not left behind.
    assert on_disk(mine) == paths(mine)
    assert done.adds[0].path in paths(mine)


class Failing:
    """A table that commits, unless it is told not to, and raises an error then."""

    def __init__(self, table, error, *, commits=True):
        self._table, self._error, self._commits = table, error, commits

    def __getattr__(self, name):
        return getattr(self._table, name)

    def create_write_transaction(self, *arguments, **named):
        if self._commits:
            self._table.create_write_transaction(*arguments, **named)
        raise self._error


def test_a_commit_whose_answer_was_lost_is_not_made_twice(place, monkeypatch):
    """It hears that another process was faster."""
    lake = Lake(place, create=True)
    lost = deltalake.exceptions.CommitFailedError("version 1 is there")
    monkeypatch.setattr(lake, "table", Failing(lake.table, lost))
    added = labels(lake, "a")
    assert commit(lake, lambda _: Actions([added])).adds == [added]
    assert paths(lake) == on_disk(lake) == [added.path]
    assert lake.snapshot.version == 1


@pytest.mark.parametrize("error", [OSError, deltalake.exceptions.DeltaError])
def test_what_fails_after_the_commit_does_not_undo_it(place, monkeypatch, error):
    """The network may fail before the answer, or while deltalake writes a checkpoint."""
    lake = Lake(place, create=True)
    monkeypatch.setattr(lake, "table", Failing(lake.table, error("connection reset")))
    added = labels(lake, "a")
    assert commit(lake, lambda _: Actions([added])).adds == [added]
    assert paths(lake) == on_disk(lake) == [added.path]


def test_a_commit_that_fails_leaves_the_lake_and_ends(place, monkeypatch):
    lake = Lake(place, create=True)
    failing = Failing(lake.table, OSError("connection reset"), commits=False)
    monkeypatch.setattr(lake, "table", failing)
    with pytest.raises(WarehouseError, match="connection reset"):
        commit(lake, lambda _: Actions([labels(lake, "a")]))
    assert paths(lake) == []


def test_files_that_cannot_be_removed_are_left_to_vacuum(place, monkeypatch):
    """Each store's package has errors of its own, and a writer may have no right to delete."""
    lake = Lake(place, create=True)

    class Refusing:
        def rm_file(self, path):
            raise RuntimeError(path)

    file = labels(lake, "a")
    monkeypatch.setattr(storage, "filesystem", lambda _: Refusing())
    discard(lake.place, [file], but=())
    assert on_disk(lake) == [file.path]


def test_a_plan_that_cannot_be_made_any_more_leaves_no_file(place):
    mine, faster = Lake(place, create=True), Lake(place)

    def plan(snapshot):
        if snapshot.version:
            raise ChangedMeanwhileError("deleted the run")
        assert try_commit(faster, Actions([labels(faster, "b")]), "faster")
        return Actions([labels(mine, "a")])

    with pytest.raises(ChangedMeanwhileError, match="deleted the run"):
        commit(mine, plan)
    assert on_disk(mine) == paths(mine)
    assert len(paths(mine)) == 1


def test_who_gives_up_leaves_no_file(place):
    mine, faster = Lake(place, create=True), Lake(place)

    def plan(snapshot):
        faster.refresh()
        assert try_commit(faster, Actions([labels(faster, "b")]), str(snapshot.version))
        return Actions([labels(mine, "a")])

    assert commit(mine, plan, most_attempts=2) is None
    assert on_disk(mine) == paths(mine)
    assert len(paths(mine)) == 2


def test_checkpoints_keep_statistics_transactions_and_properties(place):
    lake = Lake(place, create=True)
    for number in range(60):
        run = f"r{number:02}"
        assert try_commit(lake, Actions([labels(lake, run)], changed_runs=[run]), run)
        lake.refresh()
    assert list(Path(place, "_delta_log").glob("*.checkpoint.parquet"))
    # What a reader has after the files before the checkpoint are gone.
    last = int(json.loads(Path(place, "_delta_log/_last_checkpoint").read_text())["version"])
    for number in range(last):
        Path(place, f"_delta_log/{number:020}.json").unlink()
    opened = Lake(place)
    assert opened.table.metadata().configuration == PROPERTIES
    assert opened.table.transaction_version("r00") == 1
    files = opened.snapshot.of("run_labels")
    assert len(files) == 60
    assert {file.least["run_id"] for file in files} == {f"r{number:02}" for number in range(60)}
    # Which runs changed is told as far as the log goes back, and not guessed before that.
    assert opened.runs_changed_since(59) == ["r59"]
    assert opened.runs_changed_since(0) is None


def test_transactions_leave_the_log_with_time(place, monkeypatch):
    """Otherwise every commit ever made would be in every checkpoint."""
    short = PROPERTIES | {"delta.setTransactionRetentionDuration": "interval 1 second"}
    monkeypatch.setattr("memhouse.schema.lake.snapshot.PROPERTIES", short)
    monkeypatch.setattr(commits, "_COMMITS_TO_CHECKPOINT", 5)
    lake = Lake(place, create=True)
    with monkeypatch.context() as long_ago:
        long_ago.setattr("memhouse.schema.lake.commits.time.time", lambda: 1_700_000_000)
        for number in range(5):
            assert try_commit(lake, Actions([labels(lake, str(number))]), f"old-{number}")
            lake.refresh()
    for number in range(6):
        assert try_commit(lake, Actions([labels(lake, str(number))]), f"new-{number}")
        lake.refresh()
    opened = Lake(place)
    assert opened.table.transaction_version("old-0") is None
    assert opened.table.transaction_version("new-5") == 1
    assert len(opened.snapshot.of("run_labels")) == 11


def test_a_commit_that_is_always_too_late_ends_with_an_error(place, monkeypatch):
    monkeypatch.setattr(commits, "_MOST_ATTEMPTS", 3)
    monkeypatch.setattr(commits, "_LONGEST_WAIT_SECONDS", 0)
    mine, faster = Lake(place, create=True), Lake(place)

    def plan(snapshot):
        faster.refresh()
        assert try_commit(faster, Actions([labels(faster, "b")]), f"b{snapshot.version}")
        return Actions([labels(mine, "a")])

    with pytest.raises(WarehouseError, match="3 attempts"):
        commit(mine, plan)
    assert len(on_disk(mine)) == len(paths(mine)) == 3


def test_the_version_of_lakes_grows_with_their_columns():
    """A lake of before has no such column: raise LAKE_VERSION, and read both."""
    columns = [
        f"{name} {each.name} {each.type}" for name in relations() for each in arrow.schema(name)
    ]
    assert {LAKE_VERSION: zlib.crc32("\n".join(columns).encode())} == {8: 886467343}
