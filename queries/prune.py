"""Drops runs, and what no other run points to; nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ..schema.errors import UsageError
from ..schema.store import Deleted, Store
from .arguments import time_before
from .catalogue import statement
from .runs import require_runs


def prune(
    store: Store, runs: Sequence[str] = (), *, keep: str | None = None, dry_run: bool = False
) -> Deleted:
    """See `Warehouse.prune`."""
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
