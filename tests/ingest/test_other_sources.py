"""A source that is not a folder of text files goes through the same pipeline."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from memhouse.ingest.outcomes import FileOutcome
from memhouse.ingest.pipeline import Run, ingest_programs
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_complete_lines
from memhouse.ingest.sources.program import Identified, Key
from memhouse.ingest.workers import Workers
from memhouse.schema import ids
from memhouse.xla.parts import Parts

from ..support.warehouse import rows, writing

TEXT = b"""\
HloModule jit_double, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0), metadata={op_name="x"}
  ROOT %sum = f32[2]{0} add(%x, %x), metadata={op_name="jit(double)/add"}
}

"""


@dataclass(frozen=True)
class TextInMemory:
    """A program that a test holds as text."""

    key: Key
    text: bytes
    modified: float = 0.0
    oom: bool = False
    parsed: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return len(self.text)

    def fingerprint(self) -> Identified:
        module_id = ids.module_id(self.key.module_name, [("text", self.text.hex())])
        return Identified(
            module_id,
            self.key.module_name,
            [FileOutcome(self.key.name, "text", len(self.text), self.text.hex())],
            content=self.text,
        )

    def read(self, identified: Identified, *, beside: bool = False) -> Parts | None:
        self.parsed.append(self.key.name)
        parts = Parts()
        with identified.files[0].recording():
            parts.program = read_hlo_text(split_complete_lines(identified.content))
        return parts if parts.program is not None else None


def program(name="a", text=TEXT):
    return TextInMemory(Key("memory", "jit_double", name=name), text)


def take(db, *programs, jobs=1, run_id="now"):
    run = Run(run_id, source="a test", tool_version="test", labels={"branch": "main"})
    with writing(db) as store, Workers(jobs) as workers:
        return ingest_programs(store, list(programs), run, workers)


@pytest.mark.parametrize("jobs", [1, 2])
def test_programs_in_memory_are_ingested(db, jobs):
    other = TEXT.replace(b"jit(double)/add", b"jit(double)/plus")
    summary = take(db, program("a"), program("b"), program("c", other), jobs=jobs)
    assert (summary.dumps, summary.new_modules, summary.problems) == (3, 2, [])
    assert rows(db, "SELECT workload, module_name, occurrence, status FROM dumps ORDER BY 3") == [
        ("memory", "jit_double", 1, "ok"),
        ("memory", "jit_double", 2, "ok"),
        ("memory", "jit_double", 3, "ok"),
    ]
    assert rows(db, "SELECT DISTINCT instruction FROM instructions ORDER BY 1") == [
        ("sum",),
        ("x",),
    ]
    assert rows(db, "SELECT path, kind, bytes FROM dump_files WHERE path = 'a'") == [
        ("a", "text", len(TEXT))
    ]


def test_a_known_program_is_not_parsed_again(db):
    take(db, program())
    again = program()
    summary = take(db, again)
    assert (summary.unchanged, again.parsed) == (1, [])


def test_the_newest_program_tells_when_the_run_was_compiled(db):
    key = Key("memory", "jit_double")
    take(db, TextInMemory(key, TEXT, modified=1_000_000_000.0))
    query = "SELECT compiled_at, claimed_at, run_at = ingested_at FROM runs"
    assert rows(db, query) == [(datetime.fromtimestamp(1e9, UTC).replace(tzinfo=None), None, True)]


def test_what_cannot_be_parsed_is_told_and_stops_nothing(db):
    summary = take(db, program("bad", b"HloModule m\n"), program("good"))
    (problem,) = summary.problems
    assert problem.startswith("bad:1: ")
    assert (summary.dumps, summary.failed) == (2, 1)
    assert sorted(rows(db, "SELECT status FROM dump_files")) == [("failed",), ("ok",)]
