"""A disk that is full, or not ours to write to: one line that says so, and nothing harmed."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DATA, DUMPS
from ..support.warehouse import everything, rows

SAMPLES = [DUMPS / "seeds", DUMPS / "cpu", DUMPS / "gpu"]
TOLD = re.compile(r": \d+ dumps?, .* in \d+\.\d s$")
BIG = DATA / "nightly.tar.zst"
# How far a disk's room reaches: not the file's first blocks, or not all runs.
ROOMS = ["8k", "200k"]


@contextmanager
def mounted(folder, options):
    """A file system of its own at `folder`; skips the test where that is not permitted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", folder]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def check_one_line(run, *parts):
    """All that it said, but for the runs that it told to be in."""
    assert (run.returncode, run.stdout) == (1, "")
    (line,) = [line for line in run.stderr.splitlines() if not TOLD.search(line)]
    assert line.startswith("error: ")
    for part in parts:
        assert part in line, line


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_full_disk_stops_an_ingest_and_harms_nothing(tmp_path, room):
    with mounted(tmp_path / "disk", f"size={room}") as disk:
        db = disk / "memhouse.duckdb"
        run = run_memhouse("ingest", "--db", db, "--jobs", "1", *SAMPLES)
        check_one_line(run, str(disk), "No space left on device")
        committed = len(run.stderr.splitlines()) - 1
        assert [path for path in disk.iterdir() if path.name.startswith(".")] == []
        if committed:
            # Before there is room again: all that was told to be in is there.
            assert len(rows(db, "SELECT * FROM runs")) >= committed
            assert run_memhouse("verify", "--db", db).returncode == 0
        remount(disk, "size=10m")
        again = run_memhouse("ingest", "--db", db, "--jobs", "1", *SAMPLES)
        assert again.returncode == 0, again.stderr
        assert run_memhouse("verify", "--db", db).returncode == 0
        assert rows(db, "SELECT COUNT(*) FROM modules") == [(17,)]


def within(size, *command):
    """Run the command, which may write no file beyond a size: a quota is not ours to set."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    # Python 3.11 would leave half of a module's bytecode behind, and no later command would start.
    return subprocess.run(
        [MEMHOUSE, *command],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )


@pytest.mark.slow
def test_a_limit_of_the_file_size_is_a_full_disk(tmp_path):
    for size in (4096, 10_000, 300_000):
        command = ["ingest", "--db", tmp_path / f"{size}.duckdb", "--jobs", "1", *SAMPLES]
        check_one_line(within(size, *command), "File too large")
    # After the last, which had stored some.
    assert run_memhouse(*command).returncode == 0
    assert run_memhouse("verify", "--db", command[2]).returncode == 0
    assert rows(command[2], "SELECT COUNT(*) FROM modules") == [(17,)]


@pytest.mark.slow
def test_a_full_disk_stops_what_else_writes(tmp_path, copied):
    # The log of the deletion takes 30 kB: with the second limit only the file cannot be written.
    create = ["sql", "--write", "CREATE TABLE t AS FROM range(1000000)"]
    for size in (20_000, 100_000):
        for command in (create, ["prune", "cpu"]):
            before = everything(copied)
            run = within(size, *command, "--db", copied)
            if run.returncode:
                assert len(run.stderr.splitlines()) == 1
                assert "File too large" in run.stderr
                assert everything(copied) == before
            assert run_memhouse("verify", "--db", copied).returncode == 0
    assert run.returncode == 0


def test_no_room_to_unpack_an_archive(tmp_path, db, monkeypatch):
    with mounted(tmp_path / "tmp", "size=100k") as full:
        monkeypatch.setattr(tempfile, "tempdir", str(full))
        run = run_memhouse("ingest", "--db", db, BIG)
        check_one_line(run, str(BIG), str(full))
        assert list(full.iterdir()) == []
    assert not db.exists()


# --- disks and folders that cannot be written to ---------------------------------------------


def test_a_disk_that_can_only_be_read(tmp_path, copied):
    with mounted(tmp_path / "disk", "size=20m") as disk:
        db = Path(shutil.copy(copied, disk / "memhouse.duckdb"))
        remount(disk, "ro")
        for command in (["ingest", SAMPLES[0]], ["prune", "cpu"], ["sql", "--write", "DELETE"]):
            run = run_memhouse(*command, "--db", db)
            check_one_line(run, str(db), "Read-only file system")
        new = run_memhouse("ingest", "--db", disk / "new.duckdb", SAMPLES[0])
        check_one_line(new, f"{disk}/new.duckdb: Read-only file system")
        out = run_memhouse("export", "peaks", disk / "peaks.csv", "--db", db)
        check_one_line(out, f"{disk}/peaks.csv", "Read-only file system")
        assert run_memhouse("peaks", "--db", db).returncode == 0


def without_rights():
    """What to start a command with for files' modes to bind it, root's too."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"]).returncode:
        pytest.skip("root cannot do without its rights here")
    return prefix


