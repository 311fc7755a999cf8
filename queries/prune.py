"""Drops runs, and what no other run points to; nothing else."""

from __future__ import annotations

from typing import Annotated

from ..schema.errors import UsageError
from ..schema.store import Deleted, Store
from .arguments import time_before
from .catalogue import statement
from .questions import Kind, Runs, question
from .runs import require_runs


@question(example="memhouse prune --keep 90d --dry-run", screen="prune")
def prune(
    store: Store,
    runs: Runs = (),
    *,
    keep: Annotated[
        str | None, Kind("Drop all runs older than so long (h, d, w, y).", metavar="90d")
    ] = None,
    dry_run: Annotated[bool, Kind("Say what would be dropped, and drop nothing.")] = False,
) -> Deleted:
    """Drop runs, and the modules that no other run points to; nothing else.

    If much of the file is then free, it is compacted; beyond some 256 MiB only by
    `memhouse compact`.

    Columns: those of `Deleted`. Raises UsageError, and then drops nothing.
    """
    if (keep is None) == (not runs):
        raise UsageError("name the runs to drop, or how long to keep runs", "runs")
    if keep is not None:
        chosen = store.runs_before(time_before(keep, "keep"))
    else:
        require_runs(store, *((run, "runs") for run in runs))
        chosen = list(dict.fromkeys(runs))
    if not dry_run:
        return store.delete_runs(chosen)

    (counts,) = store.rows(statement("prune_counts"), [chosen]).to_pylist()
    return Deleted(len(chosen), counts["dumps"], counts["modules"], chosen)
