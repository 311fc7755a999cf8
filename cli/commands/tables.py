"""`memhouse tables`: the tables."""

from typing import Annotated

import typer

from ..known import known_tables
from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = "memhouse tables modules"


def tables(
    name: Annotated[
        str | None, typer.Argument(help="Show this table's columns.", autocompletion=known_tables)
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """List the tables, their rows and what they are for, or one table's columns."""
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.tables(store) if name is None else lists.columns(store, name)
    print_rows(found, output)
