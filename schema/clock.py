"""The clock: the only place that asks what time it is, for what is stored and for ages."""

from datetime import UTC, datetime


def now() -> datetime:
    """The time of the machine, in UTC."""
    return datetime.now(UTC)
