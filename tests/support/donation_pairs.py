"""Programs with and without donated arguments, compiled: what JAX said, and as advice asks them."""

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zstandard

from memhouse.queries.advising.asked_program import Program, read_program
from memhouse.queries.advising.space_layout import read_layout

from .dumps import DATA
from .warehouse import fill, reading

# Workload and module of the programs before and after, and what JAX said of the one after.
Pairs = dict[str, tuple[tuple[str, str], tuple[str, str], dict[str, Any]]]


def fill_pairs(folder: Path) -> tuple[Path, Pairs]:
    """Ingest `donations.tar.zst` and `advised-donations.tar.zst`; the pairs by platform/name."""
    pairs = _small_pairs(folder) | _large_pairs(folder)
    for path in folder.rglob("jax.json"):
        path.unlink()
    db = folder / "db"
    for summary in fill(db, folder / "donations", folder / "advised-donations"):
        assert summary.problems == []
    return db, pairs


@contextmanager
def program(db: Path, workload: str, module: str) -> Iterator[Program]:
    """A program of the warehouse, in the device's main memory."""
    with reading(db) as store:
        (row,) = store.rows(
            "SELECT dump_id, module_id FROM dumps WHERE workload = $1 AND module_name = $2",
            [workload, module],
        ).to_pylist()
        layout = read_layout(store, row["module_id"])
        assert layout is not None
        yield read_program(store, row["module_id"], row["dump_id"], layout)


def _small_pairs(folder: Path) -> Pairs:
    """The programs of `benchmarks/donation_programs.py`."""
    _unpack("donations.tar.zst", folder)
    pairs: Pairs = {}
    for path in folder.glob("donations/*/jax.json"):
        platform, said = path.parent.name, json.loads(path.read_text())
        for name in {each.removesuffix("_kept").removesuffix("_donated") for each in said}:
            aliases = {index: int(n) for n, index in said[f"{name}_donated"]["aliases"].items()}
            pairs[f"{platform}/{name}"] = (
                (platform, f"jit_{name}_kept"),
                (platform, f"jit_{name}_donated"),
                {"donated": said[f"{name}_donated"]["donated"], "aliases": aliases},
            )
    return pairs


def _large_pairs(folder: Path) -> Pairs:
    """Some of the programs of `benchmarks/advice_pairs.py`."""
    _unpack("advised-donations.tar.zst", folder)
    pairs: Pairs = {}
    said = json.loads((folder / "advised-donations" / "jax.json").read_text())
    for platform, names in said.items():
        for name, jax in names.items():
            pairs[f"{platform}/{name}"] = (
                (f"{platform}/{name}/before", f"jit_{name}"),
                (f"{platform}/{name}/after", f"jit_{name}"),
                {"donated": [int(each) for each in jax["donated"]], "aliases": jax["aliases"]},
            )
    return pairs


def _unpack(name: str, folder: Path) -> None:
    with (DATA / name).open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
