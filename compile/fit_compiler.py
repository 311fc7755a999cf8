"""The process that compiles for a fit: started, asked, watched and ended."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..ingest.sources.lowered import dump_options
from ..schema.errors import MemhouseError
from ..schema.readable import human_bytes
from . import fit_worker
from .fit_axes import Asked

ASK_AGAIN_SECONDS = 0.25
# A compiler that takes more of the machine's memory would have others killed.
_SHARE_OF_MACHINE = 0.9


class FitError(MemhouseError):
    """A function that builds no program, or a compiler that does not start."""


class EndedError(Exception):
    """The worker ended before it answered, or has to end because of a limit."""

    def __init__(self, message: str, *, is_limit: bool = False) -> None:
        super().__init__(message)
        self.is_limit = is_limit


class OverError(Exception):
    """Another thread failed, or the user interrupts: nothing more is to be compiled."""


class _Worker:
    """A process that compiles for one topology; it ends with the block, with all its children."""

    def __init__(self, asked: Asked, topology: str, log: IO[bytes]) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        command = [_interpreter(), fit_worker.__file__, asked.target, asked.function, topology]
        try:
            self._process = subprocess.Popen(
                [*command, str(requests), str(answers)],
                env=_environment(topology, asked.flags),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(requests, answers),
                # Ctrl-C is for memhouse, which keeps what was compiled; the group ends together.
                start_new_session=True,
            )
        finally:
            os.close(requests)
            os.close(answers)
        self._asked = asked
        self._most_bytes = asked.most_bytes or int(
            _machine_bytes() * _SHARE_OF_MACHINE / asked.jobs
        )
        self._buffer = b""

    def ask(self, request: Mapping[str, object] | None) -> dict[str, Any]:
        """The answer to a request, None for the first one. Raises EndedError."""
        if request is not None:
            with suppress(BrokenPipeError):
                os.write(self._requests, json.dumps(request).encode() + b"\n")
        end = time.monotonic() + self._asked.timeout
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], ASK_AGAIN_SECONDS)
            if ready:
                read = os.read(self._answers, 1 << 16)
                if not read:
                    raise EndedError(self._why_ended())
                self._buffer += read
                continue
            if time.monotonic() > end:
                raise EndedError(
                    f"it takes longer than {self._asked.timeout:g} s (timeout)", is_limit=True
                )
            if _resident_bytes(self._process.pid) > self._most_bytes:
                raise EndedError(
                    f"compiling it takes more than {human_bytes(self._most_bytes)} of memory (ram)",
                    is_limit=True,
                )
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _why_ended(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"the compiler was killed by {signal.Signals(-status).name}"
        return f"the process ended by itself, with status {status}"

    def kill(self) -> None:
        """End it, with all that it started: who asks is told that it ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it and wait for that."""
        self.kill()
        self._process.wait()
        os.close(self._requests)
        os.close(self._answers)


class Lane:
    """What compiles one program after the other: a worker, started anew for another topology."""

    def __init__(self, asked: Asked, log: Path) -> None:
        self.versions: dict[str, str] = {}
        self._asked = asked
        self._log = log
        self._worker: _Worker | None = None
        self._topology = ""
        self._is_over = False

    def ready(self, topology: str) -> _Worker:
        """The worker for a topology, which is started anew after it ended. Raises FitError."""
        self.require()
        if self._worker is not None and self._topology == topology:
            return self._worker
        self.stop()
        with self._log.open("wb") as log:
            self._worker = _Worker(self._asked, topology, log)
        self._topology = topology
        # It may have been too new to be ended.
        self.require()
        try:
            said = self._worker.ask(None)
        except EndedError as ended:
            said = {"failed": str(ended)}
        if "failed" in said:
            self.require()
            raise FitError(f"{self._asked.name} for {topology}: {said['failed']}")
        self.versions = said["versions"]
        return self._worker

    def require(self) -> None:
        """Raise OverError if nothing more is to be compiled."""
        if self._is_over:
            raise OverError

    def stop(self) -> None:
        """End the worker, of the thread that uses it."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def end(self) -> None:
        """Have nothing more compiled, from another thread."""
        self._is_over = True
        worker = self._worker
        if worker is not None:
            worker.kill()


def _interpreter() -> str:
    """The Python of the active environment, which has the user's jax, else that of memhouse."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    found = Path(active) / "bin" / "python" if active else None
    return str(found) if found is not None and found.exists() else sys.executable


def _environment(topology: str, more_flags: str) -> dict[str, str]:
    """The worker's environment: no accelerator is touched, and nothing comes from a cache."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        # Another process may use libtpu; there is no metadata server to wait for.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_SKIP_MDS_QUERY": "1",
    }
    _, _, devices = topology.partition(":")
    flags = [environment.get("XLA_FLAGS", ""), more_flags]
    if topology.startswith("cpu:"):
        flags.append(f"--xla_force_host_platform_device_count={devices}")
    if any(flags):
        environment["XLA_FLAGS"] = " ".join(filter(None, flags))
    return environment


def dump_one(asked: Asked, topology: str, donated: Sequence[str], folder: Path) -> None:
    """Compile the program, with these arguments donated too; XLA dumps it into the folder.

    Raises FitError if it is not built or not compiled.
    """
    with tempfile.TemporaryDirectory(prefix="memhouse-fit-") as logs:
        lane = Lane(asked, Path(logs) / "log")
        try:
            worker = lane.ready(topology)
            done = known = worker.ask({"arguments": dict(asked.axes), "donated": list(donated)})
            if "failed" not in known:
                done = worker.ask({"options": dump_options(folder, known["module"])})
        except EndedError as ended:
            done = {"failed": str(ended)}
        finally:
            lane.stop()
    if failed := done.get("failed") or done.get("refused"):
        raise FitError(f"{asked.name} for {topology}: {failed.splitlines()[0]}")


def _resident_bytes(pid: int) -> int:
    """The memory that a process has; 0 if nothing says it."""
    try:
        # Linux; elsewhere a program says it.
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    except (OSError, IndexError, ValueError):
        said = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False
        )
        return int(said.stdout.strip() or 0) << 10
    return pages * os.sysconf("SC_PAGE_SIZE")


def _machine_bytes() -> int:
    """The memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
