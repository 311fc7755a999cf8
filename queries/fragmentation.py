"""What packing wastes of temp allocations."""

from ..schema.store import Store
from .modules import of_run_and_workload
from .result import Rows


def fragmentation(store: Store, *, run: str | None = None, workload: str | None = None) -> Rows:
    """The rows of `Warehouse.fragmentation`."""
    found = of_run_and_workload(store, "fragmentation", run, workload)
    return Rows(found, empty="there are no temp allocations")
