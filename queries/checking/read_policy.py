"""The policy of `check`: from its options, and from limits.toml."""

import os
from collections.abc import Sequence
from dataclasses import replace

from ...schema.errors import UsageError
from .policy import DEFAULT_GROWTH, DEFAULT_LOST_DONATION, Limits, Policy, parse_growth


def read_policy(
    max_growth: Sequence[str] | None = None,
    limits: str | os.PathLike[str] | None = None,
    *,
    require_baseline: bool = False,
) -> Policy:
    """The policy of these growths, 1% if there are none, and of a TOML file.

    With `require_baseline` each new program fails. Raises UsageError.
    """
    try:
        growth = tuple(map(parse_growth, max_growth)) if max_growth else DEFAULT_GROWTH
    except ValueError as error:
        raise UsageError(str(error), "max_growth") from None
    default = Limits(max_growth=growth, lost_donation=DEFAULT_LOST_DONATION)
    policy = Policy(default)
    if limits is not None:
        # Its pydantic takes as long to import as a short query takes.
        from .limits_file import read_limits

        policy = read_limits(limits, default)
    option = {"max_growth": "--max-growth"} if max_growth else {}
    required = {"new": "--require-baseline"} if require_baseline else {}
    sources = option | policy.sources | required
    return replace(policy, requires_baseline=require_baseline, sources=sources)
