"""A few seconds of the simulator, and all that it ever found; hours of it run on a schedule."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..support.rounds import rounds

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks with libraries loaded")
STEPS = 25


def simulate(*arguments):
    """The simulator in a process without threads: it forks."""
    command = [sys.executable, "-m", "tests.simulator", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_warehouse_is_what_the_model_says():
    seeds = rounds(1)
    # Where tests try more often, they try other seeds.
    simulate("--seed", 1000 * seeds, "--seeds", seeds, "--steps", STEPS)


@pytest.mark.slow
def test_what_was_found_stays_repaired():
    simulate("--replay", Path(__file__).with_name("found.json"))
