"""The nights that come with the package, and a warehouse of them."""

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from ... import open as open_warehouse
from ...schema.errors import UsageError

# Dumps of two programs for a TPU, a folder for each night.
_NIGHTS = "nights.tar.zst"
_WINDOW_BYTES = 2**25
_NAME = "memhouse-demo.duckdb"


def demo_warehouse(folder: Path) -> Path:
    """The demo's warehouse in a folder: made, or found as an earlier demo left it.

    Raises UsageError for a file of that name that holds other runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    db = folder / _NAME
    with _nights() as nights, open_warehouse(db) as warehouse:
        demo_runs = {night.name for night in nights}
        if not demo_runs.issuperset(warehouse.runs().table["run"].to_pylist()):
            raise UsageError(
                f"{db} holds other runs than the demo's: name a folder for the demo", "folder"
            )
        for night in nights:
            warehouse.ingest(night)
    return db


@contextmanager
def _nights() -> Iterator[list[Path]]:
    """The folders of the nights, the oldest first, until the end of the block."""
    with TemporaryDirectory(prefix="memhouse-demo-") as folder:
        with (
            files(__package__).joinpath(_NIGHTS).open("rb") as packed,
            zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(packed) as tar,
            tarfile.open(fileobj=tar, mode="r|") as archive,
        ):
            archive.extractall(folder, filter="data")
        yield sorted(Path(folder).iterdir())
