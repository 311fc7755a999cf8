"""Reads one dump's files into a module's rows, in whatever process."""

import hashlib
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

from . import formats as kinds
from .model.join import Module, Parts, join_parts
from .readers import sections
from .readers.buffer_assignment import read_buffer_assignment
from .readers.hlo_text import HloText, header_name, read_hlo_text
from .readers.lines import DumpError, check_end, excerpt, split_lines, whole_lines
from .readers.live_range import read_live_range
from .readers.sections import split_sections
from .readers.settings import read_debug_options, read_flagfile, read_gpu_target, read_tpu_target
from .readers.usage_report import read_usage_report
from .readers.used_values import read_used_values
from .sources.dump_folder import Dump

OK, PARTIAL, FAILED = "ok", "partial", "failed"
# Of a file only: read, but at odds with another part; not there although its dump needs it.
CONTRADICTS, MISSING = "contradicts", "missing"


@dataclass
class FileOutcome:
    """What became of a file: a row of `dump_files` without its dump_id."""

    path: str
    kind: str
    bytes: int | None = None
    sha256: str | None = None
    status: str = OK
    line: int | None = None
    message: str | None = None


@dataclass
class Settings:
    """The compiler's settings beside a dump; `flags` is None if none were dumped."""

    flags: dict[str, str] | None = None
    device: dict[str, object] = field(default_factory=dict)

    @cached_property
    def flags_id(self) -> int | None:
        """A hash of the flags."""
        if self.flags is None:
            return None
        return hash64(*(f"{flag}={value}" for flag, value in sorted(self.flags.items())))


@dataclass
class DumpOutcome:
    """What became of a dump. `module` is None if nothing was readable or it is known."""

    dump: Dump
    status: str
    module_id: int | None
    module_name: str
    files: list[FileOutcome]
    settings: Settings
    module: Module | None = None


def read_dump(dump: Dump, known_modules: Set[int], *, beside: bool = False) -> DumpOutcome:
    """Read a dump; a module whose id is in `known_modules` is hashed and no more.

    With `beside`, HLO text is read in a thread beside the other files.
    Never raises DumpError: what is wrong with a file is in its outcome.
    """
    outcome, texts = _identified(dump)
    if outcome.module_id in known_modules:
        return _recognised(outcome)
    files = {file.kind: file for file in outcome.files}
    _judge(outcome, _read_parts(texts, files, beside), files)
    return outcome


def recognise(dump: Dump, known_modules: Set[int]) -> DumpOutcome | None:
    """What `read_dump` says of a dump whose module is known; None if it is to be read."""
    outcome, _ = _identified(dump)
    return _recognised(outcome) if outcome.module_id in known_modules else None


def _recognised(outcome: DumpOutcome) -> DumpOutcome:
    if any(file.status != OK for file in outcome.files):
        outcome.status = PARTIAL
    return outcome


def _identified(dump: Dump) -> tuple[DumpOutcome, dict[str, bytes]]:
    """A dump with its files hashed and its settings read, and the files' bytes by kind."""
    files, texts = _read_files(dump)
    outcomes = {file.kind: file for file in files}
    settings = _read_settings(texts, outcomes)
    module_name = _module_name(dump, texts)
    module_id = _module_id(module_name, outcomes)
    return DumpOutcome(dump, OK, module_id, module_name, files, settings), texts


def hash64(*texts: str) -> int:
    """A hash of texts: our ids of modules, dumps and flag sets.

    63 bits: not negative in a BIGINT, so that an id on a command line is no option.
    """
    content = "\0".join(texts).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1


def _module_name(dump: Dump, texts: dict[str, bytes]) -> str:
    """The name in the dump's file name; of a renamed file, that in its HLO text."""
    if dump.name.module_number is None:
        for kind in (kinds.HLO, kinds.OOM_HLO):
            first_line = texts.get(kind, b"")[:1000].decode(errors="replace")
            if name := header_name(first_line):
                return name
    return dump.name.module_name


