"""What packing wastes of temp allocations."""

from ..schema.store import Store
from .modules import of_run_and_workload
from .questions import Run, Workload, question
from .result import Rows


@question(example="memhouse fragmentation --workload llama-v5e")
def fragmentation(store: Store, *, run: Run = None, workload: Workload = None) -> Rows:
    """Show what packing wastes of each temp allocation, the most first.

    Without --run, the latest of each series of runs.

    Columns: workload, module, space (its number), wasted_bytes, share (wasted_bytes over
    size_bytes), size_bytes, run, fullest_at (an instruction), most_occupied_bytes. Raises
    UsageError.
    """
    found = of_run_and_workload(store, "fragmentation", run, workload)
    return Rows(found, empty="there are no temp allocations")
