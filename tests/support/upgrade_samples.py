"""Warehouses of every released schema version, for `test_upgrades.py` to upgrade.

`make warehouse-sample` writes that of this version, `tests/data/warehouses/vN.duckdb.zst`: do
so once, when the tables have changed, and never change it again after a release.
"""

import os
import tempfile
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import zstandard

from memhouse.ingest.batches import Workers
from memhouse.ingest.pipeline import ingest
from memhouse.schema.versions import SCHEMA_VERSION

from .clock import at
from .warehouse import writing

DATA = Path(__file__).parents[1] / "data"
WAREHOUSES = DATA / "warehouses"
# A module each of CPU, TPU and GPU.
SAMPLES = ("cpu/jax-0.9.0", "tpu/flash-v5e", "gpu/decode-h100")
_TIME = datetime(2026, 10, 1, tzinfo=UTC)


def write_sample(db: Path) -> None:
    """Make the sample warehouse of this version, the same whenever and wherever it is made."""
    user = mock.patch.dict(os.environ, LOGNAME="sample")
    # No path of the machine is stored, because the samples are named from their folder.
    with at(_TIME), user, writing(db) as store, chdir(DATA / "dumps"), Workers(1) as workers:
        for sample in SAMPLES:
            ingest(
                store,
                Path(sample),
                tool_version="sample",
                workers=workers,
                run_at=_TIME,
                labels={"branch": "main"},
            )
        # A checkout gives files times of its own.
        store.connection.execute("UPDATE runs SET compiled_at = $1", [_TIME])


def unpack(packed: Path, db: Path) -> None:
    """A copy of a stored warehouse, to open."""
    db.write_bytes(zstandard.decompress(packed.read_bytes()))


if __name__ == "__main__":
    WAREHOUSES.mkdir(exist_ok=True)
    packed = WAREHOUSES / f"v{SCHEMA_VERSION}.duckdb.zst"
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "sample.duckdb")
        write_sample(db)
        packed.write_bytes(zstandard.compress(db.read_bytes(), 19))
    print(f"{packed.name}: {packed.stat().st_size // 1024} KiB")
