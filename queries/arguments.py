"""Arguments as users give them: times, ages, metrics."""

import re
from datetime import UTC, datetime, timedelta

from ..schema.errors import UsageError
from ..schema.metric_names import METRICS

_AGE = re.compile(r"^(\d+) ?(d|w|y)$")
_DAYS = {"d": 1, "w": 7, "y": 365}


def parse_time(time: str | datetime | None, argument: str) -> datetime | None:
    """A time, or a text of an ISO date or time; in UTC unless it has a time zone.

    Raises UsageError.
    """
    if time is None:
        return None
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            raise UsageError(
                f"invalid time {time!r}: use an ISO time such as 2026-10-01 or 2026-10-01T03:00",
                argument,
            ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def time_before(age: str, argument: str) -> datetime:
    """The time that is `age` (90d, 12w or 1y) ago. Raises UsageError."""
    match = _AGE.match(age)
    if match is None:
        raise UsageError(f"invalid age {age!r}: use 90d, 12w or 1y", argument)
    try:
        return datetime.now(UTC) - timedelta(days=int(match[1]) * _DAYS[match[2]])
    except OverflowError:
        raise UsageError(f"{age} is too long ago", argument) from None


def metric_column(metric: str) -> str:
    """The metric `peak` or `peak_bytes` as `module_memory` names it. Raises UsageError."""
    column = f"{metric.removesuffix('_bytes')}_bytes"
    if column not in METRICS:
        names = ", ".join(name.removesuffix("_bytes") for name in METRICS)
        raise UsageError(f"unknown metric {metric!r}: use one of {names}", "metric")
    return column
