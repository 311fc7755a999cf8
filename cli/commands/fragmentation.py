"""`memhouse fragmentation`: memory that packing wastes."""

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Run, Wait, Workload
from ..render.text import print_captioned

EXAMPLE = "memhouse fragmentation --workload llama-v5e"


def fragmentation(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what packing wastes of each temp allocation.

    In descending order. Without --run, those of the latest run of each series.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.fragmentation(run=run, workload=workload)
    print_captioned(rows, output)
