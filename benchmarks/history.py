"""A history of 300 nights: ten real ones of four workloads, over and over.

    python benchmarks/history.py

Most nights are unchanged: they should cost no more than hashing them, and hardly any space.
"""

import hashlib
import tarfile
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import zstandard
from timing import milliseconds, show

import memhouse

_NIGHTS = 300
_VIEWS = ("trends", "regressions", "runs_summary", "peaks")


def main() -> None:
    """Ingest the nights one by one, each at a day of its own, and time the history views."""
    with TemporaryDirectory() as folder:
        nights = _unpack(Path(folder))
        database = Path(folder, "history.duckdb")
        ten, _ = _ingest(database, nights, range(len(nights)))
        all_bytes, seconds = _ingest(database, nights, range(len(nights), _NIGHTS))
        hashing = sum(map(_hash, nights)) * (_NIGHTS - len(nights)) / len(nights)
        show(
            [
                {"what": "warehouse of ten nights", "result": f"{ten:,} bytes"},
                {"what": f"of {_NIGHTS} nights", "result": f"{all_bytes / ten:.2f} times that"},
                {"what": "ingest of a night", "result": f"{1000 * seconds / 290:.1f} ms"},
                {"what": "ingest / hashing", "result": f"{seconds / hashing:.2f}"},
            ]
        )
        with memhouse.open(database, read_only=True) as warehouse:
            show(
                [
                    {
                        "view": view,
                        "rows": len(warehouse.sql(f"SELECT * FROM {view}")),
                        "ms": milliseconds(lambda v=view: warehouse.sql(f"SELECT * FROM {v}")),
                    }
                    for view in _VIEWS
                ]
            )


def _unpack(folder: Path) -> list[Path]:
    archive = Path(__file__).parent.parent / "tests" / "data" / "nightly.tar.zst"
    with archive.open("rb") as raw:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return sorted((folder / "nightly").iterdir())


def _ingest(database: Path, nights: list[Path], numbers: range) -> tuple[int, float]:
    """The warehouse's size afterwards and the seconds that it took."""
    start = perf_counter()
    with memhouse.open(database) as warehouse:
        for number in numbers:
            warehouse.ingest(
                nights[number % len(nights)],
                run=f"night {number:03}",
                at=datetime(2026, 1, 1) + timedelta(days=number),
            )
    return database.stat().st_size, perf_counter() - start


def _hash(night: Path) -> float:
    """The seconds that reading and hashing the night's files take."""
    start = perf_counter()
    for file in night.rglob("*"):
        if file.is_file():
            hashlib.sha256(file.read_bytes()).digest()
    return perf_counter() - start


if __name__ == "__main__":
    main()
