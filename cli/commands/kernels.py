"""`memhouse kernels`: what kernels reserve for themselves, beside their limits."""

from typing import Annotated

import typer

from ..known import known_modules
from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Format,
    Run,
    Wait,
    Wide,
    Workload,
)

EXAMPLE = "memhouse kernels llama-v5e"


def kernels(
    module: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE]",
            help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id; "
            "else all modules.",
            show_default=False,
            autocompletion=known_modules,
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    wide: Wide = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what kernels reserve for themselves on TPU, and how much each may.

    Equal kernels, as of unrolled layers, are one row. A Pallas kernel that sets no
    `vmem_limit_bytes` has no size: the dump does not say what it takes, at most its limit.
    Without --run, the latest of each series of runs. `kernel_trends` is the view of all runs.
    """
    from ...queries.cells import counted
    from ...queries.kernels import kernels as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        found = find(store, module, run, workload)
    if found.caption:
        print_note(found.caption)
    print_rows(found, output, wide=wide)
    if without := found.table["scoped_bytes"].null_count:
        print_note(
            f"{counted(without, 'kernel')} without a size: the dump does not say what a Pallas "
            "kernel takes that sets no vmem_limit_bytes"
        )
