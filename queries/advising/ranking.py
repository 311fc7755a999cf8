"""In which order findings are told, and which of them can be followed at once."""

from collections.abc import Sequence

from .finding import Finding, Grade


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """What was measured on recompiled programs first, then bounds, then facts; the largest first.

    Findings that exclude each other stand together, where the first of them belongs.
    """
    best: dict[object, tuple[int, int]] = {}
    for number, finding in enumerate(findings):
        key = _choice(number, finding)
        best[key] = min(best.get(key, _rank(finding)), _rank(finding))
    order = {id(each): best[_choice(number, each)] for number, each in enumerate(findings)}
    return sorted(findings, key=lambda each: (order[id(each)], each.choice or "", _rank(each)))


def alternatives_left_out(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Of findings that exclude each other, the first."""
    first: dict[object, Finding] = {}
    for number, finding in enumerate(findings):
        first.setdefault(_choice(number, finding), finding)
    return tuple(first.values())


def to_follow(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those with a saving that can be replayed together: no two are about one buffer."""
    followed: list[Finding] = []
    touched: set[int] = set()
    for finding in alternatives_left_out(findings):
        if finding.saving_bytes is not None and touched.isdisjoint(finding.value_ids):
            followed.append(finding)
            touched.update(finding.value_ids)
    return tuple(followed)


def _choice(number: int, finding: Finding) -> object:
    return number if finding.choice is None else finding.choice


def _rank(finding: Finding) -> tuple[int, int]:
    if finding.saving_bytes is None:
        return 2, -(finding.high_bytes or 0)
    return int(finding.grade is Grade.at_most), -finding.saving_bytes
