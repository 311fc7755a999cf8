"""Options that several commands take."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="MEMHOUSE_DB",
        help="The warehouse: a file's path or a duckdb:/// URL.",
    ),
]
AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How to print the rows.", show_choices=True)
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only runs since this date or time, in UTC.")
]
Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="To write, wait at most so long while another process uses the warehouse.",
    ),
]
DEFAULT_DB = "memhouse.duckdb"
# A night's ingest is over by then; a prompt that someone left open may not be.
DEFAULT_WAIT = 600


def parse_time(text: str | None, option: str) -> datetime | None:
    """An option's ISO date or time; in UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no ISO time such as 2026-10-01 or 2026-10-01T03:00", param_hint=option
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
