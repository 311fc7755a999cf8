"""The memhouse command: in this process, which is quick, or as a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

import pytest

import memhouse.cli

MEMHOUSE = Path(sys.executable).parent / "memhouse"


def run_memhouse(
    *args: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command as in a pipe, but in this process; `env` adds to the environment.

    What it starts writes to the same files. An error that is no expected one is raised.
    """
    with _file(stdin or "") as given, _file() as out, _file() as err:
        status = run_on(given, out, err, *args, cwd=cwd, env=env)
        done = ["memhouse", *map(str, args)]
        return subprocess.CompletedProcess(done, status, _text(out), _text(err))


def run_on(
    given: TextIO,
    out: TextIO,
    err: TextIO,
    *args: str | Path,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> int:
    """Run the command in this process on these files; its exit status."""
    # Where other tests have started threads, processes that an ingest forks may hang.
    jobs = ["--jobs", "1"] if args[:1] == ("ingest",) and "--jobs" not in args else []
    arguments = ["memhouse", *map(str, args[:1]), *jobs, *map(str, args[1:])]
    # What the command sets is of its process alone.
    with patch.dict(os.environ), pytest.MonkeyPatch.context() as changed:
        changed.delenv("MEMHOUSE_DB", raising=False)
        for name, value in (env or {}).items():
            changed.setenv(name, value)
        if cwd is not None:
            changed.chdir(cwd)
        with (
            _streams(given, out, err),
            patch.multiple(sys, argv=arguments, stdin=given, stdout=out, stderr=err),
        ):
            return memhouse.cli.run()


def run_process(
    *args: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The same as a process of its own: where imports, signals or streams matter."""
    clean = {key: value for key, value in os.environ.items() if key != "MEMHOUSE_DB"}
    return subprocess.run(
        [MEMHOUSE, *map(str, args)],
        cwd=cwd,
        input=stdin or "",
        env=clean | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
    )


@contextmanager
def _file(content: str = "") -> Iterator[TextIO]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as file:
        file.write(content)
        file.seek(0)
        yield file


@contextmanager
def _streams(*files: TextIO) -> Iterator[None]:
    """Lets the streams 0, 1 and 2 of this process, and of those it starts, be these files."""
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        yield
    finally:
        for number, stream in enumerate(kept):
            os.dup2(stream, number)
            os.close(stream)


def _text(file: TextIO) -> str:
    file.flush()
    file.seek(0)
    return file.read()
