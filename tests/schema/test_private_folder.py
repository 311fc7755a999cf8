"""What killed processes leave goes; what others use, or have made, stays."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from memhouse.schema.private_folder import private_folder, remove_leftovers

from ..support.command import run_memhouse, run_process
from ..support.dumps import one_file

USING = """
import sys, time
from pathlib import Path
from memhouse.schema.private_folder import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "deep").mkdir()
    (folder / "deep/fresh").write_bytes(b"x" * 10_000)
    (folder / "home").symlink_to("/")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def using(tmp_path):
    """Starts a process that has a folder beside a file; gives the process and the folder's path."""
    processes = []

    def start():
        command = [sys.executable, "-c", USING, tmp_path / "db"]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return processes[-1], processes[-1].stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def kill(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.wait()


@pytest.mark.slow
def test_the_next_writer_removes_what_the_dead_have_left(using, tmp_path, db):
    dead, living = [using(), using()], using()
    for process, _ in dead:
        kill(process)
    assert all(os.path.isdir(folder) for _, folder in [*dead, living])  # noqa: PTH112
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    os.rename(dead[1][1], temporary / "memhouse-abcdefgh")  # noqa: PTH104
    (tmp_path / ".memhouse-mine").mkdir()
    (tmp_path / ".memhouse-abcdefg1").mkdir()
    (tmp_path / ".memhouse-abcdefg1/memhouse").write_text("somebody's")
    (tmp_path / ".memhouse-abcdefg2").symlink_to(living[1])
    assert db.parent == tmp_path
    before = {path.name for path in tmp_path.iterdir()}
    env = {"TMPDIR": str(temporary)}
    assert run_process("ingest", "--db", db, one_file("seeds/002*"), env=env).returncode == 0
    after = {path.name for path in tmp_path.iterdir()}
    assert before - after == {os.path.basename(dead[0][1])}  # noqa: PTH119
    assert list(temporary.iterdir()) == []
    # Reading removes nothing.
    kill(living[0])
    assert run_memhouse("peaks", "--db", db).returncode == 0
    assert os.path.isdir(living[1])  # noqa: PTH112


@pytest.mark.slow
def test_one_that_began_to_remove_and_was_killed_is_gone_on_with(using, tmp_path):
    process, folder = using()
    kill(process)
    os.unlink(f"{folder}/deep/fresh")  # noqa: PTH108
    remove_leftovers(tmp_path)
    assert not os.path.exists(folder)  # noqa: PTH110


@pytest.mark.slow
def test_many_makers_and_removers_at_once(tmp_path):
    """No one's folder goes while it is used, whatever the others do."""
    script = """
import sys
from pathlib import Path
from memhouse.schema.private_folder import private_folder, remove_leftovers
for _ in range(100):
    with private_folder(Path(sys.argv[1])) as folder:
        (folder / "fresh").write_text("x")
        remove_leftovers(folder.parent)
        assert (folder / "fresh").read_text() == "x"
"""
    command = [sys.executable, "-c", script, tmp_path / "db"]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_goes_with_its_block(tmp_path):
    with suppress(KeyError), private_folder(tmp_path / "db") as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    remove_leftovers(tmp_path / "gone")
