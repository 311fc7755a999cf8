"""`memhouse trends`: how memory changed from run to run."""

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    All,
    AsFormat,
    Branch,
    Db,
    Figure,
    Format,
    Since,
    Space,
    Wait,
    Workload,
)

EXAMPLE = "memhouse trends --since 2026-10-06"


def trends(
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    branch: Branch = None,
    since: Since = None,
    space: Space = 0,
    figure: Figure = "peak",
    unfold: All = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show how each module's memory changed from run to run, and why.

    `since` is the first run of today's level. csv, json and markdown have a row per run and
    series.
    """
    from ...queries.cells import counted
    from ...queries.trends import trends as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note, print_text

    with reading(db, wait=wait) as store:
        found = find(store, workload, since, space, figure, branch=branch, fold=not unfold)
    if output is not Format.table:
        print_rows(found.rows, output)
        return
    print_rows(found.series, output)
    if len(found.steps):
        print_text("")
        print_rows(found.steps, output)
    if found.jitter:
        print_note(f"{counted(found.jitter, 'change')} within a level left out (--format csv)")
    if found.other_branches:
        print_note(found.branches_note)
