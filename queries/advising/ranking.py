"""In which order findings are told, and which of them can be followed at once."""

from collections.abc import Sequence

from .finding import Finding, Grade


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """What was measured on recompiled programs first, then bounds, then facts; the largest first.

    Findings that exclude each other stand together, where the first of them belongs. Equal ones
    stay in order.
    """
    # Of each choice its best rank, and where it comes first.
    places: dict[object, tuple[tuple[int, int], int]] = {}
    for number, finding in enumerate(findings):
        key, rank = _choice(number, finding), _rank(finding)
        best, first = places.get(key, (rank, number))
        places[key] = min(best, rank), first
    order = {id(each): places[_choice(number, each)] for number, each in enumerate(findings)}
    return sorted(findings, key=lambda each: (order[id(each)], _rank(each)))


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
