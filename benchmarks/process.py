"""Measures whole processes, including imports, because a user waits for these too."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

_LAUNCHER = Path(__file__).parent / "launcher.py"
MEMHOUSE = Path(sys.executable).parent / "memhouse"
# The first is the user's warehouse. With the second, each process would compile memhouse again.
_REMOVED_VARIABLES = frozenset({"MEMHOUSE_DB", "PYTHONDONTWRITEBYTECODE"})
T = TypeVar("T")


class ProcessError(Exception):
    """A measured command failed, so its measurements are meaningless."""


@dataclass(frozen=True)
class Finished:
    """Time and memory of a process.

    Attributes:
        seconds: wall time.
        cpu_seconds: of the process and its children, on all cores together.
        peak_bytes: peak memory of the largest process among the process and its children.
        total_bytes: peak of the sum of their memory; 0 if the memory was not sampled.
        output: stdout.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    total_bytes: int
    output: str


def run(*command: str | Path, sample: bool = False, ok: tuple[int, ...] = (0,)) -> Finished:
    """Run a command to its end.

    Args:
        sample: whether to sample the memory of the process and its children.
        ok: exit statuses that are no failure.

    Raises:
        ProcessError: the command did not start, or had another exit status.
    """
    environment = {k: v for k, v in os.environ.items() if k not in _REMOVED_VARIABLES}
    with TemporaryDirectory() as folder:
        written = Path(folder, "process.json")
        launcher = (sys.executable, "-I", "-S", _LAUNCHER, written, "sample" if sample else "-")
        done = subprocess.run(
            [*launcher, *command], env=environment, capture_output=True, text=True
        )
        if not written.exists():
            raise ProcessError(f"{command[0]} did not start: {done.stderr}")
        result = json.loads(written.read_text())
    if (status := result.pop("status")) not in ok:
        command_text = " ".join(map(str, command[:3]))
        raise ProcessError(f"{command_text}: exit status {status}: {done.stderr[-500:]}")
    return Finished(**result, output=done.stdout)


def memhouse(*arguments: str | Path, sample: bool = False, ok: tuple[int, ...] = (0,)) -> Finished:
    """Run the `memhouse` command of this Python."""
    return run(MEMHOUSE, *arguments, sample=sample, ok=ok)


def in_turn(rounds: int, *works: Callable[[], T], warm_up: bool = True) -> list[list[T]]:
    """Run each function once a round.

    Compared functions run close together, and their order alternates from round to round, because
    a machine has slow minutes. The warm-up fills the caches of the disk and of compiled Python, and
    its results are dropped.

    Returns:
        For each function, its results by round.
    """
    if warm_up:
        for work in works:
            work()
    results: list[list[T]] = [[] for _ in works]
    for number in range(rounds):
        pairs = list(zip(works, results, strict=True))
        for work, result in pairs if number % 2 == 0 else reversed(pairs):
            result.append(work())
    return results
