"""`memhouse prune`: drops runs."""

from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Wait


def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs to drop.", show_default=False),
    ] = None,
    db: Db = DEFAULT_DB,
    keep: Annotated[
        str | None, typer.Option(metavar="90d", help="Drop all runs older than so long (d, w, y).")
    ] = None,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Drop runs, and the modules that no other run points to; nothing else.

    If much of the file is then free, it is compacted; beyond some 256 MiB only by
    `memhouse compact`. The files of a lake stay until `memhouse lake vacuum`.
    """
    if (keep is None) == (not runs):
        raise typer.BadParameter("name the runs to drop, or say how long to keep with --keep")
    from ...queries.cells import counted
    from ...queries.prune import prune as drop
    from ...schema.stores.base import DELETED_BYTES
    from ..opening import writing
    from ..render.compacted import what_was_gained
    from ..render.text import print_note

    with writing(db, wait=wait) as store:
        gone = drop(store, runs or [], keep)
        print_note(
            f"dropped {counted(gone.runs, 'run')}, {counted(gone.dumps, 'dump')}, "
            f"{counted(gone.modules, 'module')}"
        )
        if compacted := store.tidy(DELETED_BYTES):
            print_note(what_was_gained(store.name, compacted))
