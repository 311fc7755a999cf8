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
    sources = {"max_growth": "--max-growth"} if max_growth else {}
    if require_baseline:
        sources["new"] = "--require-baseline"
    if limits is None:
        return Policy(default, requires_baseline=require_baseline, sources=sources)
    # Its pydantic takes as long to import as a short query takes.
    from .limits_file import read_limits

    policy = read_limits(limits, default)
    # The file's growth holds, and the option's new programs.
    growth = {name: source for name, source in sources.items() if name == "max_growth"}
    return replace(
        policy,
        requires_baseline=require_baseline,
        sources=growth | policy.sources | {n: s for n, s in sources.items() if n == "new"},
    )
