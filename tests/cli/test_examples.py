"""The example at the end of each command's help is true: it runs on the demo's dumps."""

import re
import shlex
import shutil
import sys

import pytest
from typer.main import get_command

from memhouse.cli.app import COMMANDS, app_for
from memhouse.cli.demo.samples import _nights, demo_warehouse

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.dumps import DATA

EPILOG = re.compile(r"Example: (memhouse .+)")
# They have tests of their own: they wait for a terminal, or for a client.
NOT_RUN = {"shell", "mcp"}
# A gate says by its status that something grew.
STATUSES = {"check": 1}
TRAIN = "import sys; assert sys.argv[1:] == ['--steps', '100']\n"


def examples():
    """The commands' names, those of `lake` too, and their examples."""
    for name in COMMANDS:
        command = get_command(app_for([name])).commands[name]
        inner = getattr(command, "commands", {})
        yield from ((f"{name} {sub}", of.epilog) for sub, of in inner.items())
        if not inner:
            yield name, command.epilog


EXAMPLES = dict(examples())


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder with what the examples speak of: dumps, their warehouse, a program and a log."""
    folder = tmp_path_factory.mktemp("examples")
    demo_warehouse(folder).rename(folder / "memhouse.duckdb")
    with _nights() as nights:
        shutil.copytree(nights[0].parent, folder / "dumps")
    (folder / "train.py").write_text(TRAIN)
    shutil.copy(DATA / "oom/jax0.5.3-vmemgrid.txt", folder / "train.log")
    (folder / "python").symlink_to(sys.executable)
    return folder


@pytest.fixture
def samples(demo, tmp_path):
    return shutil.copytree(demo, tmp_path / "samples", symlinks=True)


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_has_an_example_on_one_line_of_its_help(command):
    example = EPILOG.fullmatch(EXAMPLES[command] or "")
    assert example is not None
    assert example[1].startswith(f"memhouse {command}")
    shown = on_terminal(f"memhouse {command} --help", DATA)
    assert f" {example[0]} " in shown.replace("\r", " ")


@pytest.mark.parametrize("command", [name for name in EXAMPLES if name not in NOT_RUN])
def test_an_example_runs(samples, command):
    if command.startswith("lake ") and command != "lake init":
        assert run_memhouse("lake", "init", "nights", cwd=samples).returncode == 0
    words = shlex.split(EPILOG.fullmatch(EXAMPLES[command])[1])[1:]
    path = {"PATH": f"{samples}:/usr/bin:/bin"}
    done = run_memhouse(*words, cwd=samples, env=path)
    assert done.returncode == STATUSES.get(command, 0), done.stderr
    assert "Traceback" not in done.stderr
