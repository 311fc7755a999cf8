"""Reads one program into a module's rows, in whatever process, and judges what was read."""

from collections.abc import Set
from dataclasses import dataclass

from .model.join import Module, join_parts
from .outcomes import FAILED, OK, PARTIAL, FileOutcome, Settings
from .sources.program import Identified, Key, Program


@dataclass
class ProgramOutcome:
    """What became of a program. `module` is None if nothing was readable or it is known."""

    key: Key
    oom: bool
    size_bytes: int
    status: str
    module_id: int | None
    module_name: str
    files: list[FileOutcome]
    settings: Settings
    module: Module | None = None


def read_program(
    program: Program, known: Set[int], identified: Identified | None = None, *, beside: bool = False
) -> ProgramOutcome:
    """Read a program; one whose module is `known` is identified and no more.

    `identified` is what its fingerprint gave, if that was asked for already. With `beside`,
    threads may share the work. What is wrong with a file is in its outcome, never raised.
    """
    identified = identified or program.fingerprint()
    if identified.module_id in known:
        return recognised(program, identified)
    parts = program.read(identified, beside=beside)
    outcome = _outcome(program, identified)
    if parts is None:
        outcome.status, outcome.module_id = FAILED, None
        return outcome
    outcome.module = join_parts(parts)
    for part, message in outcome.module.contradictions:
        # Of a part that stands in two files, the file of its own is the last.
        next(file for file in outcome.files[::-1] if part in file.holds).contradict(message)
    return _judged(outcome)


def recognised(program: Program, identified: Identified) -> ProgramOutcome:
    """The outcome of a program whose module is stored."""
    return _judged(_outcome(program, identified))


def _outcome(program: Program, identified: Identified) -> ProgramOutcome:
    return ProgramOutcome(
        program.key,
        program.oom,
        program.size_bytes,
        OK,
        identified.module_id,
        identified.module_name,
        identified.files,
        identified.settings,
    )


def _judged(outcome: ProgramOutcome) -> ProgramOutcome:
    if any(file.status != OK for file in outcome.files):
        outcome.status = PARTIAL
    return outcome
