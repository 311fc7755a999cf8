"""The runs: nights, commits, hosts."""

from typing import TYPE_CHECKING

from ..schema.errors import UsageError
from .catalogue import statement
from .nearest_name import nearest
from .questions import question
from .result import Rows

if TYPE_CHECKING:
    from ..schema.stores.base import Store


@question(example="memhouse runs", screen="runs", tool="Runs")
def runs(store: "Store") -> Rows:
    """List the runs: when, how many dumps and modules, the largest peak, branch, hosts.

    Columns: run, run_at (UTC), branch (the label), hosts (the names), dumps, new_modules,
    incomplete, oom (counts), largest_peak_bytes, workloads, modules (counts), source,
    ingested_at (UTC). The oldest run is first.
    """
    return Rows(store.rows(statement("runs")), empty="there are no runs yet")


def run_names(store: "Store") -> list[str]:
    """The runs' names, the latest first."""
    return list(store.rows(statement("run_names"))["run_id"].to_pylist())


def require_runs(store: "Store", *named: tuple[str | None, str | None]) -> list[str]:
    """The runs' names, the latest first; `named` are runs that must be among them.

    Each is a run, or None, with the argument that names it. Raises UsageError.
    """
    known = run_names(store)
    for run, argument in named:
        if run is not None and run not in known:
            hint = nearest(run, known) or "see `memhouse runs`"
            raise UsageError(f"there is no run {run!r}: {hint}", argument)
    return known
