"""`memhouse trends`: how memory changed from run to run."""

from ..options import DEFAULT_DB, AsFormat, Db, Figure, Format, Since, Space, Workload


def trends(
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    since: Since = None,
    space: Space = 0,
    figure: Figure = "peak",
    output: AsFormat = Format.table,
) -> None:
    """Show how each module's memory changed from run to run, and what changed with it.

    csv, json and markdown have a row per run and series.
    """
    from ...queries.trends import trends as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_text

    with reading(db) as store:
        found = find(store, workload, since, space, figure)
    if output is not Format.table:
        print_rows(found.rows, output)
        return
    print_rows(found.series, output)
    if len(found.steps):
        print_text("")
        print_rows(found.steps, output)
