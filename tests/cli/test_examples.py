"""The help of every command, and the example at its end, which runs on the demo's dumps."""

import re
import shlex
import shutil
import sys

import pytest
from typer.main import get_command

from memhouse.cli.app import COMMANDS, build_app
from memhouse.cli.demo.walk import _run_folders, demo_warehouse

from ..support.command import run_memhouse
from ..support.dumps import DATA

EPILOG = re.compile(r"Example: (memhouse .+)")
# They have tests of their own: they wait for a terminal, or for a client, or take long.
NOT_RUN = {"shell", "mcp", "demo", "fit"}
# A gate says by its status that something grew.
STATUSES = {"check": 1}
TRAIN = "import sys; assert sys.argv[1:] == ['--steps', '100']\n"


def examples():
    """The commands' names and their examples."""
    for name in COMMANDS:
        yield name, get_command(build_app()).commands[name].epilog


EXAMPLES = dict(examples())


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder with what the examples speak of: dumps, their warehouse, a program and a log."""
    folder = tmp_path_factory.mktemp("examples")
    db = demo_warehouse(folder).rename(folder / "memhouse.duckdb")
    for host in ("host0", "host1"):
        shutil.copy(db, folder / f"{host}.duckdb")
    with _run_folders() as nights:
        shutil.copytree(nights[0].parent, folder / "dumps")
    (folder / "train.py").write_text(TRAIN)
    shutil.copy(DATA / "oom/jax0.5.3-vmemgrid.txt", folder / "train.log")
    (folder / "python").symlink_to(sys.executable)
    return folder


def test_every_command_has_a_help_that_fits_a_terminal_and_ends_with_an_example():
    failures = {}
    for command, epilog in EXAMPLES.items():
        done = run_memhouse(command, "--help", env={"COLUMNS": "80"})
        example = EPILOG.fullmatch(epilog or "")
        if (
            done.returncode != 0
            or example is None
            or not example[1].startswith(f"memhouse {command}")
            or f" {example[0]} " not in done.stdout
            or f"{command} [OPTIONS]" not in done.stdout
            or max(map(len, done.stdout.splitlines())) > 80
            or "\x1b" in done.stdout
        ):
            failures[command] = done.stdout
    assert failures == {}


def test_every_example_runs(demo, tmp_path, s3):
    s3.client.create_bucket(Bucket="bucket")
    failures = {}
    for number, (command, epilog) in enumerate(EXAMPLES.items()):
        if command in NOT_RUN:
            continue
        folder = shutil.copytree(demo, tmp_path / str(number), symlinks=True)
        words = shlex.split(EPILOG.fullmatch(epilog)[1])[1:]
        env = {"PATH": f"{folder}:/usr/bin:/bin", **s3.environment}
        done = run_memhouse(*words, cwd=folder, env=env)
        if done.returncode != STATUSES.get(command, 0) or "Traceback" in done.stderr:
            failures[command] = done.stderr
    assert failures == {}
