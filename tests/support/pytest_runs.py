"""Projects with a test suite of their own, and pytest run in them as their users run it."""

import os
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parents[1] / "data/binaries"
# Real programs with their buffer assignments: of a CPU, and of a TPU with hbm and vmem.
MIXED = DATA / "cpu/module_0018.jit_mixed.cpu_after_optimizations.hlo.pb"
FLASH = DATA / "tpu-flash/module_0000.jit__lambda.cl_933746096.after_optimizations.hlo.pb"
PAD = DATA / "oom-pad/module_0000.jit__lambda.cl_933746096.after_optimizations.hlo.pb"
_HEAD = f"""\
import pytest
import unittest
from pathlib import Path

MIXED, FLASH, PAD = Path({str(MIXED)!r}), Path({str(FLASH)!r}), Path({str(PAD)!r})

"""


def project(folder: Path, tests: str, name: str = "test_it.py", settings: str = "") -> Path:
    """A folder with a file of tests, which may use the programs above by their names."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(_HEAD + tests)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = -p no:cacheprovider\n{settings}\n")
    return folder


def run_pytest(folder: Path, *options: str, code: int, env: dict[str, str] | None = None) -> str:
    """What pytest prints on 80 columns; it ends with this exit status."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=clean | {"COLUMNS": "80", "NO_COLOR": "1"} | (env or {}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed
    return printed
