"""How findings are told: in a line, in full, all together."""

from collections.abc import Iterator, Sequence
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
        case Grade.between if finding.low_bytes == finding.high_bytes:
            return f"{saved} (expected)"
        case Grade.between if finding.low_bytes is not None and finding.high_bytes is not None:
            least, most = human_bytes(finding.low_bytes), human_bytes(finding.high_bytes)
            return f"{saved} (between -{least} and -{most})"
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


def in_full(findings: Sequence[Finding]) -> Iterator[list[str]]:
    """Of each finding the headline, the line to edit, what to write there, and why, a text each.

    One that is told instead of an earlier one begins with "or", and has no reason of its own if
    it is the same.
    """
    reasons: dict[str | None, str] = {}
    for finding in findings:
        before = None if finding.choice is None else reasons.get(finding.choice)
        reasons[finding.choice] = finding.why
        yield [
            headline(finding) if before is None else f"or {headline(finding)}",
            *([finding.source] if finding.source is not None else []),
            f"write: {finding.write}",
            *([f"why: {finding.why}"] if finding.why != before else []),
        ]


def together_words(followed: Sequence[Finding], together: "Replayed") -> str:
    """What several findings leave of the peak."""
    grades = {finding.grade for finding in followed}
    about = "about " if Grade.between in grades else ""
    least = "at least " if Grade.at_most in grades else about
    mark = "≈" if Grade.estimated in grades else ""
    return f"These {len(followed)} together leave {least}{mark}{human_bytes(together.peak_bytes)}."
