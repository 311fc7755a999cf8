"""Reads one program into a module's rows, in any process, and determines its status."""

from collections.abc import Set
from dataclasses import dataclass

from .formats import FORMATS, Role
from .model.join import Module, join_parts
from .model.worked_out import work_out
from .outcomes import FAILED, MISSING, OK, PARTIAL, FileOutcome, Settings
from .sources.program import Identified, Key, Program

_PROGRAM_TEXTS = frozenset(format_.name for format_ in FORMATS if format_.role is Role.PROGRAM)


@dataclass
class ProgramOutcome:
    """The outcome of a program. `module` is None if it was unreadable or is already stored."""

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
    """Read a program; a program whose module is `known` is only identified.

    `identified` is the program's fingerprint if already taken. With `beside`, threads may
    share the work. An error in a file is recorded in the file's outcome, never raised.
    """
    identified = identified or program.fingerprint()
    if identified.module_id in known:
        return recognised(program, identified)
    parts = program.read(identified, beside=beside)
    outcome = _outcome(program, identified)
    if parts is None:
        outcome.status, outcome.module_id = FAILED, None
        return outcome
    compiler = program.key.compiler
    found = work_out(
        parts,
        platform=program.key.platform,
        changelist=int(compiler) if compiler else None,
        completes=not any(file.status in (FAILED, PARTIAL) for file in outcome.files),
    )
    outcome.module = join_parts(found.parts, found.attribution, found.program)
    if outcome.module.header["origin"] in ("derived", "estimated"):
        # What was worked out is not missing.
        outcome.files = [file for file in outcome.files if file.status != MISSING]
    elif found.why_not is not None and outcome.module.header["origin"] is None:
        _note(outcome, f"no figures without a buffer assignment: {found.why_not}")
    if found.no_owners is not None:
        _note(outcome, f"the owners of values are not known: {found.no_owners}")
    for part, message in outcome.module.contradictions:
        _blamed(outcome, part).contradict(message)
    return _judged(outcome)


def _blamed(outcome: ProgramOutcome, part: str) -> FileOutcome:
    """The file that holds a part. If two files hold it, the part's own file is the last.

    A part that was worked out is in no file: then the first file is at odds with the text.
    """
    holding = [file for file in outcome.files if part in file.holds]
    return holding[-1] if holding else outcome.files[0]


def _note(outcome: ProgramOutcome, message: str) -> None:
    """Note at the HLO text what it does not say; that is not a failure of the file."""
    for file in outcome.files:
        if file.kind in _PROGRAM_TEXTS and file.message is None:
            file.message = message


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
