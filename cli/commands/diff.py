"""`memhouse diff`: what differs between two runs or two modules."""

from typing import Annotated, Literal

import typer

from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Owner,
    RunOrModule,
    Space,
    Wait,
    Workload,
)
from ..render.differences import print_diff

EXAMPLE = "memhouse diff 2026-10-07 2026-10-08 --workload llama-v5e"


def diff(
    a: RunOrModule,
    b: RunOrModule,
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    by: Annotated[
        Literal["buffer", Owner], typer.Option(help="Sum the changes by this.")
    ] = "buffer",
    memory_space: Space = 0,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=1, help="Show at most N changes a module.", metavar="N"),
    ] = 12,
    wide: Annotated[
        bool, typer.Option("--wide", "-v", help="Show all changes with all columns, not truncated.")
    ] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Show auxiliary programs too, and unchanged modules.")
    ] = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what grew or shrank from A to B, buffer by buffer, and the causes.

    The changes add up to the change of the peak; those below 0.1 % in total are one row. Of two
    runs, auxiliary programs are only counted. csv and json have all programs and memory spaces.
    """
    with open_warehouse(db, wait) as warehouse:
        difference = warehouse.diff(a, b, workload=workload, by=by)
    print_diff(difference, memory_space, limit, output, wide=wide, show_all=all_)
