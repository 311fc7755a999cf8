"""`memhouse modules`: the modules of each run."""

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Run, Wait, Workload

EXAMPLE = "memhouse modules --run 2026-10-08"


def modules(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """List the modules of each run."""
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.modules(store, run, workload)
    print_rows(found, output)
