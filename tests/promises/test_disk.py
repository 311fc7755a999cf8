"""A disk that is full, or not ours to write to: one line that says so, and nothing harmed."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DATA, DUMPS
from ..support.warehouse import everything, fill, rows

SAMPLES = [DUMPS / "seeds", DUMPS / "cpu", DUMPS / "gpu"]
TOLD = re.compile(r": \d+ dumps?, .* in \d+\.\d s$")
BIG = DATA / "nightly.tar.zst"
# How far a disk's room reaches: not the file's first blocks, not the tables, and so on.
ROOMS = ["8k", "40k", "200k", "400k"]


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


@pytest.mark.parametrize("room", ROOMS)
def test_a_full_disk_stops_an_ingest_and_harms_nothing(tmp_path, room):
    with mounted(tmp_path / "disk", f"size={room}") as disk:
        db = disk / "memhouse.duckdb"
        run = run_memhouse("ingest", "--db", db, "--jobs", "1", *SAMPLES)
        check_one_line(run, str(disk), "No space left on device", "make room, then give the same")
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


def limited(size):
    """Let the command write no file beyond a size, where a quota is not ours to set."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize(
    "size", [10_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (4096, 100_000, 300_000))]
)
def test_a_limit_of_the_file_size_is_a_full_disk(tmp_path, db, size):
    command = [MEMHOUSE, "ingest", "--db", db, "--jobs", "1", *SAMPLES]
    run = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited(size))
    check_one_line(run, "File too large: make room, then give the same command again")
    assert run_memhouse(*command[1:]).returncode == 0
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert rows(db, "SELECT COUNT(*) FROM modules") == [(17,)]


