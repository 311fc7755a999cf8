"""Warehouses of every released schema version, for `test_upgrades.py` to upgrade.

`make warehouse-sample` writes that of this version, `tests/data/warehouses/vN.duckdb.zst`: do
so once, when the version is released, and never change it again.
"""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from memhouse.cli.warehouse import writing
from memhouse.ingest.pipeline import ingest
from memhouse.ingest.workers import Readers
from memhouse.schema.stores.duckdb import SCHEMA_VERSION
from memhouse.schema.tables import runs

DATA = Path(__file__).parents[1] / "data"
WAREHOUSES = DATA / "warehouses"
# A module each of CPU, TPU and GPU.
SAMPLES = ("cpu/jax-0.9.0", "tpu/flash-v5e", "gpu/decode-h100")
_TIME = datetime(2026, 10, 1, tzinfo=UTC)


def write_sample(db: Path) -> None:
    """Make the sample warehouse of this version, the same whenever and wherever it is made."""
    with writing(str(db)) as engine, Readers(1) as readers:
        for sample in SAMPLES:
            ingest(
                lambda: engine,
                DATA / "dumps" / sample,
                tool_version="sample",
                readers=readers,
                run_at=_TIME,
                labels={"branch": "main"},
            )
        with engine.begin() as connection:
            connection.execute(runs.update().values(ingested_at=_TIME, source="sample"))


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
