"""Ten nights of four workloads (`data/nightly.tar.zst`), and a warehouse of them.

`conftest.py` has them as fixtures; they are made once a process.
"""

import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from typer.testing import CliRunner

from memhouse.cli.app import app_for

from .dumps import DATA
from .warehouse import fill, rows

NIGHTS = [f"2026-10-{day:02}" for day in range(1, 11)]
# llama-cpu was not dumped in the night of 2026-10-07.
SERIES = {
    "decode-v5e": "jit_generate",
    "llama-cpu": "jit_train_step",
    "llama-v5e": "jit_train_step",
    "resnet-h100": "jit_train",
}

_made: dict[str, Path] = {}


def nights(factory: pytest.TempPathFactory) -> Path:
    """The folder with a folder for each night. Only read it: it is shared."""
    if "nights" not in _made:
        _made["nights"] = unpack_nights(factory.mktemp("nights"))
    return _made["nights"]


def unpack_nights(folder: Path) -> Path:
    """The nights, unpacked into a folder."""
    with (DATA / "nightly.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return folder / "nightly"


def history(factory: pytest.TempPathFactory) -> Path:
    """A warehouse of the ten nights. Only read it: it is shared."""
    if "history" not in _made:
        db = factory.mktemp("history") / "nights.duckdb"
        _made["history"] = ingest_nights(db, nights(factory), NIGHTS)
    return _made["history"]


def ingest_nights(db: Path, folder: Path, names: Iterable[str]) -> Path:
    """Ingest these nights in this order."""
    for summary in fill(db, *(folder / name for name in names)):
        assert summary.problems == []
    return db


def copy_night(night: Path, to: Path) -> Path:
    """A copy of a night, or of one of its workloads, to change."""
    return Path(shutil.copytree(night, to))


def dicts(db: Path, columns: str, rest: str = "") -> list[dict[str, Any]]:
    """Rows of a query as dicts: `SELECT columns rest`."""
    names = [name.strip().split(" ")[-1] for name in columns.split(",")]
    return [dict(zip(names, row, strict=True)) for row in rows(db, f"SELECT {columns} {rest}")]


def memhouse(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command, as `run_memhouse`, but in this process: without the time to start one."""
    done = CliRunner().invoke(app_for([]), [*map(str, args)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(args, done.exit_code, done.stdout, done.stderr)
