"""`memhouse buffers`: what fills a module's memory."""

from dataclasses import replace

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    At,
    Callers,
    Db,
    Format,
    Limit,
    Module,
    RunOfModule,
    Space,
    Wait,
    Wide,
)

EXAMPLE = "memhouse buffers llama-v5e -n 4"
# What only a wide table, csv and json have.
_DETAILS = ["start_time", "end_time", "last_use_time", "layout"]


def buffers(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    space: Space = 0,
    at: At = None,
    callers: Callers = 0,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show the buffers that fill a module's memory at its peak, or at any time."""
    from ...queries.buffers import buffers as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        found = find(store, module, run, space, at, limit, callers=callers)
    print_note(found.caption)
    if output in (Format.table, Format.markdown) and not wide:
        found = replace(found, table=found.table.drop_columns(_DETAILS))
    print_rows(found, output, wide=wide)
