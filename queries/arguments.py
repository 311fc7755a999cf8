"""Arguments as users give them: times, durations, sizes, metrics, labels."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches

from ..schema import clock
from ..schema.errors import UsageError
from ..schema.metrics import METRICS
from ..schema.readable import UNITS

# XLA writes G for GiB.
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMGTP])(?:iB)?|B)")
# The largest number of bytes that the warehouse can hold.
_MOST_BYTES = 2**63 - 1
_DURATION = re.compile(r"(\d{1,6}) ?(h|d|w|y)")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}


def parse_time(time: str | datetime | None, argument: str) -> datetime | None:
    """A time, or a text of an ISO date or time, in UTC; a zone that it has is taken into account.

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
    return clock.in_utc(time)


def time_before(age: str, argument: str) -> datetime:
    """The time that is `age` ago, which is read as `duration` reads it. Raises UsageError."""
    try:
        return clock.now() - duration(age, argument)
    except OverflowError:
        raise UsageError(f"{age} is too long ago", argument) from None


def duration(text: str, argument: str) -> timedelta:
    """How long 12h, 7d, 2w or 1y is; a year has 365 days. Raises UsageError.

    >>> duration("2w", "keep").days
    14
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid duration {text!r}: use 12h, 90d, 12w or 1y", argument)
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


def check_labels(labels: Mapping[str, str | None] | None) -> dict[str, str]:
    """The labels, all of them texts; one that is None is empty. Raises UsageError."""
    for key, value in (labels or {}).items():
        if not isinstance(key, str) or not key:
            raise UsageError(f"a label's key is a text, found {key!r}", "labels")
        if not isinstance(value, str | None):
            raise UsageError(f"the label {key!r} must be a text, found {value!r}", "labels")
    return {key: value or "" for key, value in (labels or {}).items()}


def metric_column(metric: str, *others: str) -> str:
    """The metric `peak` or `peak_bytes` as `module_memory` names it, or one of the others as it is.

    Raises UsageError.
    """
    if metric in others:
        return metric
    column = f"{metric.removesuffix('_bytes')}_bytes"
    if column not in METRICS:
        names = ", ".join(name.removesuffix("_bytes") for name in (*METRICS, *others))
        raise UsageError(f"unknown metric {metric!r}: use one of {names}", "metric")
    return column


def parse_device_memory(given: str | int | None, argument: str) -> int | None:
    """A device's memory in bytes, as parse_size reads it."""
    return parse_size(given, argument, "device memory")


def parse_size(given: str | int | None, argument: str, what: str = "size") -> int | None:
    """Bytes, from a number of them or a text such as 16GiB or 95G.

    what: says in errors what the bytes are of. Raises UsageError.
    """
    if given is None:
        return None
    size: float | None = size_bytes(given) if isinstance(given, str) else given
    if size is None:
        raise UsageError(f"invalid {what} {given!r}: use a size such as 16GiB or 95G", argument)
    if not 0 < int(size) <= _MOST_BYTES:
        raise UsageError(f"invalid {what} {given}: no device has so many bytes", argument)
    return round(size)


def size_bytes(text: str) -> float | None:
    """The bytes of a size; None if the text is none. The one grammar of sizes that users give.

    >>> size_bytes("64MiB"), size_bytes("1.5 G"), size_bytes("10 B"), size_bytes("64 MB")
    (67108864.0, 1610612736.0, 10.0, None)
    """
    match = _SIZE.fullmatch(text)
    return float(match[1]) * UNITS[f"{match[2]}iB" if match[2] else "B"] if match else None


# Which name a user meant who misspelt it.


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The question whether the known name most like it was meant; None if none is like it."""
    found = get_close_matches(name, sorted(known), 1)
    return f"did you mean {found[0]!r}?" if found else None
