"""`memhouse peaks`: what each module needs at its peak."""

from ..options import DEFAULT_DB, AsFormat, Db, Format, Run, Workload


def peaks(
    db: Db = DEFAULT_DB,
    run: Run = None,
    workload: Workload = None,
    output: AsFormat = Format.table,
) -> None:
    """Show each module's peak in each memory space, the largest first.

    Without --run, the latest of each series of runs.
    """
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db) as store:
        found = lists.peaks(store, run, workload)
    print_rows(found, output)
