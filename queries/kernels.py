"""What the kernels of modules take for themselves, beside their limits."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module, require_workload
from .questions import OneModule, Run, Workload, question
from .result import Rows
from .runs import require_runs


@question(example="memhouse kernels llama-v5e", screen="kernels")
def kernels(
    store: Store, module: OneModule = None, *, run: Run = None, workload: Workload = None
) -> Rows:
    """Show what kernels take for themselves on chip, and how much each may.

    Equal kernels, as of unrolled layers, are one row. The text of an executable says what a Pallas
    kernel takes. A dump does not, so that its kernels take at least what their blocks and scratch
    take with padding: `at_least` is true, and the table `kernel_parts` has each of these arrays.
    The shared memory of a GPU's kernels is known if the dump has XLA's `*.thunk_sequence.txt` and
    `*.thunk_metadata.txt`.
    Without --run, the latest of each series of runs. `kernel_trends` is the view of all runs.

    Columns: workload, kernel, count (equal kernels are one row), space (its name), scoped_bytes
    (what each takes, null if the dump does not say), at_least (whether it may take more),
    limit_bytes, headroom_bytes, source (a line, null if there are several), share, block_bytes,
    scratch_bytes, smem_bytes (beside scoped_bytes), module, run, limit_from, op_name, opcode,
    first_instruction, memory_space (its number). A module's rows lack its workload, name and run.
    Raises UsageError.
    """
    require_runs(store, (run, "run"))
    require_workload(store, workload)
    found = None if module is None else find_module(store, module, run)
    dump = None if found is None else found.dump_id
    rows = store.rows(statement("kernels"), [run, workload, dump])
    if found is not None:
        rows = rows.drop_columns(["workload", "module", "run"])
    empty = "no kernel takes memory for itself; only dumps for TPU or GPU with HLO text say so"
    return Rows(rows, "" if found is None else found.caption, empty)
