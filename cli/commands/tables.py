"""`memhouse tables`: the tables and their columns."""

from typing import Annotated

import typer

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait, completer
from ..render.text import print_captioned

EXAMPLE = "memhouse tables modules"


def tables(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Show the columns of this table.",
            show_default=False,
            autocompletion=completer("tables"),
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """List the tables, or the columns of one."""
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.tables(table)
    print_captioned(rows, output)
