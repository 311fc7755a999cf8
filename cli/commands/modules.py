"""`memhouse modules`: the modules of each run."""

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Run, Wait, Workload
from ..render.text import print_captioned

EXAMPLE = "memhouse modules --run 2026-10-08"


def modules(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """List the modules of each run."""
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.modules(run=run, workload=workload)
    print_captioned(rows, output)
