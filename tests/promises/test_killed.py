"""An ingest killed at any moment: what is there is whole, and the same command goes on.

With `pytest -s` the rounds say where they were killed.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS
from ..support.rounds import rounds
from ..support.warehouse import content, everything, rows

pytestmark = pytest.mark.slow

NOTHING_YET = re.compile("there is no warehouse at|is empty: fill it")
# Each a run with a commit of its own, so that kills fall between commits too.
SAMPLES = [
    *(DUMPS / "cpu" / name for name in ("jax-0.10.2", "jax-0.4.23", "jax-0.4.35", "jax-0.9.0")),
    DUMPS / "tpu/flash-v5e",
    DUMPS / "gpu/decode-h100",
    DUMPS / "seeds",
]


def start(db, paths, jobs):
    """The command in a process group of its own."""
    return subprocess.Popen(
        [MEMHOUSE, "ingest", "--db", db, "--jobs", str(jobs), *paths],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process):
    """Kill the command with all its processes; how many runs it had told to be in."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # What is left in the pipe: `communicate` would pass over what was read ahead.
    said = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    return len(said.splitlines())


def dumps_of_nights(db):
    """The dumps of the night `dumps` and of the other one, which is named after the time."""
    query = "SELECT run_id = 'dumps', workload, module_name, occurrence, module_id FROM dumps"
    return set(rows(db, query))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What an ingest that was left alone made, and how long a run of it took."""
    folder = tmp_path_factory.mktemp("alone")
    process = start(folder / "memhouse.duckdb", SAMPLES, jobs=1)
    wait_for_a_file(folder)
    began = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode == 0
    return content(folder / "memhouse.duckdb"), (time.monotonic() - began) / len(SAMPLES)


def wait_for_a_file(folder):
    """Until the warehouse begins to be made."""
    end = time.monotonic() + 60
    while not any(folder.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.0005)


def kill_in_the_middle(process, folder, chance, seconds):
    wait_for_a_file(folder)
    return kill_after(process, chance.randrange(len(SAMPLES)), chance.uniform(0, seconds))


def kill_at_the_making(process, folder, chance, seconds):
    wait_for_a_file(folder)
    return kill_after(process, 0, chance.choice([0, chance.uniform(0, 0.1)]))


def kill_at_the_end(process, folder, chance, seconds):
    return kill_after(process, len(SAMPLES), chance.uniform(0, 0.05))


def kill_after(process, runs, seconds):
    """Kill so long after the command told of so many runs; of how many it told in all."""
    for _ in range(runs):
        assert process.stderr.readline()
    time.sleep(seconds)
    return runs + kill(process)


def check_what_is_there(db, expected, told):
    """It opens and verifies, every module in it is whole, and all runs told of are there."""
    done = run_memhouse("verify", "--db", db)
    if NOTHING_YET.search(done.stderr):
        assert told == 0
        return
    assert (done.returncode, done.stdout) == (0, "")
    found = content(db)
    assert len(found["runs"]) >= told
    there = {row[0] for row in found["modules"]}
    entered = "SELECT run_id FROM runs ANTI JOIN journal USING (run_id)"
    assert rows(db, entered) == []
    for table, its_rows in expected.items():
        if table in ("runs", "run_parts", "dumps", "file_sets", "compiler_flags"):
            assert set(found[table]) <= set(its_rows)
        # Verify has held the chains of what is there.
        elif table not in ("dump_series", "causes"):
            assert found[table] == [row for row in its_rows if row[0] in there], table


@pytest.mark.parametrize("number", range(rounds(1)))
def test_a_killed_ingest_loses_nothing_and_goes_on(tmp_path, alone, number, killed_at):
    expected, seconds = alone
    chance = random.Random(number)
    moments = [kill_in_the_middle, kill_at_the_making, kill_at_the_end]
    moment, jobs = moments[number % 3], 1 + (number + number // 3) % 2
    db = tmp_path / "memhouse.duckdb"
    process = start(db, SAMPLES, jobs)
    told = moment(process, tmp_path, chance, seconds)
    state = "killed" if process.returncode == -signal.SIGKILL else "too late"
    wal = ", with a WAL" if Path(f"{db}.wal").exists() else ""
    killed_at[f"{state} after {told} of {len(SAMPLES)} runs{wal}"] += 1
    check_what_is_there(db, expected, told)
    resumed = start(db, SAMPLES, jobs)
    _, said = resumed.communicate(timeout=60)
    assert (resumed.returncode, len(said.splitlines())) == (0, len(SAMPLES)), said
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert content(db) == expected


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="later"),
        pytest.param(["--run", "dumps", "--replace"], id="replace", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("round_", range(rounds(1)))
def test_a_killed_change_of_a_night_harms_neither_night(tmp_path, nights, options, round_):
    """A path that changed: both nights are kept, or with --replace one of them, whole."""
    dumps, db, alone = tmp_path / "dumps", tmp_path / "memhouse.duckdb", tmp_path / "alone.duckdb"
    shutil.copytree(nights / "2026-10-01", dumps)
    for file in (db, alone):
        assert run_memhouse("ingest", dumps, "--db", file).returncode == 0
    before, dumps_before = content(db), dumps_of_nights(db)
    shutil.rmtree(dumps)
    shutil.copytree(nights / "2026-10-06", dumps)
    assert run_memhouse("ingest", dumps, *options, "--db", alone).returncode == 0
    after, dumps_after = content(alone), dumps_of_nights(alone)
    process = start(db, [dumps, *options], jobs=1)
    time.sleep(random.Random(round_).uniform(0.2, 1.5))
    kill(process)
    assert run_memhouse("verify", "--db", db).returncode == 0
    if options:
        assert content(db) in (before, after)
    else:
        assert dumps_before <= dumps_of_nights(db) <= dumps_after
    assert run_memhouse("ingest", dumps, *options, "--db", db).returncode == 0
    assert dumps_of_nights(db) == dumps_after
    assert len(content(db)["runs"]) == len(after["runs"])
    if options:
        assert content(db) == after


@pytest.fixture(scope="module")
def killed_at():
    """Counts where rounds were killed, and says so at the end."""
    counts = Counter()
    yield counts
    for where, count in sorted(counts.items()):
        print(f"\n{count:4} {where}", end="")
    print()


def members(group):
    """The processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def wait_until(reached):
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_the_readers_of_a_killed_ingest_end_too(tmp_path, nights):
    process = start(tmp_path / "memhouse.duckdb", [nights], jobs=2)
    wait_until(lambda: len(members(process.pid)) > 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    try:
        wait_until(lambda: not members(process.pid))
    finally:
        kill(process)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_a_killed_reader_ends_the_ingest_with_a_line(tmp_path, nights):
    db = tmp_path / "memhouse.duckdb"
    process = start(db, [nights], jobs=2)
    wait_until(lambda: len(members(process.pid)) > 2)
    os.kill(max(members(process.pid)), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert "--jobs" in said
    again = start(db, [nights], jobs=1)
    assert "39 dumps" in again.communicate(timeout=60)[1]
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_what_a_kill_leaves_is_read_without_writing(tmp_path):
    """Readers see what was committed, though nobody has tidied up yet."""
    db = tmp_path / "memhouse.duckdb"
    process = start(db, SAMPLES, jobs=1)
    told = [process.stderr.readline() for _ in SAMPLES[:2]]
    kill(process)
    # What the writer could not hold in memory may lie in a folder beside it.
    files = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert len(everything(db)["runs"]) >= len(told)
    after = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert after == files


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
def test_ctrl_c_while_it_starts_is_no_traceback(filled):
    peaks = subprocess.Popen(
        [MEMHOUSE, "peaks", "--db", filled], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # Then it imports what the commands need.
    wait_until(lambda: "duckdb" in Path(f"/proc/{peaks.pid}/maps").read_text())
    peaks.send_signal(signal.SIGINT)
    assert peaks.communicate(timeout=60) == (b"", b"")
    assert peaks.returncode == 130


def test_ctrl_c_ends_a_query_without_a_word(filled):
    endless = "SELECT SUM(a * b) FROM range(1000000) t(a), range(1000000) u(b)"
    query = subprocess.Popen(
        [MEMHOUSE, "sql", endless, "--db", filled], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # By then it computes: a second of processor time is more than any start takes.
    stat = Path(f"/proc/{query.pid}/stat")
    wait_until(lambda: sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) > 150)
    query.send_signal(signal.SIGINT)
    assert query.communicate(timeout=60) == (b"", b"")
    assert query.returncode == 130


@pytest.mark.parametrize("round_", range(rounds(1)))
def test_ctrl_c_ends_an_ingest_with_all_its_processes(tmp_path, alone, round_):
    """A terminal sends it to all of them."""
    expected, seconds = alone
    db = tmp_path / "memhouse.duckdb"
    process = start(db, SAMPLES, jobs=2)
    wait_for_a_file(tmp_path)
    time.sleep(random.Random(round_).uniform(0, 2 * seconds))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    # What was done is told, and nothing else.
    assert [line for line in said.splitlines() if " new module" not in line] == []
    done = len(said.splitlines()) == len(SAMPLES)
    assert process.returncode == 130 or (done and process.returncode == 0)
    assert run_memhouse("ingest", "--db", db, *SAMPLES).returncode == 0
    assert content(db) == expected
