"""The policy of `check`: from its options, and from limits.toml."""

import os
from collections.abc import Sequence

from ...schema.errors import UsageError
from .thresholds import DEFAULT_GROWTH, DEFAULT_LOST_DONATION, Limits, Policy, parse_growth


def read_policy(
    max_growth: Sequence[str] | None = None, limits: str | os.PathLike[str] | None = None
) -> Policy:
    """The policy of these growths, 1% if there are none, and of a TOML file.

    Raises UsageError.
    """
    try:
        growth = tuple(map(parse_growth, max_growth)) if max_growth else DEFAULT_GROWTH
    except ValueError as error:
        raise UsageError(str(error), "max_growth") from None
    default = Limits(max_growth=growth, lost_donation=DEFAULT_LOST_DONATION)
    if limits is None:
        return Policy(default)
    # Its pydantic takes as long to import as a short query takes.
    from .limits_file import read_limits

    return read_limits(limits, default)
