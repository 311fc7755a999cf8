"""The clock: the only place that asks what time it is, for what is stored and for ages.

All times of memhouse are in UTC and carry no zone.
"""

from datetime import UTC, datetime


def now() -> datetime:
    """The time of the machine, in UTC."""
    return in_utc(datetime.now(UTC))


def in_utc(time: datetime) -> datetime:
    """A time in UTC without its zone; a time that has none is in UTC."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
