"""`memhouse owners`: who owns a module's memory."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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

EXAMPLE = "memhouse owners llama-v5e --by scope -n 5"


class By(StrEnum):
    """What owns the memory."""

    source = "source"
    scope = "scope"
    op = "op"
    dtype = "dtype"
    pass_ = "pass"
    category = "category"
    role = "role"


def owners(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    by: Annotated[
        By | None,
        typer.Option(help="What owns: source without it, or role with --roles."),
    ] = None,
    space: Space = 0,
    at: At = None,
    callers: Callers = 0,
    roles: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file with roles of your own: name = patterns."),
    ] = None,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show who owns a module's memory at its peak, or at any time: lines, scopes, roles."""
    from ...queries.owners import owners as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        found = find(
            store,
            module,
            run,
            space,
            limit,
            by=by.value if by else None,
            at=at,
            callers=callers,
            roles=roles,
        )
    print_note(found.caption)
    if callers and output is Format.table and not wide:
        # A stack needs the room.
        found = replace(found, table=found.table.drop_columns(["categories"]))
    print_rows(found, output, wide=wide)
