"""Files of many hosts become one warehouse: in any order the same rows, and all or nothing."""

import os
import random
import shutil
import signal
import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import memhouse
from memhouse.ingest import writer
from memhouse.schema.errors import WarehouseError
from memhouse.schema.merge import merge
from memhouse.schema.versions import READER_VERSION

from ..support.clock import at
from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DATA, DUMPS
from ..support.rounds import rounds
from ..support.warehouse import content, everything, fill, rows, writing

NOON = datetime(2026, 11, 3, 12)
HOSTS = [f"host{number}" for number in range(8)]
# Which night of decode-v5e each host dumps: host3 has another program than the others.
JOBS = {"job-1": ("2026-10-04", "2026-10-03"), "job-2": ("2026-10-04", "2026-10-07")}
LOG = DATA / "oom/jax0.10.2-args.txt"


def ingest_jobs(file_of, nights, hosts):
    """Each host ingests its part of two jobs, host after host, into the file of the host."""
    for run, (usual, odd) in JOBS.items():
        for number, host in enumerate(HOSTS):
            if host in hosts:
                night = odd if host == "host3" else usual
                entered = NOON + timedelta(hours=list(JOBS).index(run), minutes=number)
                with at(entered):
                    fill(
                        file_of(host),
                        nights / night / "decode-v5e",
                        run_id=run,
                        host=host,
                        labels={"branch": "main"},
                    )


@pytest.fixture(scope="module")
def parts(tmp_path_factory, nights):
    """The file of each host. Only read them."""
    folder = tmp_path_factory.mktemp("parts")
    ingest_jobs(lambda host: folder / f"{host}.duckdb", nights, HOSTS)
    with at(NOON + timedelta(hours=3)):
        fill(folder / "host5.duckdb", LOG, run_id="logs")
    return [folder / f"{host}.duckdb" for host in HOSTS]


def merged_rows(main, files):
    """Every row after a merge, without the entry of the merge itself."""
    with at(NOON + timedelta(days=1)), writing(main) as store:
        merge(store, files)
    found = everything(main)
    found["journal"] = [row for row in found["journal"] if row[2] != "merge"]
    return found


def test_in_any_order_the_rows_of_one_ingest_of_everything(tmp_path, parts, nights):
    one = tmp_path / "one.duckdb"
    ingest_jobs(lambda host: one, nights, HOSTS)
    with at(NOON + timedelta(hours=3)):
        fill(one, LOG, run_id="logs")
    orders = [parts, parts[::-1], random.Random(1).sample(parts, len(parts))]
    expected = everything(one)
    # A part's own warehouse does not know which run is the first of all: numbers are of the whole.
    for number, order in enumerate(orders):
        assert merged_rows(tmp_path / f"{number}.duckdb", order) == expected
    # Not at once, but one after the other.
    for part in orders[2]:
        found = merged_rows(tmp_path / "by-and-by.duckdb", [part])
    assert found == expected
    assert run_memhouse("verify", "--db", tmp_path / "0.duckdb").returncode == 0


def test_what_is_there_already_changes_nothing(tmp_path, parts):
    main = tmp_path / "main.duckdb"
    merged_rows(main, parts)
    with memhouse.open(main) as warehouse:
        warehouse.label("job-1", labels={"branch": None, "by": "me"})
    before = everything(main)
    with memhouse.open(main) as warehouse:
        assert vars(warehouse.merge(*parts)) | {"changed_runs": set()} == {
            "files": 8,
            "runs": 0,
            "dumps": 0,
            "modules": 0,
            "changed_runs": set(),
        }
    assert everything(main) == before


def test_a_part_that_has_grown_is_added_in_any_order(tmp_path, nights):
    small, large = tmp_path / "small.duckdb", tmp_path / "large.duckdb"
    with at(NOON):
        for file in (small, large):
            fill(file, nights / "2026-10-01/decode-v5e", run_id="job", host="a")
    with at(NOON + timedelta(hours=1)):
        fill(large, nights / "2026-10-01", run_id="job", host="b")
        # Growth that was accepted, and a log of a run that has dumps.
        fill(small, LOG, run_id="job", host="a")
    found = [
        merged_rows(tmp_path / f"{number}.duckdb", order)
        for number, order in enumerate([[small, large], [large, small]])
    ]
    assert found[0] == found[1]
    assert len(found[0]["oom_reports"]) > 0
    assert {row[1] for row in found[0]["run_parts"]} == {"a", "b"}


def test_a_module_of_newer_readers_or_read_completely_wins(tmp_path, monkeypatch):
    old, new = tmp_path / "old.duckdb", tmp_path / "new.duckdb"
    with at(NOON):
        with monkeypatch.context() as patched:
            patched.setattr(writer, "READER_VERSION", READER_VERSION - 1)
            fill(old, DUMPS / "cpu/jax-0.9.0", run_id="a")
        fill(new, DUMPS / "cpu/jax-0.9.0", run_id="b")
    for number, order in enumerate([[old, new], [new, old]]):
        main = tmp_path / f"{number}.duckdb"
        merged_rows(main, order)
        assert rows(main, "SELECT DISTINCT reader_version FROM modules") == [(READER_VERSION,)]
        assert run_memhouse("verify", "--db", main).returncode == 0


