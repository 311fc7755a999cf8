"""A lake holds what a DuckDB file holds after the same changes, whoever writes in between."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhouse.schema import arrow
from memhouse.schema.errors import ChangedMeanwhileError
from memhouse.schema.lake.data_files import HISTORY
from memhouse.schema.stores.base import Batch

from ..support.lakes import (
    between_plan_and_commit,
    history_rows,
    journal_rows,
    lake_in,
    table_rows,
)
from ..support.plain_rows import change_dump, change_run, in_memory, write_dumps, write_run
from ..support.random_histories import histories, steps
from ..support.rounds import rounds
from .plain_history import Dump, Run

pytest.importorskip("deltalake")

SAID_AT = datetime(2027, 1, 1, tzinfo=UTC)


AT_RANDOM = settings(
    deadline=None,
    max_examples=rounds(8),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@st.composite
def changes(draw):
    """What happens to a warehouse: steps of a history, and what is said of its dumps."""
    found = []
    for kind, run_id, what in draw(steps(draw(histories()))):
        found.append((kind, run_id, what))
        if kind == "enter" and what[1]:
            dump = draw(st.sampled_from(what[1]))
            said = draw(st.sampled_from(["accept", "oom", "none", "none"]))
            number = draw(st.integers(1, 3))
            found.append((said, run_id, (dump.dump_id, number)))
    return [change for change in found if change[0] != "none"]


def make(store, change, runs):
    """Make a change; `runs` are the runs as they are stored. What was deleted, if anything."""
    kind, run_id, what = change
    if kind == "enter":
        runs[run_id] = write_run(store, *what)
    elif kind == "delete":
        return store.delete_runs([run_id])
    elif kind == "dump":
        change_dump(store, what)
    elif kind == "label":
        store.label([run_id], {key: value or None for key, value in what.items()})
    elif kind == "time":
        # As ingest does: what it knows of the run is what it changes.
        store.known(run_id)
        change_run(store, replace(runs[run_id], **what))
    elif kind == "replace":
        with store.replacing(run_id, None) as deleted:
            write_dumps(store, what)
        return deleted
    elif kind == "accept":
        store.write(Batch({"accepted_changes": accepted(*what)}))
    else:
        assert kind == "oom"
        store.write(Batch({"oom_reports": reports(run_id, *what)}, oom_runs=[run_id]))
    return None


def accepted(dump_id, number):
    row = {"dump_id": dump_id, "memory_space": 0, "metric": "peak_bytes"}
    said = {"accepted_bytes": number, "reason": "a test", "accepted_at": SAID_AT}
    return arrow.rows("accepted_changes", [row | said])


def reports(run_id, dump_id, number):
    said = {"path": "log", "times": 1, "kind": "program", "message": "no room"}
    row = {"run_id": run_id, "dump_id": dump_id, "is_rounded": False, "is_cut": False} | said
    ids = range(dump_id, dump_id + number)
    return arrow.rows("oom_reports", [row | {"oom_id": id_} for id_ in ids])


def in_order(tables):
    """Runs with their places: a writer that came second may leave a number out."""
    seqs = sorted(seq for _, _, seq, *_ in tables["runs"])
    runs = [(run, run_at, seqs.index(seq), *rest) for run, run_at, seq, *rest in tables["runs"]]
    return tables | {"runs": runs}


def check_equal(file, lake, *, opened=True):
    """The lake, for who wrote it and for who opens it, is what the file is."""
    expected = in_order(table_rows(file))
    assert in_order(table_rows(lake)) == expected
    assert journal_rows(lake) == journal_rows(file)
    if not opened:
        return
    with lake_in(lake.name) as reader:
        found = in_order(table_rows(reader))
        assert found == expected
        assert {name: found[name] for name in HISTORY} == history_rows(reader)


def made_up(dump_id, run_id, program, **known):
    columns = {"signature": "s1", "skeleton": 1, "total_bytes": 400, "origin": "dumped"} | known
    place = dump_id % 10
    return Dump(dump_id, run_id, "w", "jit_a", "tpu", place, program, **columns)


def entering(number, *programs, branch="main"):
    """A run of a night, with dumps of these programs."""
    run = Run(f"r{number}", SAID_AT, number, branch, "")
    dumps = [made_up(10 * number + n, run.run_id, what) for n, what in enumerate(programs, 1)]
    return "enter", run.run_id, (run, dumps)


# Nights have a program in common; each kind of change, also of what another one changed.
NIGHTS = [entering(1, 1, 2), entering(2, 1, 3), entering(3, 1, 3, branch="pr")]
CHANGES = [
    ("oom", "r2", (21, 2)),
    ("accept", "r1", (11, 5)),
    ("dump", "r1", made_up(12, "r1", 4)),
    ("label", "r2", {"branch": "pr", "suite": "tpu"}),
    ("time", "r2", {"run_at": SAID_AT - timedelta(days=1)}),
    ("replace", "r2", [made_up(51, "r2", 3), made_up(52, "r2", 5)]),
    ("label", "r2", {"branch": "main", "suite": ""}),
    ("accept", "r2", (51, 7)),
    ("delete", "r1", None),
]


def test_after_each_kind_of_change_the_rows_are_those_of_a_file(tmp_path):
    runs = {}
    with in_memory() as file, lake_in(tmp_path / "lake") as lake:
        for number, change in enumerate(NIGHTS + CHANGES):
            deleted = [make(store, change, runs) for store in (file, lake)]
            assert deleted[0] == deleted[1]
            if number % 3 == 2:
                lake.tidy()
            check_equal(file, lake, opened=number % 3 != 1)
            if change[0] == "oom":
                # The cause tells of it.
                causes = [row[-1] for row in table_rows(file)["history"]]
                assert any(causes)


@pytest.mark.scheduled
def test_each_kind_of_change_gives_way_to_a_second_writer(tmp_path, monkeypatch):
    """All runs share the files, which the second writer has written anew."""
    runs = {}
    others = [
        ("label", "r3", {"branch": "main"}),
        ("dump", "r3", made_up(32, "r3", 7)),
        ("oom", "r3", (31, 1)),
    ]
    with (
        in_memory() as file,
        lake_in(tmp_path / "lake") as lake,
        lake_in(tmp_path / "lake") as faster,
    ):
        for night in NIGHTS:
            make(file, night, dict(runs))
            make(lake, night, runs)
        lake.compact()
        faster.lake.refresh()
        for number, change in enumerate(CHANGES):
            other = others[number % len(others)]
            for each in (other, change):
                make(file, each, dict(runs))
            with between_plan_and_commit(
                monkeypatch, lambda other=other: make(faster, other, runs)
            ):
                make_again(lake, change, runs)
            check_equal(file, lake, opened=False)
        check_equal(file, lake)


def check_same_changes(file, folder, made, data):
    runs = {}
    with lake_in(folder) as lake:
        for change in made:
            make(file, change, runs)
            make(lake, change, runs)
            if data.draw(st.booleans()):
                lake.tidy()
            if data.draw(st.integers(0, 3)) == 0:
                lake.compact()
            check_equal(file, lake)


@pytest.mark.scheduled
@AT_RANDOM
@given(data=st.data())
def test_after_every_change_the_rows_are_those_of_a_file(data):
    with in_memory() as file, tempfile.TemporaryDirectory() as folder:
        check_same_changes(file, folder, data.draw(changes()), data)


def make_again(store, change, runs):
    """As ingest does: begin again if another process came between."""
    try:
        make(store, change, runs)
    except ChangedMeanwhileError:
        make(store, change, runs)


@pytest.mark.scheduled
def test_a_second_writer_between_plan_and_commit_comes_first(monkeypatch):
    @AT_RANDOM
    @given(data=st.data())
    def check(data):
        left = data.draw(changes())
        with (
            in_memory() as file,
            tempfile.TemporaryDirectory() as folder,
            lake_in(folder) as lake,
            lake_in(folder) as faster,
        ):
            runs = {}
            while left:
                change = left.pop(0)
                if left and left[0][1] != change[1] and data.draw(st.booleans()):
                    other = left.pop(0)

                    def come_between(other=other):
                        make(faster, other, runs)

                    for each in (other, change):
                        make(file, each, dict(runs))
                    with between_plan_and_commit(monkeypatch, come_between):
                        make_again(lake, change, runs)
                    # A change that changes nothing is no commit, and sees nothing of others.
                    lake.lake.refresh()
                    check_equal(file, lake)
                else:
                    make(file, change, dict(runs))
                    make(lake, change, runs)
            lake.tidy()
            check_equal(file, lake)

    check()


def test_threads_share_an_open_lake(tmp_path):
    with lake_in(tmp_path / "lake") as lake, ThreadPoolExecutor(8) as threads:
        make(lake, ("enter", "r1", (Run("r1", SAID_AT, 1, "main", ""), [])), {})
        asked = [threads.submit(lake.rows, "SELECT run_id FROM runs") for _ in range(100)]
        assert {each.result()["run_id"][0].as_py() for each in asked} == {"r1"}
