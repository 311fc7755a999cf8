"""`memhouse shell`: harlequin on a terminal, and a clear line where it cannot start."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from memhouse import schema

from ..support.command import MEMHOUSE, run_memhouse

CONFINED = Path(schema.__file__).parent / "shell.sql"


def on_terminal(*args, env=None):
    """The status of a command on a terminal, and what it shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [MEMHOUSE, *map(str, args)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"NO_COLOR": "1", "TERM": "dumb"} | (env or {}),
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # How the end of a terminal shows.
            while chunk := os.read(ours, 65536):
                shown += chunk
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.fixture
def harlequin(tmp_path):
    """A package that says with which arguments it is started: an environment that has it."""
    package = tmp_path / "packages" / "harlequin"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    return {"PYTHONPATH": str(package.parent)}


@pytest.fixture
def without_harlequin(tmp_path):
    """An environment whose Python finds no harlequin, whether it is installed or not."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['harlequin'] = None\n")
    return {"PYTHONPATH": str(folder)}


def test_it_starts_harlequin_read_only(filled, harlequin):
    status, shown = on_terminal("shell", "--db", filled, env=harlequin)
    assert (status, shown) == (0, f"--read-only --init-path {CONFINED} {filled}\n")


def test_a_url_names_a_warehouse_too(filled, harlequin):
    status, shown = on_terminal("shell", "--db", f"duckdb:///{filled}", env=harlequin)
    assert (status, shown) == (0, f"--read-only --init-path {CONFINED} {filled}\n")


def test_what_is_wrong_with_the_warehouse_is_said_first(tmp_path, harlequin):
    status, shown = on_terminal("shell", "--db", tmp_path / "none.duckdb", env=harlequin)
    assert status == 1
    assert shown.startswith("error: there is no warehouse at ")


def test_without_harlequin_it_says_what_to_install(filled, without_harlequin):
    status, shown = on_terminal("shell", "--db", filled, env=without_harlequin)
    assert (status, shown) == (
        1,
        "error: the shell needs harlequin: pip install 'memhouse[shell]'\n",
    )


def test_from_a_pipe_it_names_the_command_to_use(filled):
    run = run_memhouse("shell", "--db", filled, stdin="SELECT 1;\n")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "error: the shell needs a terminal: `memhouse sql -` reads queries from a pipe\n"
    )
