"""Pairs of programs before and after one change, as `benchmarks/advice_pairs.py` compiled them."""

import json
import tarfile
from pathlib import Path
from typing import Any

import zstandard

from .dumps import DATA
from .warehouse import fill

PLATFORMS = ("cpu", "tpu")


def unpack_pairs(folder: Path) -> Path:
    """Unpack to PLATFORM/PAIR/before and PLATFORM/PAIR/after: the folder that holds them."""
    with (DATA / "advice.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return folder / "advice"


def fill_with_pairs(db: Path, pairs: Path) -> None:
    """A warehouse of all pairs: a run for each platform, PAIR/before and PAIR/after in it."""
    for summary in fill(db, *(pairs / platform for platform in PLATFORMS)):
        assert summary.problems == []


def told_by_jax(pairs: Path, platform: str, name: str) -> dict[str, Any]:
    """What JAX says of a pair: its `pair.json`."""
    found: dict[str, Any] = json.loads((pairs / platform / name / "pair.json").read_text())
    return found
