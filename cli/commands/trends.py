"""`memhouse trends`: how memory changed from run to run."""

from ...queries.result import counted
from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    All,
    AsFormat,
    Branch,
    Db,
    MetricOrWork,
    Since,
    Space,
    Wait,
    Workload,
)
from ..render.text import print_note, print_prose, print_rows, print_text

EXAMPLE = "memhouse trends --since 2026-10-06"
# More steps do not fit a screen.
_MAX_STEPS = 20


def trends(
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    branch: Branch = None,
    since: Since = None,
    memory_space: Space = 0,
    metric: MetricOrWork = "peak",
    all_: All = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show how each program's memory, or work, changed from run to run, and why.

    `since` is the first run of today's level. csv, json and markdown have a row per run and
    series.
    """
    with open_warehouse(db, wait) as warehouse:
        trend = warehouse.trends(
            workload=workload,
            branch=branch,
            since=since,
            memory_space=memory_space,
            metric=metric,
            fold=not all_,
        )
    if output != "table":
        print_rows(trend.rows, output)
        return
    print_rows(trend.series, output)
    steps = trend.steps_in_words()
    visible_steps = steps if all_ else steps[:_MAX_STEPS]
    if visible_steps:
        print_text("")
    for step in visible_steps:
        print_prose(step)
    if omitted := len(steps) - len(visible_steps):
        print_note(f"… and {counted(omitted, 'earlier step')} (--all)")
    if trend.helpers:
        print_note(f"{trend.helpers} (--all)")
    if trend.jitter:
        print_note(f"{counted(trend.jitter, 'change')} within a level omitted (--format csv)")
    if trend.other_branches:
        print_note(trend.branches_note)
