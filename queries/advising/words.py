"""How findings are told: in a line, in full, all together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..cells import human_bytes
from .finding import Finding, Grade

if TYPE_CHECKING:
    from .replay import Replayed


def saved_words(finding: Finding) -> str:
    """By how much the peak falls, with the grade, such as `-2.00 GiB (exact)`; "" of a fact."""
    if finding.saving_bytes is None:
        return ""
    saved = f"-{human_bytes(finding.saving_bytes)}"
    match finding.grade:
        case Grade.expected if finding.tolerance is not None:
            return f"{saved} (expected, ± {finding.tolerance:.0%} of the new peak)"
        case Grade.estimated:
            return f"≈{saved} (estimated)"
        case Grade.between if finding.low_bytes is not None and finding.high_bytes is not None:
            return f"-{human_bytes(finding.low_bytes)} to -{human_bytes(finding.high_bytes)}"
        case grade:
            return f"{saved} ({grade.value})"


def headline(finding: Finding) -> str:
    """The saving and what to do."""
    saved = saved_words(finding)
    return f"{saved}: {finding.title}" if saved else finding.title


def in_a_line(finding: Finding) -> str:
    """The saving, what to do, where, and what to write."""
    where = f" ({finding.source})" if finding.source is not None else ""
    return f"{headline(finding)}{where}: {finding.write}"


def in_full(finding: Finding) -> list[str]:
    """The headline, the line to edit, what to write there, and why."""
    return [
        headline(finding),
        *([finding.source] if finding.source is not None else []),
        f"write: {finding.write}",
        f"why: {finding.why}",
    ]


def together_words(followed: Sequence[Finding], together: "Replayed") -> str:
    """What several findings leave of the peak."""
    grades = {finding.grade for finding in followed}
    least = "at least " if Grade.at_most in grades else ""
    mark = "≈" if Grade.estimated in grades else ""
    return (
        f"All {len(followed)} with a saving together leave"
        f" {least}{mark}{human_bytes(together.peak_bytes)}."
    )