def _read_files(dump: Dump) -> tuple[list[FileOutcome], dict[str, bytes]]:
    """Every file's bytes and hash, in order of their kinds."""
    outcomes, texts = [], {}
    for kind, file in sorted(dump.files.items()):
        outcome = FileOutcome(file.path.as_posix(), kind)
        outcomes.append(outcome)
        try:
            text = file.read()
        except DumpError as error:
            outcome.status, outcome.message = FAILED, str(error)
            continue
        outcome.bytes = len(text)
        outcome.sha256 = hashlib.sha256(text).hexdigest()
        texts[kind] = text
    return outcomes, texts


def _module_id(module_name: str, files: dict[str, FileOutcome]) -> int:
    """The hash of the name and of what the files hold, wherever they lie."""
    content = [kind for kind in kinds.CONTENT_KINDS if kind in files]
    if kinds.HLO in content and kinds.OOM_HLO in content:
        content.remove(kinds.OOM_HLO)
    return hash64(module_name, *(f"{kind} {files[kind].sha256}" for kind in content))


def _read_settings(texts: dict[str, bytes], outcomes: dict[str, FileOutcome]) -> Settings:
    settings = Settings()
    for kind in _FLAG_READERS:
        if kind not in texts:
            continue
        with _recording(outcomes[kind]):
            settings.flags = (settings.flags or {}) | _read_flags(kind, texts[kind])
    for kind, read_target in _TARGET_READERS.items():
        if kind in texts:
            with _recording(outcomes[kind]):
                settings.device |= read_target(whole_lines(texts[kind]))
    return settings


_FLAG_READERS = {kinds.FLAGFILE: read_flagfile, kinds.DEBUG_OPTIONS: read_debug_options}
_TARGET_READERS = {kinds.TPU_TARGET: read_tpu_target, kinds.GPU_TARGET: read_gpu_target}


@lru_cache(maxsize=16)
def _read_flags(kind: str, text: bytes) -> dict[str, str]:
    """A file's flags; libtpu writes the same 1,300 of them beside each module of a night."""
    return _FLAG_READERS[kind](whole_lines(text))


# What each kind of file must hold; older dumps hold all three parts in the first.
_PART_OF_KIND = {
    kinds.BUFFER_ASSIGNMENT: sections.BUFFER_ASSIGNMENT,
    kinds.USED_VALUES: sections.USED_VALUES,
    kinds.LIVE_RANGE: sections.LIVE_RANGE,
}


def _read_parts(texts: dict[str, bytes], outcomes: dict[str, FileOutcome], beside: bool) -> Parts:
    """Read each file as far as it can be read; what is wrong goes to its outcome."""
    hlo_kind = kinds.HLO if kinds.HLO in texts else kinds.OOM_HLO
    with ThreadPoolExecutor(1) as thread:
        # HLO text is half of the work, and Arrow and numpy work without Python's lock.
        hlo = thread.submit(_read_hlo, hlo_kind, texts, outcomes) if beside else None
        # Used values repeat the definitions of HLO text: they are of use only without it.
        parts = _read_assignment(texts, outcomes, definitions=hlo_kind not in texts)
        if kinds.USAGE_REPORT in texts:
            with _recording(outcomes[kinds.USAGE_REPORT]):
                parts.space_names = read_usage_report(whole_lines(texts[kinds.USAGE_REPORT]))
        parts.hlo = hlo.result() if hlo else _read_hlo(hlo_kind, texts, outcomes)
    if parts.hlo is None and hlo_kind in texts:
        again = _read_assignment(texts, outcomes, definitions=True)
        parts.used_values = again.used_values
    return parts


def _read_assignment(
    texts: dict[str, bytes], outcomes: dict[str, FileOutcome], *, definitions: bool
) -> Parts:
    parts = Parts()
    for kind in kinds.ASSIGNMENT_KINDS:
        if kind in texts:
            with _recording(outcomes[kind]):
                _read_assignment_file(kind, texts[kind], parts, outcomes[kind], definitions)
    return parts


