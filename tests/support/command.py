"""The memhouse command, through its real entry point."""

import functools
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MEMHOUSE = Path(sys.executable).parent / "memhouse"
HERE = Path(__file__).parent
# Read when a command runs; other variables may be read by an import, or by Python as it starts.
READ_LATE = ("AWS_", "COLUMNS", "MEMHOUSE_", "PYTEST_")


def run_memhouse(
    *args: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the real command; `env` adds to the environment."""
    clean = {key: value for key, value in os.environ.items() if key != "MEMHOUSE_DB"}
    environment = clean | (env or {})
    return subprocess.run(
        [*_quickly(environment), MEMHOUSE, *map(str, args)],
        cwd=cwd,
        input=stdin or "",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def _quickly(environment: dict[str, str]) -> list[str | Path]:
    """What starts a command without its imports, if it then does the same as without this."""
    # Elsewhere than on Linux, libraries do not all survive a fork.
    if sys.platform != "linux":
        return []
    starter = _starter()
    if starter.read_early != _read_early(environment):
        return []
    return [sys.executable, "-IS", HERE / "start_by_fork.py", starter.socket]


def _read_early(environment: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in environment.items() if not key.startswith(READ_LATE)}


@dataclass(frozen=True)
class Starter:
    """A process that runs `starter.py`, where it is asked, and the variables that it has read."""

    process: subprocess.Popen[str]
    folder: tempfile.TemporaryDirectory[str]
    socket: Path
    read_early: dict[str, str]


@functools.cache
def _starter() -> Starter:
    """The one of this process; it ends with this process."""
    folder = tempfile.TemporaryDirectory()
    socket = Path(folder.name) / "socket"
    process = subprocess.Popen(
        [sys.executable, HERE / "starter.py", socket],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return Starter(process, folder, socket, _read_early(dict(os.environ)))
