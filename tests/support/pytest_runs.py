"""Projects with a test suite of their own, and pytest run in them as their users run it."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data/binaries"
# Real programs with their buffer assignments: of a CPU, and of a TPU with hbm and vmem.
MIXED = DATA / "cpu/module_0018.jit_mixed.cpu_after_optimizations.hlo.pb"
FLASH = DATA / "tpu-flash/module_0000.jit__lambda.cl_933746096.after_optimizations.hlo.pb"
PAD = DATA / "oom-pad/module_0000.jit__lambda.cl_933746096.after_optimizations.hlo.pb"
# Plugins that this process has imported already.
_REWRITTEN = "pytest.PytestAssertRewriteWarning"
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


def run_pytest(folder: Path, *options: str, code: int) -> str:
    """What pytest prints on 80 columns, run in this process; it ends with this exit status."""
    quiet = ("--capture=sys", "-p", "no:faulthandler", "-W", f"ignore::{_REWRITTEN}")
    printed = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as changed,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        changed.setattr(sys, "path", [*sys.path])
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            changed.delenv(name)
        changed.setenv("COLUMNS", "80")
        changed.setenv("NO_COLOR", "1")
        changed.chdir(folder)
        status = pytest.main([*quiet, *options])
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{folder}/"):
            del sys.modules[name]
    assert status == code, printed.getvalue()
    return printed.getvalue()


def run_pytest_process(folder: Path, *options: str, code: int) -> str:
    """The same as a process of its own: where imports or workers matter."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=clean | {"COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed
    return printed
