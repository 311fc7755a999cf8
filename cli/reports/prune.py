"""Drops old runs from the warehouse."""

import re
from datetime import UTC, datetime, timedelta

import typer

from ...queries.prune import prune, runs_before
from ..render.output import print_note
from ..warehouse import writing

_AGE = re.compile(r"^(\d+) ?(d|w|y)$")
_DAYS = {"d": 1, "w": 7, "y": 365}


def drop_runs(db: str, runs: list[str], keep: str | None, wait: float) -> None:
    """Drop the named runs, or those older than `keep`, and say what went."""
    if (keep is None) == (not runs):
        raise typer.BadParameter("name the runs to drop, or say how long to keep with --keep")
    with writing(db, wait=wait, create=False) as engine:
        with engine.begin() as connection:
            if keep is not None:
                names = runs_before(connection, _oldest_kept(keep))
            else:
                names = runs
                known = {
                    row[0] for row in connection.exec_driver_sql("SELECT run_id FROM runs").all()
                }
                for name in names:
                    if name not in known:
                        raise typer.BadParameter(f"there is no run {name!r}: see `memhouse runs`")
            counts = prune(connection, names)
        with engine.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT").all()
    print_note("dropped " + ", ".join(f"{count} {what}" for what, count in counts.items()))


def _oldest_kept(text: str) -> datetime:
    """The time before which runs are dropped."""
    match = _AGE.match(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no age such as 90d, 12w or 1y", param_hint="--keep")
    try:
        return datetime.now(UTC) - timedelta(days=int(match[1]) * _DAYS[match[2]])
    except OverflowError:
        raise typer.BadParameter(f"{text} is too long ago", param_hint="--keep") from None
