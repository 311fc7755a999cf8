"""What to change first in a program, and by how much its peak would fall."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .advising.above_bound import packing
from .advising.asked_program import Program, read_program
from .advising.copied_donations import copied_donations
from .advising.finding import Finding, Grade
from .advising.gathered import gathered
from .advising.idle import idle
from .advising.narrower import narrower
from .advising.not_donated import not_donated
from .advising.own_copies import own_copies
from .advising.padding import padding
from .advising.rematerialise import rematerialise
from .advising.replay import Change, Replayed, replay, together
from .advising.space_layout import read_layout
from .advising.unrolled import unrolled
from .advising.unused_donations import unused_donations
from .catalogue import statement
from .find_module import find_module
from .result import Rows

# In the order in which equal savings are told.
_FINDERS: tuple[Callable[[Program], list[Finding]], ...] = (
    not_donated,
    copied_donations,
    unused_donations,
    rematerialise,
    unrolled,
    narrower,
    idle,
    gathered,
    own_copies,
    padding,
    packing,
)


@dataclass(frozen=True)
class Advice:
    """What to change in a module, the largest saving first; facts without one come last.

    peak: the peak of the memory space; self_check_bytes: what the replay of the unchanged program
    has more than the stored peak, which says how far to trust the replays: 0 if they agree.
    together: the peak if all findings with a saving are followed at once; consists_of: what the
    peak consists of, category and bytes.
    """

    caption: str
    peak: Replayed
    self_check_bytes: int
    findings: tuple[Finding, ...]
    together: Replayed
    consists_of: Rows

    @property
    def rows(self) -> Rows:
        """A row a finding: what a program reads."""
        return Rows(pa.Table.from_pylist(list(map(_row, self.findings)), _SCHEMA), self.caption)


def advise(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
) -> Advice:
    """What to change in a module, by the peak of a memory space.

    Raises UsageError also if the dump has no live ranges, which a replay needs.
    """
    found = find_module(store, module, run)
    layout = read_layout(store, found.module_id, memory_space)
    if layout is None:
        raise UsageError(
            f"{found.caption} has no live ranges in memory space {memory_space}, and advice is"
            " worked out from them: dump with --xla_dump_hlo_as_text",
            "module",
        )
    program = read_program(store, found.module_id, found.dump_id, layout)
    findings = [finding for finder in _FINDERS for finding in finder(program)]
    findings.sort(key=_rank)
    changes = _followed(findings)
    unchanged = replay(layout, Change())
    return Advice(
        found.caption,
        Replayed(layout.peak_bytes, layout.peak_time),
        unchanged.peak_bytes - layout.peak_bytes,
        tuple(findings),
        replay(layout, together(changes)) if changes else unchanged,
        Rows(store.rows(statement("advise_consists_of"), [found.module_id, memory_space])),
    )


def _rank(finding: Finding) -> tuple[int, int]:
    """What was measured on recompiled programs comes first, then bounds, then facts."""
    if finding.saving_bytes is None:
        return 2, -(finding.high_bytes or 0)
    return int(finding.grade is Grade.at_most), -finding.saving_bytes


def _followed(findings: Iterable[Finding]) -> list[Change]:
    """The changes of all findings at once; of those that exclude each other, of the first."""
    changes: list[Change] = []
    chosen: set[str] = set()
    for finding in findings:
        if finding.saving_bytes is None or finding.change is None:
            continue
        if finding.choice not in chosen:
            changes.append(finding.change)
            chosen |= {finding.choice} if finding.choice is not None else set()
    return changes


_SCHEMA = pa.schema(
    [
        ("saving_bytes", pa.int64()),
        ("low_bytes", pa.int64()),
        ("high_bytes", pa.int64()),
        ("grade", pa.string()),
        ("tolerance", pa.float64()),
        ("finding", pa.string()),
        ("title", pa.string()),
        ("source", pa.string()),
        ("write", pa.string()),
        ("why", pa.string()),
        ("value_ids", pa.list_(pa.int64())),
    ]
)


def _row(finding: Finding) -> dict[str, object]:
    return {
        "saving_bytes": finding.saving_bytes,
        "low_bytes": finding.low_bytes,
        "high_bytes": finding.high_bytes,
        "grade": finding.grade.value,
        "tolerance": finding.tolerance,
        "finding": finding.kind,
        "title": finding.title,
        "source": finding.source,
        "write": finding.write,
        "why": finding.why,
        "value_ids": list(finding.value_ids),
    }
