"""Ten nights of four workloads (`data/nightly.tar.zst`), and a warehouse of them.

`conftest.py` has them as fixtures.
"""

import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zstandard

from memhouse.schema.metrics import METRICS

from .dumps import DATA
from .shared import shared
from .warehouse import fill, rows

NIGHTS = [f"2026-10-{day:02}" for day in range(1, 11)]
# llama-cpu was not dumped in the night of 2026-10-07.
SERIES = {
    "decode-v5e": "jit_generate",
    "llama-cpu": "jit_train_step",
    "llama-v5e": "jit_train_step",
    "resnet-h100": "jit_train",
}

# Nobody asked for other orders of instructions.
TOLD_METRICS = [*(metric for metric in METRICS if not metric.startswith("order")), "flops"]


def nights() -> Path:
    """The folder with a folder for each night. Only read it: it is shared."""
    return shared("nights", unpack_nights) / "nightly"


def unpack_nights(folder: Path) -> Path:
    """The nights, unpacked into a folder."""
    with (DATA / "nightly.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return folder / "nightly"


def history() -> Path:
    """A warehouse of the ten nights. Only read it: it is shared."""
    folder = nights()
    return shared("nights.duckdb", lambda db: ingest_nights(db, folder, NIGHTS))


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
