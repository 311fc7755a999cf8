"""Warehouses of every released schema version, for `test_upgrades.py` to upgrade.

`make warehouse-sample` writes that of this version, `tests/data/warehouses/vN.duckdb.zst`: do
so once, when the version is released, and never change it again.
"""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from memhouse.ingest.pipeline import ingest
from memhouse.ingest.workers import Workers
from memhouse.schema.stores.duckdb_file import schema_version

from .warehouse import writing

DATA = Path(__file__).parents[1] / "data"
WAREHOUSES = DATA / "warehouses"
# A module each of CPU, TPU and GPU.
SAMPLES = ("cpu/jax-0.9.0", "tpu/flash-v5e", "gpu/decode-h100")
_TIME = datetime(2026, 10, 1, tzinfo=UTC)


def write_sample(db: Path) -> None:
    """Make the sample warehouse of this version, the same whenever and wherever it is made."""
    with writing(db) as store, Workers(1) as workers:
        for sample in SAMPLES:
            ingest(
                store,
                DATA / "dumps" / sample,
                tool_version="sample",
                workers=workers,
                run_at=_TIME,
                labels={"branch": "main"},
            )
        store.connection.execute("UPDATE runs SET ingested_at = $1, source = 'sample'", [_TIME])


def unpack(packed: Path, db: Path) -> None:
    """A copy of a stored warehouse, to open."""
    db.write_bytes(zstandard.decompress(packed.read_bytes()))


if __name__ == "__main__":
    WAREHOUSES.mkdir(exist_ok=True)
    packed = WAREHOUSES / f"v{schema_version()}.duckdb.zst"
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "sample.duckdb")
        write_sample(db)
        packed.write_bytes(zstandard.compress(db.read_bytes(), 19))
    print(f"{packed.name}: {packed.stat().st_size // 1024} KiB")
