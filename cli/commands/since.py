"""`memhouse since`: the run in which a module's memory last changed."""

from typing import Annotated

import typer

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Branch, Db, Metric, Module, Space, Wait
from ..render.text import print_prose, print_rows

EXAMPLE = "memhouse since llama-v5e"


def since(
    module: Module,
    db: Db = DEFAULT_DB,
    branch: Branch = None,
    memory_space: Space = 0,
    metric: Metric = "peak",
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="0.5%|1MiB",
            help="Deviation within a level [default: 0.2 % and at least 64 KiB].",
        ),
    ] = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show the run in which a module's memory last changed, and the cause.

    csv, json and markdown have a row for each level: the runs between two changes.
    """
    with open_warehouse(db, wait) as warehouse:
        levels = warehouse.since(
            module, branch=branch, memory_space=memory_space, metric=metric, tolerance=tolerance
        )
    if output != "table" or not levels.answer:
        print_rows(levels.rows, output)
        return
    for sentence in levels.answer:
        print_prose(sentence)
