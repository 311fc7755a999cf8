"""The dates that people put into the names of runs, folders and archives."""

import re
from contextlib import suppress
from datetime import UTC, datetime

from .sources.session_names import session_time

_ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?))?(?!\d)")


def date_in(name: str) -> datetime | None:
    """The ISO date in a name, with or without a time, or the time of a session; in UTC."""
    if at := session_time(name):
        return at
    for match in _ISO_DATE.finditer(name):
        # The digits after a date may not be a time: 2026-10-01_8192.
        for text in (f"{match[1]}T{match[2]}", match[1]):
            with suppress(ValueError):
                return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return None
