"""The dates that people put into the names of runs, folders and archives."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from ..schema import clock
from ..schema.errors import UsageError
from .sources.session_names import session_time

# With hyphens as `record` names its runs, because a colon is no good part of a file's name.
_ISO_DATE = re.compile(
    r"(?<!\d)(\d{4}-\d{2}-\d{2})"
    r"(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?|(?<=T)\d{2}-\d{2}-\d{2})"
    r"(Z|[+-][01]\d:?(?:00|15|30|45))?)?(?!\d)"
)
# Before XLA dumped memory, and later than the next day everywhere, nobody compiled a run.
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)


def date_in(name: str) -> datetime | None:
    """The date in a name: ISO, with or without time and offset, or that of a session; in UTC."""
    if at := session_time(name):
        return at
    for match in _ISO_DATE.finditer(name):
        # The digits after a date may not be a time: 2026-10-01_8192.
        time = (match[2] or "").replace("-", ":")
        for text in (f"{match[1]}T{time}{match[3] or ''}", match[1]):
            with suppress(ValueError):
                date = datetime.fromisoformat(text)
                return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def claim(at: datetime | None, run_id: str) -> datetime | None:
    """The date that a run claims: `at`, else the date in its name; None without either.

    An `at` with no time zone is UTC. Raises UsageError for a date at which nobody can have
    compiled the run.
    """
    if at is not None and at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    claimed = at or date_in(run_id)
    if claimed is None or _FIRST <= claimed <= clock.now() + _AHEAD:
        return claimed
    said, instead = (
        (f"the time {at.isoformat()}", "give the time at which the run was compiled")
        if at
        else (f"the date in the run's name {run_id!r}", "give the right one with --at")
    )
    when = "before 2015" if claimed < _FIRST else "in the future"
    raise UsageError(f"{said} is {when}: {instead}", "at" if at else "run")
