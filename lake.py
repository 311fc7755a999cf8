"""What only a lake needs: making it, cleaning it, and moving rows between it and a DuckDB file.

    import memhouse.lake

    memhouse.lake.init("s3://bucket/memhouse")
    memhouse.lake.import_file("s3://bucket/memhouse", "memhouse.duckdb")

All else is as with a file: `memhouse.open("s3://bucket/memhouse")`. Each function raises
WarehouseError, and MissingPackageError without `memhouse[lake]`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .schema.errors import UsageError, WarehouseError

if TYPE_CHECKING:
    from .schema.lake.upkeep import Checked, Repaired, Vacuumed
    from .schema.stores.delta import DeltaStore

__all__ = ["check", "ddl", "export_file", "import_file", "init", "repair", "vacuum"]


def init(url: str | os.PathLike[str]) -> str:
    """Make an empty lake at a folder or URL, if none is there; its place."""
    from .schema.lake.snapshot import Lake
    from .schema.lake.storage import location

    return Lake(location(os.fspath(url)), create=True).place


def vacuum(
    url: str | os.PathLike[str],
    retention: str = "7d",
    *,
    dry_run: bool = False,
    force: bool = False,
) -> Vacuumed:
    """Delete files that left the lake, or were never part of it, longer ago than `retention`.

    `retention` is 12h, 7d, 2w or 1y; a longer ingest, or a reader of an older version, would fail.
    With `dry_run` nothing is deleted. Raises UsageError for a wrong duration, and for one of
    less than 7 days without `force`, which says that nobody uses the lake meanwhile.
    """
    from .queries.arguments import duration
    from .schema.lake.upkeep import RETENTION

    kept = duration(retention, "retention")
    if kept < RETENTION and not (force or dry_run):
        raise UsageError(
            f"{retention} is less than 7d, and files of those who use the lake now would go: "
            "force it with --force (in Python force=True) if nobody does",
            "retention",
        )
    with _opened(url) as store:
        return store.vacuum(kept, dry_run=dry_run)


def check(url: str | os.PathLike[str], *, read_data: bool = False) -> Checked:
    """Which data files of the lake are damaged or gone, and which runs' rows they held.

    That is, whether each file is there and as long as it was written; with `read_data` also
    whether its content has the SHA-256 that its name tells. Of files that other programs or an
    older memhouse wrote no name does: `unchecked` counts them.
    """
    with _opened(url) as store:
        return store.check_files(read_data=read_data)


def repair(url: str | os.PathLike[str], checked: Checked | None = None) -> Repaired:
    """Drop the files that cannot be read, and the runs, dumps and modules that lack their rows.

    Everything that stays is whole. One commit; a lake without damage stays as it is. `checked`
    is what `check` has just found with `read_data`; without it all files are read first.
    """
    with _opened(url) as store:
        damaged = (checked or store.check_files(read_data=True)).damaged
        done = store.repair([found.file for found in damaged])
        store.tidy()
        return done


def export_file(url: str | os.PathLike[str], file: str | os.PathLike[str]) -> int:
    """Write every row of the lake to a new DuckDB warehouse; how many rows."""
    from .queries.catalogue import use_views
    from .schema.stores.duckdb import open_file

    def finish(fresh: Path) -> None:
        written = open_file(str(fresh))
        try:
            use_views(written, read_only=False)
        finally:
            written.close()

    with _opened(url, files=True) as store:
        return store.export_file(Path(file), finish)


def import_file(url: str | os.PathLike[str], file: str | os.PathLike[str]) -> list[str]:
    """Store the runs of a DuckDB warehouse that the lake does not have; their names.

    All or nothing, in one commit. Refused if both hold a run with other rows.
    """
    with _opened(url, files=True) as store:
        new = store.import_file(os.fspath(file))
        store.tidy()
        return new


def ddl(url: str | os.PathLike[str]) -> str:
    """SQL that registers the lake in Spark's catalog: its table, a view a relation, our views."""
    from .queries.on_spark import ddl

    with _opened(url) as store:
        return ddl(store.lake.place)


@contextmanager
def _opened(url: str | os.PathLike[str], *, files: bool = False) -> Iterator[DeltaStore]:
    from .schema.lake.storage import is_lake
    from .schema.stores.delta import DeltaStore

    name = os.fspath(url)
    if not is_lake(name):
        if Path(name).is_file():
            raise WarehouseError(
                f"{name} is a file, not a lake: `memhouse lake import` brings its rows into one"
            )
        raise WarehouseError(f"there is no lake at {name}: make one with `memhouse lake init`")
    store = DeltaStore(name, files=files)
    try:
        yield store
    finally:
        store.close()
