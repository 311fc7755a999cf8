"""`memhouse advise --prove`: what was told, beside what a compiler makes of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .. import __version__
from ..ingest.fit import Asked, FitError
from ..ingest.fit_axes import parse_target
from ..ingest.prove import Memory, compiled_memory
from ..ingest.record import ending_well
from ..queries.advice.advice import Advice
from ..queries.advice.finding import Finding, Grade, saved_words
from ..schema.readable import human_bytes
from .render.text import Format, print_note, print_rows, print_text

_SCHEMA = pa.schema(
    [
        ("finding", pa.string()),
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
    """A finding, and the program's memory before and after it was followed.

    problem: why it could not be compiled so; then there is no `after`.
    """

    finding: Finding
    before: Memory
    after: Memory | None = None
    problem: str | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the peak fell as told: within the range, or the tolerance of the new peak."""
        if self.after is None:
            return None
        told = self.finding.saving_bytes or 0
        least = told if self.finding.low_bytes is None else self.finding.low_bytes
        most = told if self.finding.high_bytes is None else self.finding.high_bytes
        if self.finding.grade is Grade.at_most:
            least = 0
        apart = max(self.finding.tolerance or 0, _EDGE) * self.after.peak_bytes
        saved = self.before.peak_bytes - self.after.peak_bytes
        return least - apart <= saved <= most + apart


def prove(findings: Sequence[Finding], asked: Asked, topology: str) -> Iterator[Proof]:
    """Compile the program as it is, and once for each finding that options of compiling follow.

    Raises FitError if it cannot be compiled as it is.
    """
    provable = [each for each in findings if each.options is not None and each.saving_bytes]
    if not provable:
        return
    before = compiled_memory(asked, topology, tool_version=__version__)
    for finding in provable:
        assert finding.options is not None
        flags, donated = finding.options.flags, finding.options.donated
        try:
            after = compiled_memory(
                asked, topology, flags=flags, donated=donated, tool_version=__version__
            )
        except FitError as error:
            yield Proof(finding, before, problem=str(error))
            continue
        yield Proof(finding, before, after)


def print_proofs(advice: Advice, program: str, topology: str, output: Format) -> None:
    """Compile the program with each finding that options can follow, and print a row of each."""
    target, function = parse_target(program)
    asked = Asked(target, function, {}, [topology])
    with ending_well():
        proofs = list(prove(advice.findings, asked, topology))
    if not proofs:
        print_note("no finding can be followed by options of the compiler alone: nothing to prove")
    for problem in filter(None, [_other_program(advice, proofs), *(p.problem for p in proofs)]):
        print_note(problem)
    table = pa.Table.from_pylist(list(map(_row, proofs)), _SCHEMA)
    if output == "table":
        print_text("")
        told = ["finding", "told", "proved_saving_bytes", "proved_reserved_bytes", "holds"]
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
        reserved = proof.before.total_bytes - after.total_bytes
    return {
        "finding": proof.finding.kind,
        "told": saved_words(proof.finding),
        "saving_bytes": proof.finding.saving_bytes,
        "proved_saving_bytes": saved,
        "reserved_low_bytes": proof.finding.reserved_low_bytes,
        "proved_reserved_bytes": reserved,
        "holds": proof.holds,
        "title": proof.finding.title,
        "problem": proof.problem,
    }
