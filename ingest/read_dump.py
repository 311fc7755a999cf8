"""Reads one dump's files into a module's rows. Runs in worker processes."""

import hashlib
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from . import kinds, sections
from .buffer_assignment import read_buffer_assignment
from .discover import Dump
from .lines import DumpError, Lines, excerpt, split_lines
from .live_range import read_live_range
from .module import Module, Parts, join_parts
from .sections import split_sections
from .usage_report import read_usage_report
from .used_values import read_used_values

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
class DumpOutcome:
    """What became of a dump. `module` is None if nothing was readable or it is known."""

    dump: Dump
    status: str
    module_id: int | None
    module_name: str
    files: list[FileOutcome]
    module: Module | None = None


def read_dump(dump: Dump, known_modules: Set[int]) -> DumpOutcome:
    """Read a dump; a module whose id is in `known_modules` is hashed and no more.

    Never raises DumpError: what is wrong with a file is in its outcome.
    """
    files, texts = _read_files(dump)
    module_name = dump.name.module_name
    module_id = _module_id(module_name, files)
    if module_id in known_modules and texts:
        return DumpOutcome(dump, OK, module_id, module_name, files)
    outcomes = {file.kind: file for file in files}
    parts = _read_parts(texts, outcomes)
    outcome = DumpOutcome(dump, OK, module_id, module_name, files)
    _judge(outcome, parts, outcomes)
    return outcome


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


def _module_id(module_name: str, files: list[FileOutcome]) -> int:
    """A signed 64-bit hash of the name and the content of all files, wherever they lie."""
    content = "\n".join([module_name, *(f"{file.kind} {file.sha256}" for file in files)])
    digest = hashlib.sha256(content.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


# What each kind of file must hold; older dumps hold all three parts in the first.
_PART_OF_KIND = {
    kinds.BUFFER_ASSIGNMENT: sections.BUFFER_ASSIGNMENT,
    kinds.USED_VALUES: sections.USED_VALUES,
    kinds.LIVE_RANGE: sections.LIVE_RANGE,
}


def _read_parts(texts: dict[str, bytes], outcomes: dict[str, FileOutcome]) -> Parts:
    """Read each file as far as it can be read; what is wrong goes to its outcome."""
    parts = Parts()
    for kind in kinds.ASSIGNMENT_KINDS:
        if kind in texts:
            with _recording(outcomes[kind]):
                _read_assignment_file(kind, texts[kind], parts, outcomes[kind])
    if kinds.USAGE_REPORT in texts:
        with _recording(outcomes[kinds.USAGE_REPORT]):
            parts.space_names = read_usage_report(split_lines(texts[kinds.USAGE_REPORT]))
    for kind in (kinds.HLO, kinds.OOM_HLO):
        if kind in texts:
            with _recording(outcomes[kind]):
                _check_hlo(split_lines(texts[kind]))
    return parts


@contextmanager
def _recording(outcome: FileOutcome) -> Iterator[None]:
    """Record a DumpError as the file's failure, and go on."""
    try:
        yield
    except DumpError as error:
        outcome.status, outcome.line, outcome.message = FAILED, error.line, str(error)


def _read_assignment_file(kind: str, text: bytes, parts: Parts, outcome: FileOutcome) -> None:
    """Read every part that the file holds; a part is taken whole or not at all."""
    lines = split_lines(text)
    found = split_sections(lines)
    expected = _PART_OF_KIND[kind]
    if expected not in found:
        raise DumpError(
            f"not a dump of {expected}: it starts with {excerpt(lines.first())}", line=1
        )
    errors = []
    for part, section in found.items():
        try:
            if part == sections.BUFFER_ASSIGNMENT:
                parts.buffer_assignment = read_buffer_assignment(section)
            elif part == sections.USED_VALUES:
                parts.used_values = read_used_values(section, definitions=True)
            elif part == sections.LIVE_RANGE:
                parts.live_range = read_live_range(section)
        except DumpError as error:
            errors.append(error)
    if errors:
        outcome.status = FAILED if len(errors) == len(found) else PARTIAL
        outcome.line, outcome.message = errors[0].line, str(errors[0])


def _check_hlo(lines: Lines) -> None:
    if not lines.first().startswith("HloModule "):
        raise DumpError(f"not HLO text: it starts with {excerpt(lines.first())}", line=1)


def _judge(outcome: DumpOutcome, parts: Parts, files: dict[str, FileOutcome]) -> None:
    """Set the dump's status, join its parts if there are any, and record what is missing."""
    readable = {kind for kind, file in files.items() if file.status in (OK, PARTIAL)}
    if readable.isdisjoint(kinds.MAIN_KINDS):
        outcome.status, outcome.module_id = FAILED, None
        return
    outcome.module = join_parts(parts)
    if outcome.module.contradictions:
        blamed = files.get(kinds.USED_VALUES) or files[kinds.BUFFER_ASSIGNMENT]
        blamed.status = CONTRADICTS
        blamed.message = "; ".join(outcome.module.contradictions)
    present = {
        kinds.BUFFER_ASSIGNMENT: parts.buffer_assignment,
        kinds.USED_VALUES: parts.used_values,
        kinds.LIVE_RANGE: parts.live_range,
    }
    if not files.keys().isdisjoint(kinds.ASSIGNMENT_KINDS):
        for kind, part in present.items():
            if part is None and kind not in files:
                outcome.files.append(_missing(outcome.dump, kind))
    if any(file.status != OK for file in outcome.files):
        outcome.status = PARTIAL


def _missing(dump: Dump, kind: str) -> FileOutcome:
    path = PurePosixPath(dump.workload) / f"{dump.stem}.*-{kind}.txt"
    message = f"{_PART_OF_KIND[kind]} is missing: dump the program again, keep all its files"
    return FileOutcome(path.as_posix(), kind, status=MISSING, message=message)
