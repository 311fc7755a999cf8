"""Rows that reading processes hand to the writing process in memory that both map."""

import os
import resource
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from memhouse.ingest import batches as hand_over
from memhouse.schema.errors import WarehouseError
from memhouse.schema.stores import duckdb as duckdb_rows

from ..support import warehouse
from ..support.dumps import RUNS

TABLES = {
    "values": pa.table({"value_id": [1, 2, None], "shape": ["f32[2]", None, "é" * 5000]}),
    "uses": pa.concat_tables([pa.table({"use_index": [number]}) for number in range(3)]),
    "calls": pa.table({"instruction_id": pa.array([], pa.int32())}),
    "slice": pa.table({"start_time": range(1000)}).slice(10, 5),
}


@pytest.fixture
def handed():
    ends = hand_over.HandOver()
    yield ends
    ends.close()


@pytest.fixture(params=["memory", "file"])
def kind(request, monkeypatch):
    """Where the system has no memory without a name, a file without a name serves."""
    if request.param == "file":
        monkeypatch.delattr(os, "memfd_create", raising=False)


def names_in(*folders):
    return [sorted(Path(folder).iterdir()) for folder in folders if Path(folder).is_dir()]


def test_tables_arrive_as_they_were_sent(handed, kind):
    hand_over.send(handed.sending, 7, TABLES)
    arrived = handed.take(7)
    assert arrived.keys() == TABLES.keys()
    for name, table in TABLES.items():
        assert arrived[name].equals(table, check_metadata=True), name


def test_nothing_has_a_name_that_could_stay_behind(handed, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = names_in("/dev/shm")
    hand_over.send(handed.sending, 1, TABLES)
    assert names_in("/dev/shm") == before
    assert names_in(tmp_path) == [[]]


def test_too_few_descriptors_are_told(handed):
    hand_over.send(handed.sending, 1, TABLES)
    _, most = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The system drops descriptors for which the receiving process has no room.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
    try:
        handed.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with pytest.raises(WarehouseError, match="too many open files: raise `ulimit -n`"):
        handed.take(1)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_the_memory_is_freed_with_the_tables(handed):
    before = names_in("/proc/self/fd")
    for number in range(3):
        hand_over.send(handed.sending, number, TABLES)
    arrived = [handed.take(number) for number in range(3)]
    assert len(names_in("/proc/self/fd")[0]) > len(before[0])
    arrived.clear()
    assert len(names_in("/proc/self/fd")[0]) == len(before[0])


def test_senders_that_are_ahead_wait_and_lose_nothing(handed):
    """The system keeps few messages, fewer than these."""
    numbers = range(100)
    table = {"uses": pa.table({"use_index": [1]})}

    def read():
        for number in numbers:
            hand_over.send(handed.sending, number, table)

    reader = threading.Thread(target=read)
    reader.start()
    while reader.is_alive():
        handed.receive()
    # In any order, because a process may be done earlier than another one.
    assert all(handed.take(number) == table for number in reversed(numbers))


@pytest.mark.slow
def test_two_jobs_that_hand_over_all_modules_give_the_same_rows(filled, db, monkeypatch):
    """And the store inserts them in parallel, in an order of its own."""
    monkeypatch.setattr(hand_over, "LARGE_BYTES", 0)
    monkeypatch.setattr(duckdb_rows, "_PARALLEL_BYTES", 0)
    taken = []
    take = hand_over.HandOver.take
    monkeypatch.setattr(
        hand_over.HandOver, "take", lambda ends, number: taken.append(number) or take(ends, number)
    )
    warehouse.fill(db, *RUNS, jobs=2)
    assert taken
    expected, found = warehouse.content(filled), warehouse.content(db)
    for content in (expected, found):
        content["runs"] = [(run, at, seq, *rest) for run, at, seq, _, *rest in content["runs"]]
    assert found == expected
