"""Several processes at one warehouse: who writes is waited for, by name, and nothing is lost."""

import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import memhouse
from memhouse.cli.app import app_for
from memhouse.schema.errors import WarehouseBusyError
from memhouse.schema.stores.duckdb import open_store

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS, copy_dump
from ..support.warehouse import everything, fill, rows
from .test_killed import content

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


@pytest.mark.parametrize(
    ("command", "read_only"),
    [*((command, False) for command in WRITERS), ("ingest", True), ("sql", True)],
)
def test_a_writer_waits_and_says_for_whom(seeds, limits, command, read_only):
    with held(seeds, read_only) as holder:
        process = start(*WRITERS[command], "--db", seeds)
        line = process.stderr.readline()
        assert line.startswith(
            f"{seeds} is in use by process {holder.pid} ({Path(sys.executable).name} "
        )
        assert line.endswith("): waiting up to 600 s for it\n")
        let_go(holder)
        finish(process)
    changed = {
        "ingest": "SELECT COUNT(*) = 2 FROM runs",
        "prune": "SELECT COUNT(*) = 0 FROM runs",
        "accept": "SELECT COUNT(*) > 0 FROM accepted_changes",
        "sql": "SELECT COUNT(*) = 0 FROM run_labels",
        "label": "SELECT COUNT(*) = 1 FROM run_labels",
        "compact": "SELECT COUNT(*) = 1 FROM runs",
    }
    assert rows(seeds, changed[command]) == [(True,)]


@pytest.mark.parametrize(
    ("command", "seconds"), [*((command, "0") for command in WRITERS), ("ingest", "0.5")]
)
def test_a_writer_waits_only_so_long(seeds, limits, command, seconds):
    before = everything(seeds)
    with held(seeds) as holder:
        began = time.monotonic()
        run = run_memhouse(*WRITERS[command], "--wait", seconds, "--db", seeds)
        assert time.monotonic() - began > float(seconds)
    assert (run.returncode, run.stdout) == (1, "")
    *waiting, error = run.stderr.splitlines()
    assert len(waiting) == (seconds != "0")
    assert error.startswith(f"error: {seeds} is in use by process {holder.pid} (")
    assert error.endswith("): try again when it has finished")
    assert everything(seeds) == before


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
    "peaks": [],
    "report": ["002_79ae6c566c7e6550"],
    "runs": [],
    "since": ["002_79ae6c566c7e6550"],
    "sql": ["SELECT 1"],
    "tables": [],
    "timeline": ["002_79ae6c566c7e6550"],
    "trends": [],
    "verify": [],
}


def test_every_command_with_a_warehouse_can_wait():
    """`mcp`, `oom` and `record` have their own tests; the shell reads only on a terminal."""
    waiting = {command.name for command in app_for([]).registered_commands if waits(command)}
    assert waiting == {*READERS, *WRITERS, "oom", "record", "shell"} - {"accept"}
    others = {command.name for command in app_for([]).registered_commands} - waiting
    assert others == {"demo", "doctor", "mcp", "views"}


def waits(command):
    return "wait" in inspect.signature(command.callback).parameters


@pytest.mark.parametrize("command", READERS)
def test_a_reader_waits_and_says_for_whom(seeds, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    with held(seeds) as holder:
        process = start(command, *READERS[command], "--db", seeds)
        line = process.stderr.readline()
        assert line.startswith(f"{seeds} is in use by process {holder.pid} (")
        assert line.endswith("): waiting up to 600 s for it\n")
        let_go(holder)
        # There is no run to hold this one against: it is not judged.
        finish(process, status=3 if command == "check" else 0)


@pytest.mark.parametrize(
    "command",
    [["peaks"], ["sql", "SELECT 1", "-f", "csv"], ["verify"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("seconds", ["0", "0.5"])
def test_a_reader_waits_only_so_long(seeds, command, seconds):
    with held(seeds) as holder:
        began = time.monotonic()
        run = run_memhouse(*command, "--wait", seconds, "--db", seeds)
        assert time.monotonic() - began > float(seconds)
    assert (run.returncode, run.stdout) == (1, "")
    *waiting, error = run.stderr.splitlines()
    assert len(waiting) == (seconds != "0")
    assert error.startswith(f"error: {seeds} is in use by process {holder.pid} (")
    assert error.endswith("): try again when it has finished")


def test_readers_do_not_keep_readers_out(seeds):
    with held(seeds, read_only=True):
        assert run_memhouse("peaks", "--db", seeds).returncode == 0


def test_a_real_ingest_is_named_by_its_command(tmp_path, nights):
    db = tmp_path / "memhouse.duckdb"
    writer = start("ingest", "--db", db, "--jobs", "1", *sorted(nights.iterdir()))
    writer.stderr.readline()
    writer.send_signal(signal.SIGSTOP)  # One night is in, the others can wait.
    run = run_memhouse("peaks", "--wait", "0", "--db", db)
    writer.send_signal(signal.SIGCONT)
    assert run.returncode == 1
    # Wherever memhouse is installed, and however long the paths of its arguments are.
    assert f"in use by process {writer.pid} (memhouse ingest --db " in run.stderr
    finish(writer)


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


@pytest.mark.parametrize("round_", range(2))
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


def test_python_is_told_who_has_it(seeds):
    with held(seeds) as holder, pytest.raises(WarehouseBusyError, match=f"process {holder.pid} "):
        memhouse.open(seeds)


def test_a_long_command_is_cut(seeds):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, seeds, "False", "x" * 1000],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(WarehouseBusyError) as error:
            open_store(str(seeds))
        let_go(holder)
    assert len(str(error.value)) < len(str(seeds)) + 160
