"""`memhouse prune`: drop runs."""

from typing import Annotated

import typer

from ...queries.result import counted
from ...schema.compaction import DELETED_BYTES
from ...schema.store import Deleted
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Wait, completer
from ..render.text import print_note, print_text
from .compact import size_change

EXAMPLE = "memhouse prune --keep 90d --dry-run"


def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Runs to drop.",
            show_default=False,
            autocompletion=completer("runs"),
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    keep: Annotated[
        str | None,
        typer.Option(metavar="90d", help="Drop all runs that are older than this (h, d, w, y)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be dropped, and drop nothing.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Drop runs, and the modules that no other run refers to.

    If much of the file is then free, it is compacted; a file above 256 MiB only by
    `memhouse compact`.
    """
    if (keep is None) == (not runs):
        raise typer.BadParameter("name the runs to drop, or pass --keep AGE")
    with open_warehouse(db, wait, write=not dry_run) as warehouse:
        deleted = warehouse.prune(runs or (), keep=keep, dry_run=dry_run)
        compacted = None if dry_run else warehouse.store.tidy(DELETED_BYTES)
    if dry_run:
        for run in deleted.run_ids:
            print_text(run)
    print_note(f"{'would drop' if dry_run else 'dropped'} {_counts(deleted)}")
    if compacted:
        print_note(size_change(db, compacted))


def _counts(deleted: Deleted) -> str:
    return (
        f"{counted(deleted.runs, 'run')}, {counted(deleted.dumps, 'dump')}, "
        f"{counted(deleted.modules, 'module')}"
    )
