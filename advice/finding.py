"""A finding: what to change, what it would save, and how and in which order it is told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ..schema.readable import human_bytes

if TYPE_CHECKING:
    from .asked_program import Change

# A finding: what to change, and by how much the peak would fall.


class Grade(StrEnum):
    """How sure the figure of a finding is, measured on recompiled programs: `docs/advise.md`."""

    exact = "exact"
    expected = "expected"
    between = "between"
    at_most = "at most"
    estimated = "estimated"
    fact = "fact"


@dataclass(frozen=True)
class Options:
    """What makes the change when the program is compiled: arguments to donate, flags of XLA, or, of
    a function that builds the program, a keyword with one of these values.
    """

    donated: tuple[str, ...] = ()
    flags: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    kind: such as `not donated`; title: what to do, in a line. saving_bytes: how much lower the
    replayed peak is; None of a fact, which promises nothing. low_bytes and high_bytes: the range
    that is told, the same if there is none. tolerance: how far the new peak may be from the one
    told, as a part of it. value_ids: the buffers that it is about, the largest first. source:
    the line to edit, as file:line; None if nothing says it. write: what to write there.
    why: the evidence, in a sentence or two. change: what was replayed; None of a fact. choice: of
    the findings with the same choice only one can be followed; None if it stands alone.
    alone_bytes: where two edits are told together, such as to carry and to donate, what the last
    brings alone. is_new_order: the instructions stay, in another order. reserved_low_bytes and
    reserved_high_bytes: how much less XLA reserves, which is the peak and what packing adds; None
    where that is not known, and no least of a bound. options: what makes the change when the
    program is compiled; None if the program must be changed.
    """

    kind: str
    title: str
    grade: Grade
    write: str
    why: str
    value_ids: tuple[int, ...]
    source: str | None = None
    saving_bytes: int | None = None
    low_bytes: int | None = None
    high_bytes: int | None = None
    tolerance: float | None = None
    change: "Change | None" = None
    choice: str | None = None
    alone_bytes: int | None = None
    is_new_order: bool = False
    reserved_low_bytes: int | None = None
    reserved_high_bytes: int | None = None
    options: Options | None = None

    @property
    def ranked_by(self) -> str | None:
        """By which figure of the program it is told and ranked: a column of `module_memory`."""
        if self.saving_bytes is None:
            return None
        return "peak_bytes" if self.reserved_high_bytes is None else "reserved_bytes"


def with_true_range(finding: Finding) -> Finding:
    """The finding, in which a bound has no least saving, and a range of one figure is no range."""
    if finding.grade is Grade.at_most:
        return replace(finding, low_bytes=None)
    if finding.grade is Grade.between and finding.low_bytes == finding.high_bytes:
        return replace(finding, grade=Grade.expected)
    return finding


# In which order findings are told, and which of them can be followed at once.


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """What was measured on recompiled programs first, by the least that it saves of what is
    reserved, then of the peak; then bounds, then facts.

    Findings that exclude each other stand together, where the first of them belongs. Equal ones
    stay in order.
    """
    # Of each choice its best rank, and where it comes first.
    places: dict[object, tuple[tuple[int, int, int], int]] = {}
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
        if finding.saving_bytes is None or finding.change is None:
            continue
        if touched.isdisjoint(finding.value_ids):
            followed.append(finding)
            touched.update(finding.value_ids)
    return tuple(followed)


def _choice(number: int, finding: Finding) -> object:
    return number if finding.choice is None else finding.choice


def _rank(finding: Finding) -> tuple[int, int, int]:
    if finding.saving_bytes is None:
        return 2, 0, 0
    # What may save nothing comes after what surely saves something.
    sure = finding.saving_bytes if finding.low_bytes is None else finding.low_bytes
    return int(finding.grade is Grade.at_most), -(finding.reserved_low_bytes or 0), -sure


# How findings are told: in a line, in full, all together.


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
            least, most = human_bytes(finding.low_bytes), human_bytes(finding.high_bytes)
            return f"{saved} (between -{least} and -{most})"
        case grade:
            return f"{saved} ({grade.value})"


def reserved_words(finding: Finding) -> str:
    """By how much less is reserved, such as `-1.50 GiB to -2.00 GiB`; "" if that is not known."""
    if finding.reserved_high_bytes is None:
        return ""
    most = f"-{human_bytes(finding.reserved_high_bytes)}"
    if finding.reserved_low_bytes is None:
        return f"at most {most}"
    least = f"-{human_bytes(finding.reserved_low_bytes)}" if finding.reserved_low_bytes else "0"
    return most if least == most else f"{least} to {most}"


def headline(finding: Finding) -> str:
    """The saving and what to do."""
    saved = saved_words(finding)
    return f"{saved}: {finding.title}" if saved else finding.title


def in_a_line(finding: Finding) -> str:
    """The saving, what to do, where, and what to write."""
    where = f" ({finding.source})" if finding.source is not None else ""
    return f"{headline(finding)}{where}: {finding.write}"


def in_full(findings: Sequence[Finding]) -> list[list[str]]:
    """Of each finding the headline, what is reserved less, the line to edit, what to write there,
    and why, a text each.

    Those that can be told instead of an earlier one stand with it, after "or".
    """
    told: dict[object, list[str]] = {}
    for number, finding in enumerate(findings):
        earlier = told.get(_choice(number, finding))
        if earlier is not None:
            earlier.append(f"or {headline(finding)}; write: {finding.write}")
            continue
        told[_choice(number, finding)] = [
            headline(finding),
            *([f"reserved: {reserved}"] if (reserved := reserved_words(finding)) else []),
            *([finding.source] if finding.source is not None else []),
            f"write: {finding.write}",
            f"why: {finding.why}",
        ]
    return list(told.values())
