"""Drops runs, and what no other run points to; nothing else."""

from collections.abc import Sequence

from ..schema.errors import UsageError
from ..schema.stores.base import Deleted, Store
from .arguments import time_before
from .lists import require_runs


def prune(store: Store, runs: Sequence[str] = (), keep: str | None = None) -> Deleted:
    """Drop the named runs, or those older than the age `keep`, such as 90d, 12w or 1y.

    Modules go that no other run points to. Raises UsageError, and then drops nothing.
    """
    if (keep is None) == (not runs):
        raise UsageError("name the runs to drop, or how long to keep runs", "runs")
    if keep is not None:
        return store.delete_runs(store.runs_before(time_before(keep, "keep")))
    require_runs(store, *((run, "runs") for run in runs))
    return store.delete_runs(runs)
