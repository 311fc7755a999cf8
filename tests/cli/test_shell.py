"""`memhouse shell`: harlequin on a terminal, and a clear line where it cannot start."""

from pathlib import Path

import pytest

from memhouse import schema

from ..support.command import run_memhouse
from ..support.console import on_terminal

CONFINED = Path(schema.__file__).parent / "shell.sql"


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages that Python finds first."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("NO_COLOR", "1")
    return folder


def shown(command, folder):
    """What a terminal shows for it, and the status in the last line."""
    return on_terminal(f"{command}; echo $?", folder).replace("\r\n", "\n")


def test_it_starts_harlequin_read_only(filled, packages):
    """What is wrong with the warehouse is said first."""
    (packages / "harlequin").mkdir()
    (packages / "harlequin/__init__.py").touch()
    (packages / "harlequin/__main__.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    said = shown(f"memhouse shell --db duckdb:///{filled}", packages)
    assert said == f"--read-only --init-path {CONFINED} {filled}\n0\n"
    said = shown("memhouse shell --db none.duckdb", packages)
    assert "none.duckdb" in said
    assert "--read-only" not in said
    assert said.endswith("\n1\n")


def test_without_harlequin_it_says_what_to_install(filled, packages):
    """Whether it is installed here or not."""
    (packages / "sitecustomize.py").write_text("import sys\nsys.modules['harlequin'] = None\n")
    said = shown(f"memhouse shell --db {filled}", packages)
    assert "pip install 'memhouse[shell]'" in said
    assert said.endswith("\n1\n")


def test_from_a_pipe_it_names_the_command_to_use(filled):
    run = run_memhouse("shell", "--db", filled, stdin="SELECT 1;\n")
    assert (run.returncode, run.stdout) == (2, "")
    assert "memhouse sql -" in run.stderr
