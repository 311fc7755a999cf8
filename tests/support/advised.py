"""Programs as findings ask them: of a warehouse, by workload or by run and workload."""

import tarfile
from pathlib import Path

import pytest
import zstandard

from memhouse.queries.advising.asked_program import Program, read_program
from memhouse.queries.advising.space_layout import read_layout
from memhouse.schema.stores.base import Store

from .dumps import DATA
from .warehouse import fill


def program_of(store: Store, workload: str, run: str | None = None) -> Program:
    """The program of the only dump of a workload, in a run if there are several."""
    (dump,) = store.rows(
        "SELECT dump_id, module_id FROM dumps"
        " WHERE workload = $1 AND run_id = COALESCE($2, run_id)",
        [workload, run],
    ).to_pylist()
    layout = read_layout(store, dump["module_id"])
    assert layout is not None
    return read_program(store, dump["module_id"], dump["dump_id"], layout)


def unpacked(name: str, factory: pytest.TempPathFactory) -> Path:
    """A warehouse of the dumps in `data/NAME.tar.zst`: the file."""
    folder = factory.mktemp(name)
    with (DATA / f"{name}.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    db = folder / "db"
    (summary,) = fill(db, folder / name)
    assert summary.problems == []
    return db