def test_a_full_disk_stops_what_else_writes(tmp_path, copied):
    for command in (["prune", "cpu"], ["sql", "--write", "CREATE TABLE t AS FROM range(1000000)"]):
        before = everything(copied)
        run = subprocess.run(
            [MEMHOUSE, *command, "--db", copied],
            capture_output=True,
            text=True,
            preexec_fn=limited(copied.stat().st_size // 100),
        )
        if run.returncode:
            assert len(run.stderr.splitlines()) == 1
            assert "File too large" in run.stderr
            assert everything(copied) == before
        assert run_memhouse("verify", "--db", copied).returncode == 0


def test_no_room_to_unpack_an_archive(tmp_path, db):
    with mounted(tmp_path / "tmp", "size=100k") as full:
        run = run_memhouse("ingest", "--db", db, BIG, env={"TMPDIR": str(full)})
        check_one_line(run, str(BIG), f"no room to unpack it in {full}: make room there")
        assert list(full.iterdir()) == []
    assert not db.exists()


# --- disks and folders that cannot be written to ---------------------------------------------


def test_a_disk_that_can_only_be_read(tmp_path, copied):
    with mounted(tmp_path / "disk", "size=20m") as disk:
        db = Path(shutil.copy(copied, disk / "memhouse.duckdb"))
        remount(disk, "ro")
        for command in (["ingest", SAMPLES[0]], ["prune", "cpu"], ["sql", "--write", "DELETE"]):
            run = run_memhouse(*command, "--db", db)
            check_one_line(run, f"cannot open {db}", "Read-only file system: name a place")
        new = run_memhouse("ingest", "--db", disk / "new.duckdb", SAMPLES[0])
        check_one_line(new, f"cannot make {disk}/new.duckdb: Read-only file system: name a place")
        out = run_memhouse("export", "peaks", disk / "peaks.csv", "--db", db)
        check_one_line(out, f"cannot write {disk}/peaks.csv", "Read-only file system")
        assert run_memhouse("peaks", "--db", db).returncode == 0


def without_rights():
    """What to start a command with for files' modes to bind it, root's too."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"]).returncode:
        pytest.skip("root cannot do without its rights here")
    return prefix


def test_no_permission(tmp_path, copied):
    prefix = without_rights()

    def run(*command):
        return subprocess.run(
            [*prefix, MEMHOUSE, *map(str, command)], capture_output=True, text=True
        )

    do = "ask the owner for permission, or name another file"
    copied.chmod(0o444)
    assert run("peaks", "--db", copied).returncode == 0
    for command in (["ingest", SAMPLES[0]], ["prune", "cpu"]):
        check_one_line(run(*command, "--db", copied), f"Permission denied: {do}")
    copied.chmod(0)
    check_one_line(run("peaks", "--db", copied), f"Permission denied: {do}")
    tmp_path.chmod(0o555)
    new = tmp_path / "new.duckdb"
    check_one_line(run("ingest", SAMPLES[0], "--db", new), f"cannot make {new}: Permission", do)
    tmp_path.chmod(0o755)


# --- what is no file, or not where it should be ----------------------------------------------


@pytest.mark.parametrize("command", [["ingest", SAMPLES[0]], ["peaks"], ["prune", "x"]])
def test_a_folder_is_no_warehouse(tmp_path, command):
    run = run_memhouse(*command, "--db", tmp_path)
    check_one_line(run, f"{tmp_path} is a folder, but no lake", "or name a file")


def test_a_missing_folder_is_named(tmp_path):
    db = tmp_path / "gone" / "memhouse.duckdb"
    check_one_line(
        run_memhouse("ingest", SAMPLES[0], "--db", db),
        f"cannot make {db}: there is no folder {db.parent}",
    )
    assert list(tmp_path.iterdir()) == []


def test_no_name_is_no_warehouse(tmp_path):
    for command in (["ingest", SAMPLES[0]], ["peaks"]):
        run = run_memhouse(*command, "--db", "", cwd=tmp_path)
        check_one_line(run, "--db or MEMHOUSE_DB is empty: name the warehouse")


@pytest.mark.parametrize("size", [0, 100, 4096, 9000, 20_000, -1])
def test_a_file_that_is_cut_short_is_named_and_left_alone(copied, size):
    with copied.open("r+b") as file:
        file.truncate(size if size >= 0 else copied.stat().st_size // 2)
    before = copied.read_bytes()
    for command in (["ingest", SAMPLES[0]], ["verify"]):
        run = run_memhouse(*command, "--db", copied)
        assert run.returncode in (0, 1)
        assert "Traceback" not in run.stderr
        if run.returncode:
            assert len(run.stderr.splitlines()) == 1
            assert str(copied) in run.stderr
        if size >= 0:
            assert run.returncode == 1
            assert copied.read_bytes() == before


# --- output ---------------------------------------------------------------------------------


OUTPUTS = [
    ["peaks"],
    ["peaks", "-f", "csv"],
    ["peaks", "-f", "json"],
    ["peaks", "-f", "markdown"],
    ["views", "peaks"],
    ["check"],
    ["--help"],
]


def ask(filled, command, stdout):
    db = [] if command[0] in ("views", "--help") else ["--db", filled]
    with ExitStack() as stack:
        options: dict[str, Any] = (
            {"stdout": stack.enter_context(Path(stdout).open("w"))} if stdout else {}
        )
        return subprocess.run(
            [MEMHOUSE, *command, *db],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=None if stdout else lambda: os.close(1),
            **options,
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", OUTPUTS, ids=" ".join)
def test_results_on_a_full_disk(filled, command):
    run = ask(filled, command, "/dev/full")
    assert run.returncode == 1
    assert run.stderr.splitlines() == [
        "error: cannot write the output: No space left on device: "
        "make room, then give the same command again"
    ]


@pytest.mark.parametrize("command", OUTPUTS[:-1], ids=" ".join)
def test_a_closed_output(filled, command):
    run = ask(filled, command, None)
    assert run.returncode == 1
    said = "error: cannot write the results: standard output is closed"
    assert run.stderr.splitlines() == [said]


@pytest.mark.parametrize("command", OUTPUTS[:-1], ids=" ".join)
def test_a_reader_that_has_had_enough(filled, command):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as broken:  # noqa: PTH123
        db = [] if command[0] == "views" else ["--db", filled]
        run = subprocess.run([MEMHOUSE, *command, *db], stdout=broken, stderr=subprocess.PIPE)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("command", [["sql", "-"], ["shell"]], ids=" ".join)
def test_a_closed_input_is_an_empty_one(filled, command):
    run = subprocess.run(
        [MEMHOUSE, *command, "--db", filled],
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.close(0),
    )
    assert "Traceback" not in run.stderr
    assert len(run.stderr.splitlines()) <= 1


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


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "arrow"])
def test_an_export_to_a_full_disk(tmp_path, filled, ending):
    with mounted(tmp_path / "disk", "size=8k") as disk:
        file = disk / f"values.{ending}"
        run = run_memhouse("export", "values", file, "--db", filled)
        check_one_line(run, f"cannot write {file}: ", "No space left on device: make room")
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


def test_what_cannot_be_committed_is_not_there(db):
    fill(db, SAMPLES[0])
    before = everything(db)
    run = subprocess.run(
        [MEMHOUSE, "ingest", "--db", db, "--jobs", "1", SAMPLES[2]],
        capture_output=True,
        text=True,
        preexec_fn=limited(20_000),
    )
    check_one_line(run, "File too large")
    after = everything(db)
    for table in before:
        if table != "runs":
            assert after[table] == before[table], table
