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
# A warehouse of the user's, and what makes Python compile memhouse again for each process: the
# packages that pip installs, such as XProf, are compiled once.
_LEFT_OUT = frozenset({"MEMHOUSE_DB", "PYTHONDONTWRITEBYTECODE"})
T = TypeVar("T")
MEMHOUSE = Path(sys.executable).parent / "memhouse"


class ProcessError(Exception):
    """A measured command failed, so its figures are meaningless."""


@dataclass(frozen=True)
class Finished:
    """The time and memory of a process.

    `cpu_seconds` are those of the process and its children, on all cores together.
    `peak_bytes` is the maximum of the largest process among the process and its children;
    `together_bytes` is the maximum of their sum, if the memory was sampled.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    together_bytes: int
    output: str


def run(*command: str | Path, sample: bool = False) -> Finished:
    """Run a command to its end; `sample` its memory meanwhile. Raises ProcessError."""
    environment = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
    with TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        done = subprocess.run(
            [
                *(sys.executable, "-I", "-S", _LAUNCHER),
                *(figures, "sample" if sample else "-", *command),
            ],
            env=environment,
            capture_output=True,
            text=True,
        )
        if not figures.exists():
            raise ProcessError(f"{command[0]} did not start: {done.stderr}")
        result = json.loads(figures.read_text())
    if status := result.pop("status"):
        words = " ".join(map(str, command[:3]))
        raise ProcessError(f"{words}: exit status {status}: {done.stderr[-500:]}")
    return Finished(**result, output=done.stdout)


def memhouse(*arguments: str | Path, sample: bool = False) -> Finished:
    """Run the `memhouse` command of this Python."""
    return run(MEMHOUSE, *arguments, sample=sample)


def in_turn(rounds: int, *works: Callable[[], T], warm_up: bool = True) -> list[list[T]]:
    """Run each of the works once a round; returns the results of each work.

    Compared works run close together, and their order alternates from round to round,
    because a machine has slow minutes. The first round with `warm_up` does not count: it
    fills the caches of the disk and of compiled Python.
    """
    if warm_up:
        for work in works:
            work()
    results: list[list[T]] = [[] for _ in works]
    for number in range(rounds):
        numbered = list(zip(works, results, strict=True))
        for work, result in numbered if number % 2 == 0 else reversed(numbered):
            result.append(work())
    return results
