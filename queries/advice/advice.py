"""The advice for a program: what to change first, and by how much its peak would fall."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...schema.errors import UsageError
from ...schema.readable import human_bytes
from ...schema.stores.base import Store
from ...xla.errors import DumpError
from ..catalogue import statement
from ..find_module import FoundModule
from ..owners import owners
from ..result import Result, Rows
from .asked_program import Program, read_layout, read_program
from .finding import (
    Finding,
    Grade,
    alternatives_left_out,
    in_full,
    ranked,
    to_follow,
    together_words,
)
from .findings import findings_of
from .replay import Change, Replayed, replay, together
from .save import save

_FIRST = 3
# What a notebook shows of a finding; the other columns are for programs.
_TOLD = ["saving_bytes", "grade", "title", "source", "write"]
_LINES = 4
# A line that makes less of the peak is not named.
_LARGE = 0.05
_NO_CHANGE = "No change is known that would surely lower it."
_NOT_KEPT = (
    "What its instructions do was not kept by the memhouse that stored it: ingest the dump again"
    " for advice on donation, checkpoints, narrower types and padding."
)
_NO_OWNERS = (
    "The owners of its values are not known, without which most changes cannot be told; the"
    " messages in dump_files say why."
)


@dataclass(frozen=True, repr=False)
class Advice(Result):
    """What to change in a module: first what was measured, the largest saving first, then bounds.

    rows: a row a finding, with saving_bytes (None of a fact), low_bytes, high_bytes, grade,
    tolerance, finding (its kind), title, source, write, why, value_ids; see Finding.
    peak: the peak of the memory space; self_check_bytes: what the replay of the unchanged program
    has more than the stored peak, which says how far to trust the replays: 0 if they agree.
    followed: the findings with a saving that can be replayed together; together: the peak then.
    consists_of: what the peak consists of: category, size_bytes, buffers; owners: the lines that
    make most of it, as `owners` gives them. is_estimated: the dump is HLO text alone, and all
    sizes are estimates. has_owners: whether the owners of values are known, without which most
    changes cannot be told. has_program: whether it is known what instructions do; if not, an older
    memhouse stored the module, and donation, checkpoints, narrower types and padding are left out.
    """

    rows: Rows
    peak: Replayed
    self_check_bytes: int
    findings: tuple[Finding, ...]
    followed: tuple[Finding, ...]
    together: Replayed
    consists_of: Rows
    owners: Rows
    is_estimated: bool
    has_owners: bool
    has_program: bool

    def tables(self) -> Sequence[Rows]:
        """The findings, what the peak consists of, and who makes most of it."""
        findings = replace(self.rows, table=self.rows.table.select(_TOLD))
        return (findings, self.consists_of, self.owners)

    def sentences(self) -> Sequence[str]:
        """The peak and its parts, and what following the findings together gives."""
        if len(self.followed) < 2:
            return (self.heading,)
        return (self.heading, together_words(self.followed, self.together))

    @property
    def first(self) -> tuple[Finding, ...]:
        """The three findings to follow first, of those that say what they can save."""
        told = alternatives_left_out([each for each in self.findings if _can_save(each)])
        return told[:_FIRST]

    @property
    def heading(self) -> str:
        """The peak and its parts, in a sentence, and that nothing would lower it if so."""
        mark = "≈" if self.is_estimated else ""
        parts = ", ".join(
            f"{mark}{human_bytes(row['size_bytes'])} of {row['category']}s"
            for row in self.consists_of.arrow().to_pylist()
        )
        peak = f"{mark}{human_bytes(self.peak.peak_bytes)}"
        told = [f"The peak is {peak} at time {self.peak.peak_time}"]
        told[0] += f": {parts}." if parts else "."
        if self.self_check_bytes:
            told.append(
                "The replay of the unchanged program differs by"
                f" {human_bytes(abs(self.self_check_bytes))}."
            )
        if all(finding.saving_bytes is None for finding in self.findings):
            told.append(_NO_CHANGE if self.has_owners else _NO_OWNERS)
            told += _made_by(self.owners, self.peak.peak_bytes, mark)
        if not self.has_program:
            told.append(_NOT_KEPT)
        return " ".join(told)

    def __str__(self) -> str:
        """The advice as the command prints it, but for the width of its lines."""
        told = [self.heading]
        for number, (first, *lines) in enumerate(in_full(self.findings), start=1):
            told.append("\n".join([f"{number:>2}. {first}", *(f"    {line}" for line in lines)]))
        if len(self.followed) > 1:
            told.append(together_words(self.followed, self.together))
        return "\n\n".join(told)


def advice_of(
    store: Store, found: FoundModule, memory_space: int, saving_bytes: int | None
) -> Advice:
    """What to change in a module, by the peak of a memory space.

    With `saving_bytes` what to compute again is chosen for this saving, and is told first. Without
    owners of values, only packing and the programs beside it are told of. Raises UsageError if the
    dump has no live ranges, which a replay needs, or shapes that nobody can read, or if it has no
    owners and a saving is wanted.
    """
    layout = read_layout(store, found.module_id, memory_space)
    if layout is None:
        raise UsageError(
            f"nothing of {found.caption} is known to live in memory space {memory_space}: advice is"
            " worked out from live ranges, for which XLA dumps with --xla_dump_hlo_as_text",
            "module",
        )
    if saving_bytes is not None and not layout.is_followed:
        raise UsageError(
            f"nothing tells what to save in {found.caption}: the owners of values are not known",
            "module",
        )
    program = read_program(store, found.module_id, found.dump_id, layout)
    try:
        if saving_bytes is not None and program.hlo is None:
            raise UsageError(
                f"nothing tells what to save in {found.caption}: an older memhouse did not keep"
                " what its instructions do: ingest the dump again",
                "module",
            )
        findings = _findings(program, saving_bytes)
    except DumpError as error:
        raise UsageError(f"{found.caption} has what no rule can read: {error}", "module") from None
    followed = to_follow(findings)
    changes = [finding.change for finding in followed if finding.change is not None]
    unchanged = replay(layout, Change())
    parts = store.rows(statement("advise.consists_of"), [found.module_id, memory_space])
    return Advice(
        Rows(
            pa.Table.from_pylist(list(map(_row, findings)), _SCHEMA),
            found.caption,
            "no change is known that would lower the peak",
        ),
        Replayed(layout.peak_bytes, layout.peak_time),
        unchanged.peak_bytes - layout.peak_bytes,
        findings,
        followed,
        replay(layout, together(changes)) if changes else unchanged,
        Rows(parts, "what the peak consists of"),
        owners(store, found.module_id, run=found.run_id, memory_space=memory_space, limit=_LINES),
        program.origin == "estimated",
        layout.is_followed,
        program.hlo is not None or not layout.is_followed,
    )


def _findings(program: Program, saving_bytes: int | None) -> tuple[Finding, ...]:
    """All findings in the order in which they are told."""
    chosen = [] if saving_bytes is None else save(program, saving_bytes)
    # What never holds a byte has nothing to lower.
    has_peak = bool(program.layout.peak_bytes)
    others = findings_of(program, with_computed_again=saving_bytes is None) if has_peak else ()
    findings = (*chosen, *ranked(list(others)))
    return tuple(map(_as_estimate, findings)) if program.origin == "estimated" else findings


def _made_by(lines: Rows, peak_bytes: int, mark: str) -> list[str]:
    """A sentence on the lines that make most of the peak."""
    sizes: Counter[str] = Counter()
    for row in lines.arrow().to_pylist():
        if _is_line(row["source"]):
            sizes[row["source"]] += row["counted_bytes"]
    made = [
        f"{mark}{human_bytes(size)} at {line}"
        for line, size in sizes.most_common()
        if size > _LARGE * peak_bytes
    ]
    return [f"The lines that make most of it: {', '.join(made)}."] if made else []


def _is_line(source: str) -> bool:
    """Not the arguments, and not the rest of the owners."""
    return ":" in source and not source.startswith("(")


def _as_estimate(finding: Finding) -> Finding:
    """The same, graded as an estimate: grades were measured with the places that XLA gave."""
    if finding.saving_bytes is None:
        return finding
    return replace(finding, grade=Grade.estimated, tolerance=None)


def _can_save(finding: Finding) -> bool:
    return finding.saving_bytes is not None or bool(finding.high_bytes)


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
