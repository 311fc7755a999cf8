"""Reads programs into the rows of modules, in any process, and determines their status."""

import ctypes
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from ..xla.columns.parts import Parts
from .formats import FORMATS, IS_CONTENT, Role
from .join import Told, WorkedOut, join
from .modules import Module
from .outcomes import FAILED, MISSING, OK, PARTIAL, FileOutcome, Settings, some_of
from .sources.program import Identified, Key, Program

# Reading programs of more bytes leaves much freed memory behind.
_MUCH_BYTES = 10_000_000
_PROGRAMS = frozenset(f.name for f in FORMATS if f.role in (Role.PROGRAM, Role.BINARY))


@dataclass
class ProgramOutcome:
    """The outcome of a program. `module` is None if it was unreadable or is already stored.

    assumed: the opcodes for which a rule is assumed, with how many instructions have each;
    left_out: why the program is no dump of its run, although nothing is wrong with it;
    lacks_figures: it was read, and nothing says what its memory is; is_repeated: another program
    of the run has the same content, and the rows are with that one's outcome.
    """

    key: Key
    oom: bool
    size_bytes: int
    status: str
    module_id: int | None
    module_name: str
    files: list[FileOutcome]
    settings: Settings
    module: Module | None = None
    assumed: dict[str, int] = field(default_factory=dict)
    left_out: str | None = None
    lacks_figures: bool = False
    is_repeated: bool = False


# What the rows of a module depend on: its id, platform and compiler, and its files' content.
Content = tuple[int | None, str | None, str | None, frozenset[tuple[str, str | None]]]
# These are not part of a module.
_SETTINGS = frozenset(f.name for f in FORMATS if f not in IS_CONTENT)


def content_of(key: Key, identified: Identified | ProgramOutcome) -> Content:
    """What the rows of the program's module depend on, beside the reader."""
    files = [(f.kind, f.sha256) for f in identified.files if f.kind not in _SETTINGS]
    return identified.module_id, key.platform, key.compiler, frozenset(files)


class ReadBefore:
    """What a run has read: of several programs of one content only the first is read.

    Many hosts dump the same programs. A program that could not be read whole is not remembered,
    because the files of the next one may say more.
    """

    def __init__(self) -> None:
        self._outcomes: dict[Content, ProgramOutcome] = {}

    def remember(self, outcome: ProgramOutcome) -> None:
        """Remember the outcome of a program that was read, but for its rows."""
        if outcome.status == OK and outcome.module is not None:
            content = content_of(outcome.key, outcome)
            self._outcomes.setdefault(content, replace(outcome, module=None))

    def outcome(self, program: Program, identified: Identified) -> ProgramOutcome | None:
        """The outcome of a program whose content was read before; None: it must be read."""
        before = self._outcomes.get(content_of(program.key, identified))
        if before is None or any(file.status != OK for file in identified.files):
            return None
        notes = {file.kind: file for file in before.files if file.kind not in _SETTINGS}
        for file in identified.files:
            if file.kind in notes:
                of = notes[file.kind]
                file.line, file.message, file.holds = of.line, of.message, of.holds
        outcome = _outcome(program, identified)
        outcome.assumed, outcome.lacks_figures = before.assumed, before.lacks_figures
        outcome.is_repeated = True
        return outcome


# Small programs are read together: to that many bytes and programs more brings nothing but memory.
_TOGETHER_BYTES = 8 << 20
_TOGETHER = 50
_Program = TypeVar("_Program", bound=Program)


