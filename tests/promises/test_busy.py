"""Several processes at one warehouse: who writes is waited for, by name, and nothing is lost."""

import inspect
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

import memhouse
from memhouse.cli.app import build_app
from memhouse.schema.errors import WarehouseBusyError

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS, copy_dump
from ..support.rounds import rounds
from ..support.warehouse import content, everything, fill, rows

SEEDS, CPU = DUMPS / "seeds", DUMPS / "cpu/jax-0.9.0"
HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "True")
print(flush=True)
input()
"""


@contextmanager
def held(db, read_only=False):
    """Another process has the warehouse open until the block, or its `let_go`, ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, db, str(read_only)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        try:
            yield holder
        finally:
            let_go(holder)


def let_go(holder):
    if not holder.stdin.closed:
        holder.stdin.write(b"\n")
        holder.stdin.close()


def start(*args):
    return subprocess.Popen([MEMHOUSE, *map(str, args)], stderr=subprocess.PIPE, text=True)


def finish(process, status=0):
    """What a started command said; it did well."""
    _, said = process.communicate(timeout=60)
    assert process.returncode == status, said
    return said


@pytest.fixture
def seeds(db):
    """A small warehouse."""
    fill(db, SEEDS)
    return db


WRITERS = {
    "ingest": ["ingest", CPU],
    "prune": ["prune", "seeds"],
    "accept": ["check", "--accept", "agreed", "--limits", "limits.toml"],
    "sql": ["sql", "--write", "DELETE FROM run_labels"],
    "label": ["label", "seeds", "branch=main"],
    "compact": ["compact"],
}


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Limits that the seeds do not keep, so that `check` has something to accept."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.toml").write_text('max_bytes = "1KiB"\n')


CHANGED = {
    "accept": "SELECT COUNT(*) > 0 FROM accepted_changes",
    "ingest": "SELECT COUNT(*) = 2 FROM runs",
    "label": "SELECT COUNT(*) = 1 FROM run_labels",
    "sql": "SELECT COUNT(*) = 0 FROM run_labels",
    "compact": "SELECT COUNT(*) = 2 FROM runs",
    "prune": "SELECT COUNT(*) = 1 FROM runs",
}


def waits_for(process, db, holder):
    """Whether the first line of a process says that it waits for another to let go of the file."""
    line = process.stderr.readline()
    return line.startswith(f"{db} ") and f"process {holder.pid} (" in line and "600 s" in line


@pytest.mark.slow
def test_a_writer_waits_and_says_for_whom(seeds, limits):
    """One after another, each for a process that reads or for one that writes."""
    for number, (command, changed) in enumerate(CHANGED.items()):
        with held(seeds, read_only=number % 2 == 0) as holder:
            process = start(*WRITERS[command], "--db", seeds)
            assert waits_for(process, seeds, holder), command
            let_go(holder)
            finish(process)
        assert rows(seeds, changed) == [(True,)], command


@pytest.mark.slow
def test_a_writer_waits_only_so_long(seeds, limits):
    before = everything(seeds)
    part = shutil.copy(seeds, seeds.with_name("part.duckdb"))
    with held(seeds) as holder:
        for command in WRITERS:
            assert_gives_up(WRITERS[command], seeds, holder, "0")
        assert_gives_up(WRITERS["ingest"], seeds, holder, "0.5")
        # It takes the file as an argument.
        merge = run_memhouse("merge", seeds, part, "--wait", "0")
        assert merge.returncode == 1
        assert f"process {holder.pid} (" in merge.stderr
    assert everything(seeds) == before


def assert_gives_up(command, db, holder, seconds):
    run = run_memhouse(*command, "--wait", seconds, "--db", db)
    assert (run.returncode, run.stdout) == (1, ""), command
    *waiting, error = run.stderr.splitlines()
    assert len(waiting) == (seconds != "0")
    assert error.startswith(f"error: {db} ")
    assert f"process {holder.pid} (" in error


READERS = {
    "advise": ["002_79ae6c566c7e6550"],
    "buffers": ["002_79ae6c566c7e6550"],
    "check": [],
    "diff": ["seeds", "seeds"],
    "donations": ["002_79ae6c566c7e6550"],
    "export": ["peaks", "peaks.csv"],
    "fragmentation": [],
    "kernels": [],
    "label": ["seeds"],
    "log": [],
    "modules": [],
    "owners": ["002_79ae6c566c7e6550"],
    "passes": ["002_79ae6c566c7e6550"],
    "peaks": [],
    "publish": ["lake"],
    "report": ["002_79ae6c566c7e6550"],
    "runs": [],
    "since": ["002_79ae6c566c7e6550"],
    "sql": ["SELECT 1"],
    "tables": [],
    "saved": ["002_79ae6c566c7e6550"],
    "timeline": ["002_79ae6c566c7e6550"],
    "trends": [],
    "verify": [],
}


