"""`memhouse fragmentation`: what packing wastes."""

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Run, Wait, Workload

EXAMPLE = "memhouse fragmentation --workload llama-v5e"


def fragmentation(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what packing wastes of each temp allocation, the most first.

    Without --run, the latest of each series of runs.
    """
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.fragmentation(store, run, workload)
    print_rows(found, output)
