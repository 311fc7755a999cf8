"""`memhouse buffers`: what fills a module's memory."""

from typing import Annotated

import typer

from ..options import DEFAULT_DB, AsFormat, Db, Format, Limit, Module, RunOfModule, Space


def buffers(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    space: Space = 0,
    at: Annotated[
        int | None, typer.Option(metavar="TIME", help="At this time of the schedule.")
    ] = None,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show the buffers that fill a module's memory at its peak, or at any time."""
    from ...queries.buffers import buffers as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db) as store:
        found = find(store, module, run, space, at, limit)
    print_note(found.caption)
    print_rows(found, output)
