"""Vacuum: files that no version of the lake needs any more are deleted.

These are files that compaction and deletion took out of the lake, and files of writers that died
before their commit. Nobody else must delete files of a lake.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from . import storage
from .lake_errors import lake_errors
from .snapshot import Lake

# Readers of older versions and the longest ingest are over by then.
RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class Vacuumed:
    """The files that were deleted, or would be, by their paths in the lake; how large they were."""

    files: Sequence[str]
    size_bytes: int


def vacuum(lake: Lake, retention: timedelta = RETENTION, *, dry_run: bool = False) -> Vacuumed:
    """Delete files that left the lake, or were never part of it, for longer than `retention`.

    A writer or reader that takes longer than that fails. `dry_run` only says what would go.
    Raises WarehouseError.
    """
    hours = int(retention / timedelta(hours=1))
    with lake_errors(lake.place):
        sizes = storage.sizes(lake.place)
        lake.refresh()
        # Only a full vacuum finds the files of dead writers: it lists all that is there.
        listed = lake.table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
        # The log names files for some days that an earlier vacuum deleted.
        gone = [path for path in listed if path in sizes]
        if gone and not dry_run:
            lake.table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            lake.refresh()
            lake.table.create_checkpoint()
        if not dry_run:
            # Entries of the log that are older than its own retention, 30 days, go as well.
            lake.table.cleanup_metadata()
    return Vacuumed(gone, sum(sizes[path] for path in gone))