def test_a_dump_that_was_cut_short_is_completed_by_a_later_file(tmp_path, nights):
    """A part that was merged while its files were written must not keep out all later ones."""
    night = tmp_path / "night"
    shutil.copytree(nights / "2026-10-01/llama-cpu", night)
    (text,) = night.glob("*after_optimizations.txt")
    whole = text.read_bytes()
    text.write_bytes(whole[: len(whole) // 2])
    cut, full = tmp_path / "cut.duckdb", tmp_path / "full.duckdb"
    with at(NOON):
        fill(cut, night, run_id="job", host="a")
        shutil.copy(cut, full)
        text.write_bytes(whole)
        fill(full, night, run_id="job", host="a")
    for number, order in enumerate([[cut, full], [full, cut]]):
        main = tmp_path / f"{number}.duckdb"
        merged_rows(main, order)
        assert rows(main, "SELECT DISTINCT status FROM dumps") == [("ok",)]
        assert run_memhouse("verify", "--db", main).returncode == 0


def test_an_earlier_entry_in_a_part_orders_the_history_too(tmp_path, nights):
    main, part = tmp_path / "main.duckdb", tmp_path / "part.duckdb"
    for run, night, hour in (("y", "2026-10-01", 1), ("x", "2026-10-05", 2)):
        with at(NOON + timedelta(hours=hour)):
            fill(main, nights / night / "llama-cpu", run_id=run)
    with at(NOON):
        fill(part, nights / "2026-10-05/llama-cpu", run_id="x")
    merged_rows(main, [part])
    order = "SELECT run_id FROM internal.lineages ORDER BY run_number"
    assert rows(main, order) == [("x",), ("y",)]
    assert run_memhouse("verify", "--db", main).returncode == 0


@pytest.fixture
def main(tmp_path, nights):
    """A warehouse with the run `night` without a host, and `job` of host a."""
    with at(NOON):
        fill(tmp_path / "main.duckdb", nights / "2026-10-01/llama-cpu", run_id="night")
        fill(
            tmp_path / "main.duckdb",
            nights / "2026-10-01/llama-cpu",
            run_id="job",
            host="a",
            labels={"branch": "main"},
        )
    return tmp_path / "main.duckdb"


@pytest.mark.parametrize(
    ("options", "night", "says"),
    [
        ({"run_id": "night"}, "2026-10-05", "holds other dumps there"),
        ({"run_id": "job", "host": "a"}, "2026-10-05", "holds other dumps of host a there"),
        ({"run_id": "night", "host": "b"}, "2026-10-01", "parts of hosts in one file"),
        ({"run_id": "job"}, "2026-10-01", "parts of hosts in one file"),
        (
            {"run_id": "job", "host": "b", "labels": {"branch": "fix"}},
            "2026-10-01",
            "two values of the label branch: main and fix",
        ),
    ],
)
def test_what_contradicts_is_refused_and_nothing_changes(
    tmp_path, main, nights, parts, options, night, says
):
    part = tmp_path / "part.duckdb"
    fill(part, nights / night / "llama-cpu", **options)
    before = everything(main)
    for files in ([part], [parts[0], part], [part, parts[0]]):
        done = run_memhouse("merge", main, *files)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"error: cannot merge {part}: run '")
        assert says in done.stderr
        assert everything(main) == before


def test_wrong_files_are_refused_before_anything_is_made(tmp_path, parts, filled):
    main, text = tmp_path / "main.duckdb", tmp_path / "text.duckdb"
    text.write_text("no warehouse")
    wrong = {
        tmp_path / "absent.duckdb": "there is no such file",
        text: "is not a DuckDB database",
        tmp_path: "there is no such file",
        main: "there is no such file",
        parts[0]: "is named twice",
    }
    for file, says in wrong.items():
        done = run_memhouse("merge", main, parts[0], file)
        assert (done.returncode, says in done.stderr) == (1, True), done.stderr
        assert not main.exists()
    with memhouse.open(main) as warehouse, pytest.raises(WarehouseError, match="named twice"):
        warehouse.merge(main)


@pytest.mark.slow
def test_a_killed_merge_loses_and_doubles_nothing(tmp_path, parts, nights):
    chance = random.Random(2)
    first, expected = tmp_path / "first.duckdb", tmp_path / "expected.duckdb"
    for file in (first, expected):
        with at(NOON - timedelta(days=1)):
            fill(file, nights / "2026-10-01", run_id="before")
    began = time.monotonic()
    assert subprocess.run([MEMHOUSE, "merge", expected, *parts]).returncode == 0
    seconds = time.monotonic() - began
    states = (content(first), content(expected))
    killed = 0
    main = tmp_path / "main.duckdb"
    main.write_bytes(first.read_bytes())
    for number in range(rounds(5)):
        process = subprocess.Popen(
            [MEMHOUSE, "merge", main, *parts], stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(chance.uniform(0, 1.2 * seconds))
        os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
        killed += process.wait() == -signal.SIGKILL
        found = content(main)
        assert found in states, number
        if found == states[1]:
            for leftover in tmp_path.glob("main.duckdb*"):
                leftover.unlink()
            main.write_bytes(first.read_bytes())
    assert killed > 1
    assert run_memhouse("merge", main, *parts).returncode == 0
    assert content(main) == states[1]
    assert run_memhouse("verify", "--db", main).returncode == 0
    assert [path.name for path in tmp_path.iterdir() if "memhouse" in path.name] == []


def test_a_busy_part_is_told_and_a_busy_main_is_waited_for(tmp_path, parts):
    with memhouse.open(tmp_path / "part.duckdb"):
        done = subprocess.run(
            [MEMHOUSE, "merge", tmp_path / "main.duckdb", tmp_path / "part.duckdb"],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert "part.duckdb is in use by" in done.stderr
    assert not Path(tmp_path / "main.duckdb").exists()
