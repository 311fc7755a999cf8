"""`memhouse passes`: the compiler passes that changed a program's memory."""

from typing import Annotated

import typer

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Module, RunOfModule, Wait
from ..render.text import print_captioned

EXAMPLE = "memhouse passes llama-v5e"


def passes(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    buffers: Annotated[
        bool,
        typer.Option("--buffers", help="Show the large buffers of the peak, and their passes."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show also steps that leave the estimate unchanged.")
    ] = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show which compiler passes changed a program's memory, in order.

    The dump must have the program's texts between the passes, see `memhouse record --passes`. The
    peak of each text is estimated in the same simple way, so that texts can be compared. With
    --buffers, a row for each large buffer of the final peak, the largest first: which pass defined
    it, and which changed it.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.passes(module, run=run, buffers=buffers, every=every)
    print_captioned(rows, output)
