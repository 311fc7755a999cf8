"""A Python with XProf, separate because XProf's packages may conflict with memhouse's."""

import os
import subprocess
import sys
from pathlib import Path

from bench import Bench

_VENV = Path(__file__).parent.parent / ".venv" / "xprof"


class NotMeasuredError(Exception):
    """XProf cannot be run; the message says why."""


def xprof_python(bench: Bench) -> Path:
    """The Python of `XPROF_PYTHON`, or of a virtual environment created for XProf.

    Raises NotMeasuredError.
    """
    if not bench.options.xprof:
        raise NotMeasuredError("--no-xprof")
    if named := os.environ.get("XPROF_PYTHON"):
        return _tried(Path(named))
    python = _VENV / "bin" / "python"
    if not python.exists():
        _call(sys.executable, "-m", "venv", _VENV)
    try:
        return _tried(python)
    except NotMeasuredError:
        _call(python, "-m", "pip", "install", "--quiet", "xprof")
        return _tried(python)


def _tried(python: Path) -> Path:
    _call(python, "-P", "-c", "from xprof.convert import raw_to_tool_data")
    return python


def _call(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise NotMeasuredError(f"XProf cannot be run: {said.strip().splitlines()[-1]}") from error
