"""A lake holds what a DuckDB file holds after the same changes, whoever writes in between."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhouse.schema import arrow
from memhouse.schema.errors import ChangedMeanwhileError
from memhouse.schema.lake.layout import HISTORY
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
    max_examples=rounds(4),
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
    """Make a change; `runs` are the runs as they are stored."""
    kind, run_id, what = change
    if kind == "enter":
        runs[run_id] = write_run(store, *what)
    elif kind == "delete":
        store.delete_runs([run_id])
    elif kind == "dump":
        change_dump(store, what)
    elif kind == "label":
        store.label([run_id], {key: value or None for key, value in what.items()})
    elif kind == "time":
        # As ingest does: what it knows of the run is what it changes.
        store.known(run_id)
        change_run(store, replace(runs[run_id], **what))
    elif kind == "replace":
        with store.replacing(run_id, None):
            write_dumps(store, what)
    elif kind == "accept":
        store.write(Batch({"accepted_changes": accepted(*what)}))
    else:
        assert kind == "oom"
        store.write(Batch({"oom_reports": reports(run_id, *what)}, oom_runs=[run_id]))


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


def check_equal(file, lake):
    """The lake, for who wrote it and for who opens it, is what the file is."""
    expected = in_order(table_rows(file))
    assert in_order(table_rows(lake)) == expected
    assert journal_rows(lake) == journal_rows(file)
    with lake_in(lake.name) as reader:
        found = in_order(table_rows(reader))
        assert found == expected
        assert {name: found[name] for name in HISTORY} == history_rows(reader)


def test_a_log_that_says_that_memory_ran_out_changes_the_cause(tmp_path):
    runs = {}
    with in_memory() as file, lake_in(tmp_path / "lake") as lake:
        for number in (1, 2):
            run = Run(f"r{number}", SAID_AT, number, "main", "")
            dump = Dump(number, run.run_id, "w", "jit_a", "tpu", 1)
            for store in (file, lake):
                make(store, ("enter", run.run_id, (run, [dump])), runs)
        for store in (file, lake):
            lake.tidy()
            make(store, ("oom", "r2", (2, 1)), runs)
        check_equal(file, lake)
        assert [row[-1] for row in table_rows(file)["history"]] != [None, None]


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
