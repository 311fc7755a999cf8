"""A finding: what to change, and by how much the peak would fall."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .replay import Change


class Grade(StrEnum):
    """How sure the figure of a finding is, measured on recompiled programs: `docs/advise.md`."""

    exact = "exact"
    expected = "expected"
    between = "between"
    at_most = "at most"
    estimated = "estimated"
    fact = "fact"


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    kind: such as `not donated`; title: what to do, in a line. saving_bytes: how much lower the
    replayed peak is; None of a fact, which promises nothing. low_bytes and high_bytes: the range
    that is told, the same if there is none. tolerance: how far the new peak may be from the one
    told, as a part of it. value_ids: the buffers that it is about, the largest first. source:
    the line to edit, as file:line; None if nothing says it. write: what to write there.
    why: the evidence, in a sentence or two. change: what was replayed; of a fact, for the most
    that it may bring (high_bytes). choice: of the findings
    with the same choice only one can be followed; None if it stands alone.
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
