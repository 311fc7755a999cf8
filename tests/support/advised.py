"""Programs compiled for advice (`data/*.tar.zst`): warehouses of them, and as findings ask."""

import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import zstandard

from memhouse.advice.asked_program import Program, read_layout, read_program
from memhouse.schema.store import Store

from .dumps import DATA
from .shared import shared
from .warehouse import fill

# Of the pairs in `advice.tar.zst` those that tests ask.
_PAIRS = {
    "cache_carried_by_scan",
    "cache_scanned_over",
    "gated_unrolled_full",
    "right_mixed_precision",
    "types_differ",
    "types_of_one_size",
}


def compiled() -> Path:
    """A warehouse of programs before and after a change: a run an archive. Only read it.

    Workloads are PLATFORM/NAME/before and PLATFORM/NAME/after, or PLATFORM/NAME.
    """
    return shared("advised.duckdb", _fill_compiled)


def donating() -> Path:
    """A folder of programs that donate, and that do not. Only read it.

    `db` is a warehouse, `said.json` what JAX said, and `donations` has the dumps of the programs.
    """
    return shared("donating", _make_donating)


def program_of(
    store: Store, workload: str, run: str | None = None, module: str | None = None
) -> Program:
    """The program of the only dump of a workload; a run and a module where there are several."""
    (dump,) = store.rows(
        "SELECT dump_id, module_id FROM dumps WHERE workload = $1"
        " AND run_id = COALESCE($2, run_id) AND module_name = COALESCE($3, module_name)",
        [workload, run, module],
    ).to_pylist()
    layout = read_layout(store, dump["module_id"])
    assert layout is not None
    return read_program(store, dump["module_id"], dump["dump_id"], layout)


def _fill_compiled(db: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        names = ("remat", "advice-sizes", "advice", "advice-edits")
        archives = [folder / name for name in names]
        for archive in archives:
            unpack(archive)
        for pair in (folder / "advice").glob("*/*"):
            if pair.name not in _PAIRS:
                shutil.rmtree(pair)
        for summary in fill(db, *archives):
            assert summary.problems == []


def _make_donating(folder: Path) -> None:
    archives = [folder / name for name in ("donations", "advised-donations")]
    said: dict[str, Any] = {}
    for archive in archives:
        unpack(archive)
        for path in archive.rglob("jax.json"):
            said[str(path.parent.relative_to(folder))] = json.loads(path.read_text())
            path.unlink()
    (folder / "said.json").write_text(json.dumps(said))
    for summary in fill(folder / "db", *archives):
        assert summary.problems == []


def unpack(archive: Path) -> None:
    """Unpack `data/NAME.tar.zst` to a folder of that name."""
    with (DATA / f"{archive.name}.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(archive.parent, filter="data")
