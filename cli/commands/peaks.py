"""`memhouse peaks`: what each module needs at its peak."""

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    FOR_SCRIPTS,
    All,
    AsFormat,
    Db,
    Format,
    Run,
    Wait,
    Workload,
)

EXAMPLE = "memhouse peaks --workload llama-v5e"


def peaks(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    unfold: All = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show each module's peak in each memory space, the largest first.

    Without --run, the latest of each series of runs. The same program of several workloads is
    one row; csv and json have them all.
    """
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.peaks(store, run, workload, fold=not unfold and output not in FOR_SCRIPTS)
    print_rows(found, output)