def _read_hlo(
    kind: str, texts: dict[str, bytes], outcomes: dict[str, FileOutcome]
) -> HloText | None:
    if kind in texts:
        with _recording(outcomes[kind]):
            return read_hlo_text(whole_lines(texts[kind]))
    return None


@contextmanager
def _recording(outcome: FileOutcome) -> Iterator[None]:
    """Record a DumpError as the file's failure, and go on."""
    try:
        yield
    except DumpError as error:
        outcome.status, outcome.line, outcome.message = FAILED, error.line, str(error)


def _read_assignment_file(
    kind: str, text: bytes, parts: Parts, outcome: FileOutcome, definitions: bool
) -> None:
    """Read every part that the file holds; a part is taken whole or not at all."""
    lines = split_lines(text)
    found = split_sections(lines)
    expected = _PART_OF_KIND[kind]
    if expected not in found:
        raise DumpError(
            f"not a dump of {expected}: it starts with {excerpt(lines.first())}", line=1
        )
    for part, section in found.items():
        # The first file of older dumps holds all parts; the others hold no more than their own.
        if part != expected and kind != kinds.BUFFER_ASSIGNMENT:
            raise DumpError(
                f"expected {expected} alone, found {part}: it is another dump's file",
                int(section.numbers[0]),
            )
    errors = []
    for part, section in found.items():
        parts.sections.append(part)
        try:
            if section.numbers[-1] == lines.numbers[-1]:
                check_end(text)
            if part == sections.BUFFER_ASSIGNMENT:
                parts.buffer_assignment = read_buffer_assignment(section)
            elif part == sections.USED_VALUES:
                parts.used_values = read_used_values(section, definitions=definitions)
            elif part == sections.LIVE_RANGE:
                parts.live_range = read_live_range(section)
        except DumpError as error:
            errors.append(error)
    if errors:
        outcome.status = FAILED if len(errors) == len(found) else PARTIAL
        outcome.line, outcome.message = errors[0].line, str(errors[0])


def _judge(outcome: DumpOutcome, parts: Parts, files: dict[str, FileOutcome]) -> None:
    """Set the dump's status, join its parts if there are any, and record what is missing."""
    readable = {kind for kind, file in files.items() if file.status in (OK, PARTIAL)}
    if readable.isdisjoint(kinds.MAIN_KINDS):
        outcome.status, outcome.module_id = FAILED, None
        return
    outcome.module = join_parts(parts)
    for holds, message in outcome.module.contradictions:
        # Older dumps hold all parts in the first file.
        kind = next(kind for kind, part in _PART_OF_KIND.items() if part == holds)
        blamed = files.get(kind) or files[kinds.BUFFER_ASSIGNMENT]
        blamed.status = CONTRADICTS
        blamed.message = message if blamed.message is None else f"{blamed.message}; {message}"
    present = {
        kinds.BUFFER_ASSIGNMENT: parts.buffer_assignment,
        kinds.USED_VALUES: parts.used_values,
        kinds.LIVE_RANGE: parts.live_range,
    }
    if not files.keys().isdisjoint(kinds.ASSIGNMENT_KINDS):
        for kind, found in present.items():
            # An older dump holds all parts in one file: what it holds damaged is not missing.
            if found is None and kind not in files and _PART_OF_KIND[kind] not in parts.sections:
                outcome.files.append(_missing(outcome.dump, kind))
    if any(file.status != OK for file in outcome.files):
        outcome.status = PARTIAL


def _missing(dump: Dump, kind: str) -> FileOutcome:
    path = PurePosixPath(dump.workload) / f"{dump.stem}.*-{kind}.txt"
    message = f"{_PART_OF_KIND[kind]} is missing: dump the program again, keep all its files"
    return FileOutcome(path.as_posix(), kind, status=MISSING, message=message)