@pytest.mark.slow
def test_no_permission(tmp_path, copied):
    prefix = without_rights()

    def run(*command):
        return subprocess.run(
            [*prefix, MEMHOUSE, *map(str, command)], capture_output=True, text=True
        )

    copied.chmod(0o444)
    assert run("peaks", "--db", copied).returncode == 0
    for command in (["ingest", SAMPLES[0]], ["prune", "cpu"]):
        check_one_line(run(*command, "--db", copied), "Permission denied", str(copied))
    copied.chmod(0)
    check_one_line(run("peaks", "--db", copied), "Permission denied", str(copied))
    tmp_path.chmod(0o555)
    new = tmp_path / "new.duckdb"
    check_one_line(run("ingest", SAMPLES[0], "--db", new), f"{new}: Permission")
    tmp_path.chmod(0o755)


# --- what is no file, or not where it should be ----------------------------------------------


def test_a_folder_is_no_warehouse(tmp_path):
    for command in (["ingest", SAMPLES[0]], ["peaks"], ["prune", "x"]):
        check_one_line(run_memhouse(*command, "--db", tmp_path), str(tmp_path))
        check_one_line(run_memhouse(*command, "--db", "", cwd=tmp_path), "--db")


def test_a_missing_folder_is_named(tmp_path):
    db = tmp_path / "gone" / "memhouse.duckdb"
    check_one_line(run_memhouse("ingest", SAMPLES[0], "--db", db), f"{db}: ", str(db.parent))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_cut_short_is_named_and_left_alone(filled, db):
    for size in (0, 100, 4096, 9000, 20_000, filled.stat().st_size // 2):
        shutil.copy(filled, db)
        os.truncate(db, size)
        before = db.read_bytes()
        for command in (["ingest", SAMPLES[0]], ["verify"]):
            run = run_memhouse(*command, "--db", db)
            # Of half a file the other half may be all that is read.
            if size <= 20_000 or run.returncode:
                check_one_line(run, str(db))
                assert db.read_bytes() == before


# --- output ---------------------------------------------------------------------------------


OUTPUTS = [["peaks"], ["peaks", "-f", "csv"], ["views", "peaks"], ["check"], ["--help"]]


def start(filled, command, **streams):
    db = [] if command[0] in ("views", "--help") else ["--db", filled]
    return subprocess.Popen([MEMHOUSE, *command, *db], text=True, stderr=subprocess.PIPE, **streams)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_results_on_a_full_disk(filled):
    with Path("/dev/full").open("w") as full:
        for process in [start(filled, command, stdout=full) for command in OUTPUTS]:
            (line,) = process.communicate()[1].splitlines()
            assert process.returncode == 1, process.args
            assert line.startswith("error: ")
            assert "No space left on device" in line


@pytest.mark.slow
def test_a_closed_output(filled):
    close = partial(os.close, 1)
    for process in [start(filled, command, preexec_fn=close) for command in OUTPUTS[:-1]]:
        (line,) = process.communicate()[1].splitlines()
        assert process.returncode == 1, process.args
        assert line.startswith("error: ")


@pytest.mark.slow
def test_a_reader_that_has_had_enough(filled):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as broken:  # noqa: PTH123
        for process in [start(filled, command, stdout=broken) for command in OUTPUTS[:-1]]:
            assert (process.communicate()[1], process.returncode) == ("", 0), process.args


@pytest.mark.slow
def test_a_closed_input_is_an_empty_one(filled):
    close, devnull = partial(os.close, 0), subprocess.DEVNULL
    for command in (["sql", "-"], ["shell"]):
        process = start(filled, command, preexec_fn=close, stdout=devnull)
        said = process.communicate()[1]
        assert "Traceback" not in said
        assert len(said.splitlines()) <= 1


@pytest.mark.slow
def test_closed_standard_streams_do_not_reach_the_warehouse(db):
    # The next file to be opened gets the lowest free number: it must not be the warehouse's.
    script = (
        "import os, memhouse.cli; [os.close(n) for n in range(3)];"
        "memhouse.cli._open_standard_streams(); os._exit(os.open(os.devnull, 0))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 3
    command = [MEMHOUSE, "ingest", "--db", db, SAMPLES[0]]
    closed = subprocess.run(command, preexec_fn=lambda: os.closerange(0, 3))
    assert closed.returncode == 0
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_an_export_to_a_full_disk(tmp_path, filled):
    with mounted(tmp_path / "disk", "size=8k") as disk:
        for ending in ("csv", "json", "parquet", "arrow"):
            file = disk / f"values.{ending}"
            run = run_memhouse("export", "values", file, "--db", filled)
            check_one_line(run, str(file), "No space left on device")
            assert list(disk.iterdir()) == []


def test_an_export_keeps_the_old_file_until_the_new_one_is_whole(tmp_path, filled):
    with mounted(tmp_path / "disk", "size=64k") as disk:
        file = disk / "runs.csv"
        assert run_memhouse("export", "runs", file, "--db", filled).returncode == 0
        before = file.read_text()
        fill_up = disk / "other"
        with fill_up.open("wb") as other, pytest.raises(OSError, match="No space"):
            other.write(bytes(1 << 20))
        assert run_memhouse("export", "values", file, "--db", filled).returncode == 1
        assert file.read_text() == before
