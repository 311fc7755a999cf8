"""Commands, each in a process of its own: a fork of this one, which has imported what they need.

A fork can be killed, can be kept from writing, and has a clock of its own; and a crash of DuckDB
is an outcome like any other. This process itself never opens a warehouse.
"""

import fcntl
import importlib
import os
import pickle
import pkgutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import memhouse

from .faults import Fault

CRASHED = 70
# Commands that the simulator does not give, and what they take long to import.
_NOT_IMPORTED = (
    *("memhouse.tests", "memhouse.benchmarks", "memhouse.docs", "memhouse.scripts"),
    *("memhouse.mcp_server", "memhouse.pytest_plugin"),
    *("memhouse.report", "memhouse.cli.demo"),
    "memhouse.build",
)
_SECONDS = 120
_MOST_TEXT = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """How a command ended; the status of a killed one is the signal's number, negative."""

    command: Sequence[str]
    status: int
    stdout: str
    stderr: str

    @property
    def has_crashed(self) -> bool:
        """Whether it ended in a way that no command may end."""
        return self.status == CRASHED or (self.status < 0 and self.status != -signal.SIGKILL)


def import_commands() -> None:
    """Import what any command needs, so that no process has to."""
    for found in pkgutil.walk_packages(memhouse.__path__, "memhouse.", onerror=lambda name: None):
        if not found.name.startswith(_NOT_IMPORTED):
            importlib.import_module(found.name)
    importlib.import_module("duckdb")


@dataclass
class Running:
    """A command that was started."""

    command: Sequence[str]
    pid: int
    fault: Fault
    _streams: Sequence[int]
    _began: float = field(default_factory=time.monotonic)

    def wait(self) -> Outcome:
        """The outcome; a command that takes two minutes hangs, which is a crash."""
        end = self._began + (self.fault.killed_after or _SECONDS)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        while not pid:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                pid, status = os.waitpid(self.pid, 0)
                break
            time.sleep(0.002)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        hung = self.fault.killed_after is None and time.monotonic() > end
        stdout, stderr = (_read(stream) for stream in self._streams)
        return Outcome(
            self.command,
            CRASHED if hung else os.waitstatus_to_exitcode(status),
            stdout,
            stderr + ("it hangs" if hung else ""),
        )


def start(
    command: Sequence[str], folder: Path, now: datetime, fault: Fault | None = None
) -> Running:
    """Start `memhouse COMMAND` in a folder, at a time of the clock."""
    fault = fault or Fault()
    # Not files: a limit to the size of files must not silence the command.
    pipes = [os.pipe(), os.pipe()]
    for reader, writer in pipes:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _MOST_TEXT)
        os.set_blocking(reader, False)
    pid = os.fork()
    if pid == 0:
        try:
            _become(command, folder, now, fault, [writer for _, writer in pipes])
        finally:
            os._exit(CRASHED)
    for _, writer in pipes:
        os.close(writer)
    return Running(command, pid, fault, [reader for reader, _ in pipes])


def _read(stream: int) -> str:
    """What a dead process wrote."""
    with open(stream, "rb") as pipe:
        return (pipe.read() or b"").decode(errors="replace")


def _become(
    command: Sequence[str], folder: Path, now: datetime, fault: Fault, streams: Sequence[int]
) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((null, *streams)):
        os.dup2(stream, number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.pop("MEMHOUSE_DB", None)
    os.environ["COLUMNS"] = "80"
    set_clock(now)
    sys.argv = ["memhouse", *command]
    from memhouse.cli import main

    try:
        fault.arm()
        main()
    except BaseException:
        sys.setprofile(None)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def set_clock(now: datetime) -> None:
    """Let this process believe that it is `now`."""
    from memhouse.schema import clock

    real = clock.now
    for name, module in list(sys.modules.items()):
        if name.startswith("memhouse.") and getattr(module, "now", None) is real:
            module.now = lambda: now


def ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own. Raises AssertionError if it fails there."""
    with tempfile.TemporaryFile() as answer:
        pid = os.fork()
        if pid == 0:
            try:
                try:
                    said = (True, question(*arguments))
                except BaseException:
                    said = (False, traceback.format_exc())
                answer.write(pickle.dumps(said))
                answer.flush()
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"{question.__name__} ended with {os.waitstatus_to_exitcode(status)}"
        answer.seek(0)
        done, said = pickle.load(answer)
        assert done, said
        return said
