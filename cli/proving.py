"""`memhouse advise --recompile`: predicted savings next to those of recompiled programs."""

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
# Relative difference of two peaks that count as equal.
_TOLERANCE = 0.001


@dataclass(frozen=True)
class Proof:
    """The program's memory before and after an edit.

    Attributes:
        edit: options of the compiler, or a keyword and its value.
        finding: the finding that recommends the edit.
        after: None if the edited program cannot be compiled.
        problem: the error of the compiler.
    """

    edit: str
    finding: Finding | None
    before: Memory
    after: Memory | None = None
    problem: str | None = None

    @property
    def is_confirmed(self) -> bool | None:
        """Whether the saving is within the predicted range, give or take the tolerance."""
        finding = self.finding
        if self.after is None or finding is None or finding.saving_bytes is None:
            return None
        predicted = finding.saving_bytes
        low = predicted if finding.low_bytes is None else finding.low_bytes
        if finding.grade is Grade.at_most:
            low = 0
        high = predicted if finding.high_bytes is None else finding.high_bytes
        tolerance = max(finding.tolerance or 0, _TOLERANCE) * self.after.peak_bytes
        saved = self.before.peak_bytes - self.after.peak_bytes
        return low - tolerance <= saved <= high + tolerance


def prove(
    findings: Sequence[Finding],
    program: Asked,
    topology: str,
    values: Mapping[str, Sequence[Value]],
) -> Iterator[Proof]:
    """Compile the program unchanged, then with each edit by compiler options or by a keyword.

    Args:
        values: values by keyword, the program's own first; each other value is an edit, and
            belongs to the first finding that names it.

    Raises:
        FitError: the unchanged program cannot be compiled.
    """
    edits: list[tuple[str, Finding | None, dict[str, Any]]] = []
    for finding in findings:
        options = finding.options
        if options is not None and finding.saving_bytes and (options.donated or options.flags):
            edit = options.flags or f"donate {', '.join(options.donated)}"
            edits.append((edit, finding, {"flags": options.flags, "donated": options.donated}))
    for name, keyword_values in values.items():
        for value in keyword_values[1:]:
            matches = (f for f in findings if f.options and str(value) in f.options.values)
            edits.append((f"{name}={value}", next(matches, None), {"keywords": {name: value}}))
    if not edits:
        return
    before = compiled_memory(program, topology, tool_version=__version__)
    for edit, edit_finding, change in edits:
        try:
            after = compiled_memory(program, topology, tool_version=__version__, **change)
        except FitError as error:
            yield Proof(edit, edit_finding, before, problem=str(error))
        else:
            yield Proof(edit, edit_finding, before, after)


def print_proofs(
    advice: Advice, build: str, topology: str, grid: Sequence[str], output: Format
) -> None:
    """Compile the program with each edit, and print a row per edit."""
    target, function = parse_target(build)
    values = {}
    for name, axis in parse_axes([], grid, 1).items():
        if isinstance(axis, range):
            raise UsageError(f"{name}: a range is only for `memhouse fit`; list values", "grid")
        values[name] = [axis] if isinstance(axis, Value) else list(axis)
    axes = {name: keyword_values[0] for name, keyword_values in values.items()}
    program = Asked(target, function, axes, [topology])
    with ending_well():
        proofs = list(prove(advice.findings, program, topology, values))
    if proofs:
        built, advised = proofs[0].before.peak_bytes, advice.peak.peak_bytes
        if abs(built - advised) > _TOLERANCE * advised:
            print_note(
                f"another program is built: its peak is {human_bytes(built)}, that of the module"
                f" {human_bytes(advised)}"
            )
    else:
        print_note("no finding can be followed by compiler options alone: nothing to recompile")
    for proof in proofs:
        if proof.problem:
            print_note(proof.problem)
    table = pa.Table.from_pylist(list(map(_row, proofs)), _SCHEMA)
    if output == "table":
        print_text("")
        columns = ["finding", "edit", "told", "proved_saving_bytes", "proved_reserved_bytes"]
        table = table.select([*columns, "holds"])
    print_rows(table, output)


def _row(proof: Proof) -> dict[str, object]:
    saved = reserved = None
    if proof.after is not None:
        saved = proof.before.peak_bytes - proof.after.peak_bytes
        reserved = proof.before.reserved_bytes - proof.after.reserved_bytes
    finding = proof.finding
    return {
        "finding": finding and finding.kind,
        "edit": proof.edit,
        "told": finding and saved_words(finding),
        "saving_bytes": finding and finding.saving_bytes,
        "proved_saving_bytes": saved,
        "reserved_low_bytes": finding and finding.reserved_low_bytes,
        "proved_reserved_bytes": reserved,
        "holds": proof.is_confirmed,
        "title": finding and finding.title,
        "problem": proof.problem,
    }
