"""The modules: programs as they were compiled. A workload is run for its entry programs; all others
are helpers: see the view `_entry_programs`.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from .catalogue import statement
from .questions import Run, Workload, question
from .result import Rows, counted
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


def helpers_line(peaks: Collection[int | None]) -> str:
    """What helpers of these peaks are, in a line: `47 helpers, at most 103.4 MiB`; empty if none.

    A peak is None for a helper of another run, whose figure is not among those asked for.
    """
    if not peaks:
        return ""
    known = [peak for peak in peaks if peak is not None]
    most = f", at most {human_bytes(max(known))}" if known else ""
    return f"{counted(len(peaks), 'helper')}{most}"


def without_helpers(rows: "pa.Table") -> "tuple[pa.Table, str]":
    """The rows of entry programs by their column `is_entry`, and what the helpers are, in a line.

    The rows have memory_space and peak_bytes; a helper is counted in memory space 0.
    """
    import pyarrow.compute as pc

    helpers = rows.filter(pc.and_(pc.invert(rows["is_entry"]), pc.equal(rows["memory_space"], 0)))
    return rows.filter(rows["is_entry"]), helpers_line(helpers["peak_bytes"].to_pylist())
