"""`memhouse peaks`: the peak of each program."""

from ..formats import FOR_SCRIPTS
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, All, AsFormat, Db, Run, Wait, Workload
from ..render.text import print_rows

EXAMPLE = "memhouse peaks --workload llama-v5e"


def peaks(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    all_: All = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show the peak of each program in each memory space, the largest first.

    Without --run, those of the latest run of each series. Equal programs of several workloads are
    one row. Auxiliary programs (eager operations, initialisers and other programs that are small
    next to the largest of their workload) are only counted. csv and json have all of them.
    """
    fold = not all_ and output not in FOR_SCRIPTS
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.peaks(run=run, workload=workload, fold=fold)
    print_rows(rows, output)
