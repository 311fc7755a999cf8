"""`memhouse buffers`: the buffers that fill a module's memory."""

from dataclasses import replace

from ..formats import FOR_SCRIPTS
from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Callers,
    Db,
    Limit,
    Module,
    RunOfModule,
    ScheduleTime,
    Space,
    Wait,
    Wide,
)
from ..render.text import print_captioned

EXAMPLE = "memhouse buffers llama-v5e -n 4"
# Columns of csv, json and wide tables only.
_DETAILS = ["start_time", "end_time", "last_use_time", "layout"]


def buffers(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    memory_space: Space = 0,
    schedule_time: ScheduleTime = None,
    callers: Callers = 0,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show the buffers that fill a module's memory.

    At its peak, or at a schedule time. The sizes add up to the occupied bytes.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.buffers(
            module,
            run=run,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            limit=limit,
        )
    if output not in FOR_SCRIPTS and not wide:
        rows = replace(rows, table=rows.table.drop_columns(_DETAILS))
    print_captioned(rows, output, wide=wide)
