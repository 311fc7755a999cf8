"""Many writers of one lake at once, and writers killed at any moment: each row is there once."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from memhouse.schema import arrow
from memhouse.schema.lake.data_files import HISTORY

from ..support.command import MEMHOUSE, run_memhouse
from ..support.history import NIGHTS, ingest_nights
from ..support.lakes import history_rows, lake_in, table_rows, view_rows
from ..support.rounds import rounds
from ..support.warehouse import reading

deltalake = pytest.importorskip("deltalake")
# Each starts many processes.
pytestmark = [pytest.mark.slow, pytest.mark.scheduled]

# A module of the first night is another one in the third and in the fourth.
FEW = NIGHTS[:4]


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path):
    """Where a lake is, in a folder and in a bucket, for this process and others."""
    if request.param == "folder":
        return str(tmp_path / "lake")
    return request.getfixturevalue("bucket").url


def start(*arguments):
    """The command in a process group of its own."""
    return subprocess.Popen(
        [MEMHOUSE, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    process.stderr.close()


def end(*processes):
    """Wait until all end well."""
    for process in processes:
        try:
            _, said = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            kill(process)
            raise
        assert process.returncode == 0, said


def make_lake(place):
    assert run_memhouse("lake", "init", place).returncode == 0


def nights_of(folder):
    return [folder / name for name in FEW]


def exists(place):
    """Whether a lake was made, before its makers were killed."""
    from memhouse.schema.lake.storage import options

    return deltalake.DeltaTable.is_deltatable(place, options(place))


@pytest.fixture(scope="module")
def alone(nights, tmp_path_factory):
    """Every row of tables and views of a file that one process made."""
    db = ingest_nights(tmp_path_factory.mktemp("alone") / "alone.duckdb", nights, FEW)
    with reading(db) as store:
        return table_rows(store), view_rows(store)


@pytest.fixture(scope="module")
def seconds(nights, tmp_path_factory):
    """As long as an ingest takes on this machine; a kill falls anywhere in it."""
    lake = tmp_path_factory.mktemp("timed") / "lake"
    make_lake(lake)
    began = time.monotonic()
    end(start("ingest", "--db", lake, "--jobs", 1, *nights_of(nights)))
    return time.monotonic() - began


def check_as_if_alone(place, alone):
    """No row is missing, twice or of the dead, and `verify` finds nothing wrong."""
    done = run_memhouse("verify", "--db", place)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with lake_in(place, create=False) as store:
        tables, views = table_rows(store), view_rows(store)
    expected, expected_views = alone
    # First, because it says most when it fails; there is no run NAME@TIME.
    assert [row[0] for row in tables["runs"]] == FEW
    for name, rows in expected.items():
        assert tables[name] == rows, name
    assert views == expected_views


# How often those meet that make a lake.
ROUNDS = 4
MADE_AT_ONCE = """
import sys
from memhouse.lake import init
import deltalake, fsspec
for number in range(int(sys.argv[2])):
    sys.stdin.readline()
    init(f"{sys.argv[1]}{number}")
    print(number, flush=True)
"""


def test_four_that_make_a_lake_at_once_make_one(place):
    """The moment in which they meet is short: they wait for each other, again and again."""
    command = [sys.executable, "-c", MADE_AT_ONCE, place, str(ROUNDS)]
    pipe = subprocess.PIPE
    makers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    try:
        for number in range(ROUNDS):
            for maker in makers:
                maker.stdin.write("\n")
                maker.stdin.flush()
            assert [maker.stdout.readline() for maker in makers] == [f"{number}\n"] * 4
            with lake_in(f"{place}{number}", create=False) as store:
                assert (store.lake.snapshot.version, store.rows("FROM runs").num_rows) == (0, 0)
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()


def test_four_that_ingest_into_a_new_lake_at_once_make_one(place, nights, alone):
    """An ingest makes the lake of a URL."""
    if "://" not in place:
        end(*(start("lake", "init", place) for _ in range(3)))
    end(*(start("ingest", "--db", place, *nights_of(nights)) for _ in range(4)))
    check_as_if_alone(place, alone)


@pytest.mark.parametrize("number", range(rounds(1)))
def test_writers_killed_at_any_moment_leave_nothing_and_lose_nothing(
    place, nights, alone, seconds, number
):
    """Two or three writers are killed; then one is left alone."""
    chance = random.Random(number)
    # An ingest makes the lake of a URL; at a path it would make a DuckDB file.
    if chance.random() < 0.7 or "://" not in place:
        make_lake(place)
    writers = [
        start("ingest", "--db", place, "--jobs", 1, *nights_of(nights))
        for _ in range(chance.choice([2, 3]))
    ]
    # They slow each other down, so they take longer than one.
    moments = sorted(chance.uniform(0, seconds * len(writers) / 1.5) for _ in writers)
    began = time.monotonic()
    for process, moment in zip(writers, moments, strict=True):
        time.sleep(max(0, began + moment - time.monotonic()))
        kill(process)
    check_what_is_there(place, alone)
    end(start("ingest", "--db", place, *nights_of(nights)))
    check_as_if_alone(place, alone)


def check_what_is_there(place, alone, *, is_counted=True):
    """Whatever is stored: each row of it once, modules and runs whole.

    is_counted: runs entered in the order of the nights.
    """
    if not exists(place):
        return
    done = run_memhouse("verify", "--db", place)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with lake_in(place, create=False) as store:
        tables = table_rows(store)
        assert {name: tables[name] for name in HISTORY} == history_rows(store)
    modules = {row[0] for row in tables["modules"]}
    for name, rows in alone[0].items():
        if name in HISTORY:
            continue
        if arrow.schema(name).names[0] == "module_id":
            rows = [row for row in rows if row[0] in modules]
            assert tables[name] == rows, name
        else:
            assert (name == "runs" and not is_counted) or set(tables[name]) <= set(rows), name
            assert len(tables[name]) == len(set(tables[name])), name
    # A night is one commit here, so it is there as a whole.
    runs = {row[0] for row in tables["runs"]}
    assert tables["dumps"] == [row for row in alone[0]["dumps"] if row[1] in runs]


def test_compactions_beside_writers_keep_each_row_once(place, nights, alone):
    make_lake(place)
    end(start("ingest", "--db", place, *nights_of(nights)[:2]))
    writers = [start("ingest", "--db", place, *nights_of(nights)) for _ in range(2)]
    while any(writer.poll() is None for writer in writers):
        end(*(start("compact", "--db", place) for _ in range(2)))
    end(*writers)
    check_as_if_alone(place, alone)


def test_an_ingest_beside_deletions_ends_with_whole_runs(place, nights, alone):
    """One goes through the nights, the other deletes what is there, again and again."""
    make_lake(place)
    end(start("ingest", "--db", place, *nights_of(nights)[:2]))
    writer = start("ingest", "--db", place, *nights_of(nights))
    while writer.poll() is None:
        run_memhouse("prune", random.choice(FEW), "--db", place)
        check_what_is_there(place, alone, is_counted=False)
    end(writer)
    end(start("ingest", "--db", place, *nights_of(nights)))
    check_what_is_there(place, alone, is_counted=False)
