"""`memhouse prune`: old runs out of the warehouse."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ..queries.prune import prune as prune_runs
from ..queries.prune import runs_before
from ..schema.warehouse import open_warehouse
from .options import DEFAULT_DB, Db
from .output import print_note

_AGE = re.compile(r"^(\d+) ?(d|w|y)$")
_DAYS = {"d": 1, "w": 7, "y": 365}


def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Runs to drop.", show_default=False),
    ] = None,
    db: Db = DEFAULT_DB,
    keep: Annotated[
        str | None, typer.Option(metavar="90d", help="Drop all runs older than so long (d, w, y).")
    ] = None,
) -> None:
    """Drop runs, and the modules that no other run points to; nothing else."""
    if (keep is None) == (not runs):
        raise typer.BadParameter("name the runs to drop, or say how long to keep with --keep")
    engine = open_warehouse(db)
    try:
        with engine.begin() as connection:
            if keep is not None:
                names = runs_before(connection, datetime.now(UTC) - _parse_age(keep))
            else:
                names = list(runs or [])
                known = {
                    row[0] for row in connection.exec_driver_sql("SELECT run_id FROM runs").all()
                }
                for name in names:
                    if name not in known:
                        raise typer.BadParameter(f"there is no run {name!r}: see `memhouse runs`")
            counts = prune_runs(connection, names)
        with engine.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT").all()
    finally:
        engine.dispose()
    print_note("dropped " + ", ".join(f"{count} {what}" for what, count in counts.items()))


def _parse_age(text: str) -> timedelta:
    match = _AGE.match(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no age such as 90d, 12w or 1y", param_hint="--keep")
    return timedelta(days=int(match[1]) * _DAYS[match[2]])
