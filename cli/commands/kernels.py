"""`memhouse kernels`: the on-chip memory of kernels."""

from ...queries.result import counted
from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AnyModule,
    AsFormat,
    Db,
    Run,
    Wait,
    Wide,
    Workload,
)
from ..render.text import print_captioned, print_note

EXAMPLE = "memhouse kernels llama-v5e"


def kernels(
    module: AnyModule = None,
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    wide: Wide = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show the on-chip memory of kernels, and its limit.

    Equal kernels, as of unrolled layers, are one row. The text of an executable has the memory of
    a Pallas kernel. A dump lacks it: then the size of the kernel's blocks and scratch, with
    padding, is a lower bound (`is_lower_bound`); the table `kernel_parts` has each of these arrays.
    The shared memory of a GPU's kernels is known if the dump has `*.thunk_sequence.txt` and
    `*.thunk_metadata.txt`. Without --run, the kernels of the latest run of each series.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.kernels(module, run=run, workload=workload)
    print_captioned(rows, output, wide=wide)
    sizes = rows.table.select(["space", "scoped_bytes"]).to_pylist()
    unsized = [row["space"] for row in sizes if row["scoped_bytes"] is None]
    if on_gpu := unsized.count("shared"):
        print_note(
            f"{counted(on_gpu, 'kernel')} without a size: XLA writes the shared memory of a GPU's "
            "kernels to *.thunk_sequence.txt and *.thunk_metadata.txt, which this dump lacks"
        )
    if unread := len(unsized) - on_gpu:
        print_note(
            f"{counted(unread, 'kernel')} without a size: the module of a Pallas kernel cannot be "
            "read, or an older memhouse ingested the dump: ingest it again"
        )
