"""`memhouse timeline`: how full a module's memory is over its schedule."""

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Module, RunOfModule, Space, Wait
from ..render.chart import print_timeline
from ..render.text import is_terminal, print_captioned, print_note

EXAMPLE = "memhouse timeline llama-v5e"


def timeline(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    memory_space: Space = 0,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show how full a module's memory is over its schedule.

    On a terminal, a chart.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.timeline(module, run=run, memory_space=memory_space)
    if output == "table" and is_terminal() and len(rows):
        print_note(rows.caption)
        print_timeline(rows.table)
    else:
        print_captioned(rows, output)
