"""`memhouse log`: the journal."""

from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = "memhouse log -n 10"


def log(
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int | None, typer.Option("-n", min=1, help="Only so many entries, the newest.")
    ] = None,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what changed the warehouse, the newest first.

    Each ingest, replacement, prune, label, accepted growth, compaction and upgrade is an entry,
    and stays one. The entries tell in which order runs entered.
    """
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        print_rows(lists.log(store, limit), output)