OTHERS = {"fit", "merge", "oom", "record", "shell"}


def test_every_command_with_a_warehouse_can_wait():
    """`fit`, `mcp`, `oom` and `record` have their own tests; the shell reads only on a terminal."""
    waiting = {command.name for command in build_app().registered_commands if waits(command)}
    assert waiting == {*READERS, *WRITERS, *OTHERS} - {"accept"}
    others = {command.name for command in build_app().registered_commands} - waiting
    assert others == {"demo", "doctor", "mcp", "views"}


def waits(command):
    return "wait" in inspect.signature(command.callback).parameters


# One function opens the warehouse for all questions.
OPENING = {"check", "peaks", "sql", "export", "report", "oom", "label", "publish", "shell"}


@pytest.mark.slow
def test_a_reader_waits_and_says_for_whom(seeds, tmp_path, monkeypatch):
    """All at once, for one that writes. Two stand for all questions."""
    monkeypatch.chdir(tmp_path)
    with held(seeds) as holder:
        processes = {
            command: start(command, *arguments, "--db", seeds)
            for command, arguments in READERS.items()
            if command in OPENING
        }
        for command, process in processes.items():
            assert waits_for(process, seeds, holder), command
        let_go(holder)
        for command, process in processes.items():
            # There is no run to hold this one against: it is not judged.
            finish(process, status=3 if command == "check" else 0)


def test_a_reader_waits_only_so_long(seeds):
    with held(seeds) as holder:
        for command in (["peaks"], ["sql", "SELECT 1", "-f", "csv"], ["verify"]):
            assert_gives_up(command, seeds, holder, "0")
        assert_gives_up(["peaks"], seeds, holder, "0.5")


def test_readers_do_not_keep_readers_out(seeds):
    with held(seeds, read_only=True):
        assert run_memhouse("peaks", "--db", seeds).returncode == 0


@pytest.mark.slow
def test_writers_of_one_warehouse_all_get_through(tmp_path, db):
    paths = [
        copy_dump(f"seeds/00{number}*", tmp_path / f"2026-10-0{number + 1}") for number in range(4)
    ]
    # All at once, and all want to make it.
    for writer in [start("ingest", "--db", db, path) for path in paths]:
        finish(writer)
    alone = tmp_path / "alone.duckdb"
    for path in paths:
        fill(alone, path)
    found, expected = content(db), content(alone)
    for table in expected:
        if table != "runs":
            assert found[table] == expected[table], table
    assert [row[0] for row in found["runs"]] == [path.name for path in paths]
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(rounds(1)))
def test_two_may_make_the_same_warehouse(db, round_):
    writers = [start("ingest", "--db", db, SEEDS, "--run", name) for name in "ab"]
    for writer in writers:
        finish(writer)
    assert rows(db, "SELECT run_id FROM runs ORDER BY 1") == [("a",), ("b",)]
    assert rows(db, "SELECT COUNT(*) FROM modules") == [(5,)]
    # Made with small blocks, whoever did it.
    assert rows(db, "SELECT block_size FROM pragma_database_size()") == [(32768,)]


def test_where_there_are_no_links_a_warehouse_is_made_too(db, monkeypatch):
    def no_links(*_):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    fill(db, SEEDS)
    assert rows(db, "SELECT COUNT(*) FROM modules") == [(5,)]
    assert list(db.parent.iterdir()) == [db]


def test_a_warehouse_among_the_dumps_stays_locked(tmp_path):
    # To read it for a dump, and close it, would let go of our own lock.
    folder = tmp_path / "night"
    shutil.copytree(SEEDS, folder)
    db = folder / "warehouse"
    with memhouse.open(db) as warehouse:
        warehouse.ingest(folder)
        ask = subprocess.run(
            [sys.executable, "-c", HOLD, db, "False"], input=b"\n", capture_output=True
        )
    assert b"Could not set lock" in ask.stderr
    assert rows(db, "SELECT COUNT(*) FROM dumps") == [(5,)]


def test_python_is_told_who_has_it_though_the_command_be_long(seeds):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, seeds, "False", "x" * 1000],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(WarehouseBusyError, match=f"process {holder.pid} ") as error:
            memhouse.open(seeds)
        let_go(holder)
    assert len(str(error.value)) < len(str(seeds)) + 160
