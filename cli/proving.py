"""`memhouse advise --recompile`: what was told, beside what a compiler makes of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .. import __version__
from ..advice.advice import Advice
from ..advice.finding import Finding, Grade, saved_words
from ..compile.fit_axes import Asked, Value, parse_axes, parse_target
from ..compile.fit_compiler import FitError
from ..compile.prove import Memory, compiled_memory
from ..compile.record import ending_well
from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from .render.text import Format, print_note, print_rows, print_text

_SCHEMA = pa.schema(
    [
        ("finding", pa.string()),
        ("edit", pa.string()),
        ("told", pa.string()),
        ("saving_bytes", pa.int64()),
        ("proved_saving_bytes", pa.int64()),
        ("reserved_low_bytes", pa.int64()),
        ("proved_reserved_bytes", pa.int64()),
        ("holds", pa.bool_()),
        ("title", pa.string()),
        ("problem", pa.string()),
    ]
)
# As far apart the program that is built may be from the one that is advised.
_SAME = 0.001


# What is told, beside what became of it.

_EDGE = 0.001


@dataclass(frozen=True)
class Proof:
    """An edit, the finding that it follows, and the program's memory before and after it.

    problem: why it could not be compiled so; then there is no `after`.
    """

    edit: str
    finding: Finding | None
    before: Memory
    after: Memory | None = None
    problem: str | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the peak fell as told: within the range, or the tolerance of the new peak."""
        if self.after is None or self.finding is None or self.finding.saving_bytes is None:
            return None
        told = self.finding.saving_bytes
        least = told if self.finding.low_bytes is None else self.finding.low_bytes
        most = told if self.finding.high_bytes is None else self.finding.high_bytes
        if self.finding.grade is Grade.at_most:
            least = 0
        apart = max(self.finding.tolerance or 0, _EDGE) * self.after.peak_bytes
        saved = self.before.peak_bytes - self.after.peak_bytes
        return least - apart <= saved <= most + apart


def prove(
    findings: Sequence[Finding], asked: Asked, topology: str, values: Mapping[str, Sequence[Value]]
) -> Iterator[Proof]:
    """Compile the program as it is, and once for each finding that options of compiling follow, and
    for each further value of a keyword.

    A value follows the first finding that names it. Raises FitError if the program cannot be
    compiled as it is.
    """
    edits: list[tuple[str, Finding | None, dict[str, Any]]] = []
    for finding in findings:
        options = finding.options
        if options is not None and finding.saving_bytes and (options.donated or options.flags):
            edit = options.flags or f"donate {', '.join(options.donated)}"
            edits.append((edit, finding, {"flags": options.flags, "donated": options.donated}))
    for name, each in values.items():
        for value in each[1:]:
            follows = (f for f in findings if f.options and str(value) in f.options.values)
            edits.append((f"{name}={value}", next(follows, None), {"keywords": {name: value}}))
    if not edits:
        return
    before = compiled_memory(asked, topology, tool_version=__version__)
    for edit, followed, change in edits:
        try:
            after = compiled_memory(asked, topology, tool_version=__version__, **change)
        except FitError as error:
            yield Proof(edit, followed, before, problem=str(error))
            continue
        yield Proof(edit, followed, before, after)


def print_proofs(
    advice: Advice, program: str, topology: str, grid: Sequence[str], output: Format
) -> None:
    """Compile the program with each edit that is known, and print a row of each."""
    target, function = parse_target(program)
    values = {}
    for name, axis in parse_axes([], grid, 1).items():
        if isinstance(axis, range):
            raise UsageError(f"{name}: `memhouse fit` searches a range; name values here", "grid")
        values[name] = [axis] if isinstance(axis, Value) else list(axis)
    asked = Asked(target, function, {name: each[0] for name, each in values.items()}, [topology])
    with ending_well():
        proofs = list(prove(advice.findings, asked, topology, values))
    if not proofs:
        print_note("no finding can be followed by options of the compiler alone: nothing to prove")
    for problem in filter(None, [_other_program(advice, proofs), *(p.problem for p in proofs)]):
        print_note(problem)
    table = pa.Table.from_pylist(list(map(_row, proofs)), _SCHEMA)
    if output == "table":
        print_text("")
        told = ["finding", "edit", "told", "proved_saving_bytes", "proved_reserved_bytes", "holds"]
        table = table.select(told)
    print_rows(table, output)


def _other_program(advice: Advice, proofs: list[Proof]) -> str | None:
    """That the function builds another program than the one that is advised, if it does."""
    told = advice.peak.peak_bytes
    for proof in proofs:
        built = proof.before.peak_bytes
        if abs(built - told) > _SAME * told:
            return (
                f"another program is built: its peak is {human_bytes(built)} as it is, and that of"
                f" the module {human_bytes(told)}"
            )
    return None


def _row(proof: Proof) -> dict[str, object]:
    after: Memory | None = proof.after
    saved = reserved = None
    if after is not None:
        saved = proof.before.peak_bytes - after.peak_bytes
        reserved = proof.before.reserved_bytes - after.reserved_bytes
    finding = proof.finding
    return {
        "finding": finding and finding.kind,
        "edit": proof.edit,
        "told": finding and saved_words(finding),
        "saving_bytes": finding and finding.saving_bytes,
        "proved_saving_bytes": saved,
        "reserved_low_bytes": finding and finding.reserved_low_bytes,
        "proved_reserved_bytes": reserved,
        "holds": proof.holds,
        "title": finding and finding.title,
        "problem": proof.problem,
    }
