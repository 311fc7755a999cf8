"""The modules: programs as they were compiled."""

from typing import TYPE_CHECKING

from ..schema.errors import UsageError
from .catalogue import statement
from .questions import Run, Workload, question
from .result import Rows
from .runs import require_runs, run_names

if TYPE_CHECKING:
    import pyarrow as pa

    from ..schema.stores.base import Store


@question(example="memhouse modules --run 2026-10-08", tool="Modules")
def modules(store: "Store", *, run: Run = None, workload: Workload = None) -> Rows:
    """List the modules of each run.

    Columns: run, workload, module, status, peak_bytes, total_bytes (of memory space 0),
    module_id, instructions (a count), platform, device, compiler, occurrence, is_entry (the
    workload is run for it, else it is a helper), headroom_bytes. Raises UsageError.
    """
    found = of_run_and_workload(store, "modules", run, workload)
    return Rows(found, empty=or_no_runs(store, found, "there are no such modules"))


def of_run_and_workload(
    store: "Store", name: str, run: str | None, workload: str | None
) -> "pa.Table":
    """The rows of a statement, of a run and a workload. Raises UsageError for unknown ones."""
    found = store.rows(statement(name), [run, workload])
    if not found.num_rows:
        require_runs(store, (run, "run"))
        require_workload(store, workload)
    return found


def require_workload(store: "Store", workload: str | None) -> None:
    """Raise UsageError if a warehouse that has dumps has none of this workload."""
    if workload is None:
        return
    (dumps,) = store.rows(statement("dumps.counts"), [workload]).to_pylist()
    if dumps["all_dumps"] and not dumps["of_workload"]:
        raise UsageError(f"there is no workload {workload!r}: see `memhouse modules`", "workload")


def or_no_runs(store: "Store", found: "pa.Table", otherwise: str) -> str:
    """Why there are no rows: a name that was mistyped makes a warehouse without runs."""
    if len(found) or run_names(store):
        return otherwise
    return f"there are no runs yet in {store.name}: ingest dumps first"
