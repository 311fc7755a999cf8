"""What the kernels of modules reserve for themselves, beside their limits."""

from typing import TYPE_CHECKING

from .catalogue import statement
from .find_module import find_module
from .modules import require_workload
from .questions import OneModule, Run, Workload, question
from .result import Rows
from .runs import require_runs

if TYPE_CHECKING:
    from ..schema.stores.base import Store


@question(example="memhouse kernels llama-v5e", screen="kernels")
def kernels(
    store: "Store", module: OneModule = None, *, run: Run = None, workload: Workload = None
) -> Rows:
    """Show what kernels reserve for themselves on TPU, and how much each may.

    Equal kernels, as of unrolled layers, are one row. A Pallas kernel that sets no
    `vmem_limit_bytes` has no size: the dump does not say what it takes, at most its limit.
    Without --run, the latest of each series of runs. `kernel_trends` is the view of all runs.

    Columns: workload, kernel, count (equal kernels are
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
