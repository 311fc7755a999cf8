"""Where a measurement was made: what makes two measurements comparable."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("duckdb", "pyarrow", "numpy", "pandas", "sqlalchemy", "typer")
_HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    """The versions, the cores and the load of this machine, and the commit that is measured."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "load at the start": _load(),
    }


def finished(started: dict[str, str]) -> dict[str, str]:
    """The same environment at the end of the measurement."""
    return started | {"load at the end": _load()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of the checkout, and whether files differ from it."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit} with changes" if _git("status", "--porcelain") else commit


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", _HERE, *words], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}"
