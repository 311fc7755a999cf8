"""What the kernels of modules take for themselves, beside their limits."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module, require_workload
from .result import Rows
from .runs import require_runs


def kernels(
    store: Store,
    module: str | int | None = None,
    *,
    run: str | None = None,
    workload: str | None = None,
) -> Rows:
    """The rows of `Warehouse.kernels`."""
    require_runs(store, (run, "run"))
    require_workload(store, workload)
    found = None if module is None else find_module(store, module, run)
    dump = None if found is None else found.dump_id
    rows = store.rows(statement("kernels"), [run, workload, dump])
    if found is not None:
        rows = rows.drop_columns(["workload", "module", "run"])
    empty = "no kernel takes memory for itself; only dumps for TPU or GPU with HLO text say so"
    return Rows(rows, "" if found is None else found.caption, empty)
