"""`memhouse prune`: drops runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from ..known import known_runs
from ..options import DEFAULT_DB, DEFAULT_WAIT, Db, Wait

if TYPE_CHECKING:
    from ...schema.stores.base import Deleted

EXAMPLE = "memhouse prune --keep 90d --dry-run"


def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help="Runs to drop.", show_default=False, autocompletion=known_runs
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    keep: Annotated[
        str | None,
        typer.Option(metavar="90d", help="Drop all runs older than so long (h, d, w, y)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be dropped, and drop nothing.")
    ] = False,
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
    from ..opening import reading, writing
    from ..render.compacted import what_was_gained
    from ..render.text import print_note, print_text

    def tell(done: str, gone: "Deleted") -> None:
        print_note(
            f"{done} {counted(gone.runs, 'run')}, {counted(gone.dumps, 'dump')}, "
            f"{counted(gone.modules, 'module')}"
        )

    if dry_run:
        with reading(db, wait=wait) as store:
            gone = drop(store, runs or [], keep, dry_run=True)
        for run in gone.run_ids:
            print_text(run)
        tell("would drop", gone)
        return
    with writing(db, wait=wait) as store:
        tell("dropped", drop(store, runs or [], keep))
        if compacted := store.tidy(DELETED_BYTES):
            print_note(what_was_gained(store.name, compacted))