def batches_of(programs: Sequence[_Program], *, least: int = 1) -> Iterator[list[_Program]]:
    """The programs in batches that are read together, in order; at least so many, if possible.

    A large program is a batch of its own.
    """
    most_bytes = min(_TOGETHER_BYTES, sum(program.size_bytes for program in programs) // least)
    most = max(1, min(_TOGETHER, len(programs) // least))
    batch: list[_Program] = []
    size = 0
    for program in programs:
        if batch and (size + program.size_bytes > most_bytes or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(program)
        size += program.size_bytes
    if batch:
        yield batch


def read_program(program: Program, known: Set[int]) -> ProgramOutcome:
    """Read one program: see `read_programs`."""
    (outcome,) = read_programs([(program, None)], known)
    return outcome


def read_programs(
    programs: Sequence[tuple[Program, Identified | None]],
    known: Set[int],
    *,
    mine: Sequence[str] = (),
    before: ReadBefore | None = None,
) -> list[ProgramOutcome]:
    """Read programs; one whose module is `known`, or was read `before`, is only identified.

    Beside each program stands its fingerprint, if already taken. `mine` are patterns of files that
    are the user's code. An error in a file is recorded in the file's outcome, never raised.
    """
    before = ReadBefore() if before is None else before
    outcomes: dict[int, ProgramOutcome] = {}
    waiting = list(enumerate(programs))
    while waiting:
        fresh: list[tuple[int, Program, Identified]] = []
        contents = set[Content]()
        again: list[tuple[int, tuple[Program, Identified | None]]] = []
        for place, (program, given) in waiting:
            identified = given or program.fingerprint()
            content = content_of(program.key, identified)
            if identified.module_id in known or identified.left_out is not None:
                outcomes[place] = recognised(program, identified)
            elif (repeated := before.outcome(program, identified)) is not None:
                outcomes[place] = repeated
            elif content in contents:
                # The first program with this content may yet be read whole.
                again.append((place, (program, identified)))
            else:
                contents.add(content)
                fresh.append((place, program, identified))
        read: list[_Read] = []
        for place, program, identified in fresh:
            parts = program.read(identified)
            outcome = outcomes[place] = _outcome(program, identified)
            if parts is None:
                outcome.status, outcome.module_id = FAILED, None
            else:
                read.append(_Read(program, parts, outcome))
        del fresh
        _join(read, mine)
        for each in read:
            _judged(each.outcome)
            before.remember(each.outcome)
        is_much = sum(each.program.size_bytes for each in read) > _MUCH_BYTES
        del read
        if is_much:
            _give_back_memory()
        waiting = again
    return [outcomes[place] for place in range(len(programs))]


class _Read(NamedTuple):
    """A program whose files were read."""

    program: Program
    parts: Parts
    outcome: ProgramOutcome


def _join(read: Sequence[_Read], mine: Sequence[str]) -> None:
    """Add modules to the outcomes, and to their files what the parts lack or contradict."""
    for program, parts, outcome in read:
        told = Told(
            parts,
            program.key.platform,
            int(program.key.compiler) if program.key.compiler else None,
            parts.is_binary
            or not any(
                file.status in (FAILED, PARTIAL) and file.kind not in _SETTINGS
                for file in outcome.files
            ),
        )
        found, outcome.module = join(told, mine)
        _note_all(outcome, parts, found)


def _note_all(outcome: ProgramOutcome, parts: Parts, found: WorkedOut) -> None:
    """Note at the files of a program that was read what its parts lack or contradict."""
    assert outcome.module is not None
    outcome.lacks_figures = outcome.module.header["origin"] is None
    if outcome.module.header["origin"] in ("derived", "estimated"):
        # What was worked out is not missing.
        outcome.files = [file for file in outcome.files if file.status != MISSING]
    if found.attribution is not None:
        outcome.assumed = found.attribution.derived.assumed
    if found.why_not is not None and outcome.lacks_figures:
        _note(outcome, f"no figures without a buffer assignment: {found.why_not}")
    if found.unread is not None:
        _programs(outcome)[0].leave_out([found.unread])
    if found.no_owners is not None:
        _note(outcome, f"the owners of values are not known: {found.no_owners}")
    if unread := outcome.module.unread_passes:
        texts = f"{len(unread)} of {len(parts.pass_texts)} texts between the compiler's passes"
        _note(outcome, f"{texts} cannot be read and are passed over: {some_of(unread)}")
    for part, message in outcome.module.contradictions:
        _blamed(outcome, part).contradict(message)
    if all(file.status == OK for file in outcome.files):
        for message in outcome.module.disagreements:
            _programs(outcome)[0].contradict(message)


def _programs(outcome: ProgramOutcome) -> list[FileOutcome]:
    """The files with the program; the first file if there is none."""
    return [file for file in outcome.files if file.kind in _PROGRAMS] or outcome.files[:1]


def _give_back_memory() -> None:
    """Give what the parts took back to the system: DuckDB's allocator cannot use it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _blamed(outcome: ProgramOutcome, part: str) -> FileOutcome:
    """The file that holds a part. If two files hold it, the part's own file is the last.

    A part that was worked out is in no file: then the first file is at odds with the text.
    """
    holding = [file for file in outcome.files if part in file.holds]
    return holding[-1] if holding else outcome.files[0]


def _note(outcome: ProgramOutcome, message: str) -> None:
    """Note at the file with the program what it does not say; that is not a failure of it."""
    for file in _programs(outcome):
        if file.status in (OK, PARTIAL):
            file.note(message)


def recognised(program: Program, identified: Identified) -> ProgramOutcome:
    """The outcome of a program whose module is stored, or that is left out."""
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
        left_out=identified.left_out,
    )


def _judged(outcome: ProgramOutcome) -> ProgramOutcome:
    if any(file.status != OK for file in outcome.files):
        outcome.status = PARTIAL
    return outcome
