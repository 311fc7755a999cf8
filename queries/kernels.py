"""What the kernels of modules reserve for themselves, beside their limits."""

from ..schema.stores.base import Store
from .catalogue import statement
from .find_module import find_module
from .lists import require_runs, require_workload
from .result import Rows


def kernels(
    store: Store,
    module: str | int | None = None,
    run: str | None = None,
    workload: str | None = None,
) -> Rows:
    """The kernels of a module, else of all modules: VMEM first, then by what they reserve.

    Without `run` the latest of each series. Columns: workload, kernel, count (equal kernels are
    one row), space (its name), scoped_bytes (what each reserves, null if the dump does not say),
    limit_bytes, headroom_bytes, source (a line, null if there are several), share, module, run,
    limit_from, op_name, opcode, first_instruction, memory_space (its number). A module's
    rows lack its workload, name and run. Raises UsageError.
    """
    require_runs(store, (run, "run"))
    require_workload(store, workload)
    found = None if module is None else find_module(store, module, run)
    dump = None if found is None else found.dump_id
    rows = store.rows(statement("kernels"), [run, workload, dump])
    if found is not None:
        rows = rows.drop_columns(["workload", "module", "run"])
    empty = "no kernel reserves memory; only dumps of TPU programs with HLO text say so"
    return Rows(rows, "" if found is None else found.caption, empty)
