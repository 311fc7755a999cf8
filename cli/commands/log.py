"""`memhouse log`: the changes of the warehouse."""

from typing import Annotated

import typer

from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import print_captioned

EXAMPLE = "memhouse log -n 10"


def log(
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=1, metavar="N", help="Show the newest N entries [default: all]."
        ),
    ] = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what changed the warehouse, the newest first.

    An entry for each ingest, replacement, prune, label, accepted growth, merge and compaction. The
    entries record the order in which runs were ingested.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.log(limit=limit)
    print_captioned(rows, output)
