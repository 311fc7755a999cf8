"""Reads programs into the rows of modules, in any process, and determines their status."""

import ctypes
import gc
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..xla.parts import Parts
from .derive import Notes, derive
from .formats import FORMATS, IS_CONTENT, Role
from .module_rows import build_module
from .outcomes import FAILED, MISSING, OK, PARTIAL, FileOutcome, Settings, some_of
from .rows import Module
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


def read_program(
    program: Program,
    known: Set[int],
    identified: Identified | None = None,
    *,
    user_code: Sequence[str] = (),
    before: ReadBefore | None = None,
) -> ProgramOutcome:
    """Read one program; if its module is `known`, or was read `before`, it is only identified.

    `identified` is the program's fingerprint, if already taken; `user_code` are patterns of files
    that are the user's code. An error in a file is recorded in the file's outcome, never raised.
    """
    identified = identified or program.fingerprint()
    if identified.module_id in known or identified.left_out is not None:
        return recognised(program, identified)
    if before is not None and (repeated := before.outcome(program, identified)) is not None:
        return repeated
    outcome = _outcome(program, identified)
    with _without_garbage_collection():
        parts = program.read(identified)
        if parts is None:
            outcome.status, outcome.module_id = FAILED, None
        else:
            _add_module(program, parts, outcome, user_code)
            _judged(outcome)
    if before is not None:
        before.remember(outcome)
    del parts
    if program.size_bytes > _MUCH_BYTES:
        _give_back_memory()
    return outcome


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the search for cycles: a program is millions of small tuples without a cycle.

    Each of the collector's rounds would visit all of them: a third of the time of a large program.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _add_module(
    program: Program, parts: Parts, outcome: ProgramOutcome, user_code: Sequence[str]
) -> None:
    """Add the module to the outcome, and to its files what the parts lack or contradict."""
    key = program.key
    is_damaged = any(
        file.status in (FAILED, PARTIAL) and file.kind not in _SETTINGS for file in outcome.files
    )
    changelist = int(key.compiler) if key.compiler else None
    derivation = derive(
        parts, key.platform, changelist, completes=parts.is_binary or not is_damaged
    )
    outcome.module = build_module(derivation, key.platform, user_code)
    _add_notes(outcome, derivation.notes)


def _add_notes(outcome: ProgramOutcome, notes: Notes) -> None:
    """Note at the files of a program that was read what its parts lack or contradict."""
    module = outcome.module
    assert module is not None
    outcome.lacks_figures = module.header["origin"] is None
    outcome.assumed = dict(notes.assumed)
    if module.header["origin"] in ("derived", "estimated"):
        # Derived parts are not missing.
        outcome.files = [file for file in outcome.files if file.status != MISSING]
    if notes.why_no_figures is not None and outcome.lacks_figures:
        _note(outcome, f"no figures without a buffer assignment: {notes.why_no_figures}")
    if notes.why_no_owners is not None:
        _note(outcome, f"the owners of values are not known: {notes.why_no_owners}")
    if module.unread_passes:
        count = f"{len(module.unread_passes)} of {module.n_pass_texts}"
        texts = f"{count} texts between the compiler's passes"
        _note(
            outcome, f"{texts} cannot be read and are passed over: {some_of(module.unread_passes)}"
        )
    for part, message in module.contradictions:
        _blamed(outcome, part).contradict(message)
    if all(file.status == OK for file in outcome.files):
        for message in module.disagreements:
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
