"""`memhouse timeline`: how full a module's memory is over its schedule."""

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Format,
    Module,
    RunOfModule,
    Space,
    Wait,
)

EXAMPLE = "memhouse timeline llama-v5e"


def timeline(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    space: Space = 0,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show how full a module's memory is over its schedule, as a chart on a terminal."""
    from ...queries.timeline import timeline as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import is_terminal, print_note

    with reading(db, wait=wait) as store:
        found = find(store, module, run, space)
    print_note(found.caption)
    if output is Format.table and is_terminal() and len(found):
        from ..render.chart import print_timeline

        print_timeline(found.table)
    else:
        print_rows(found, output)
