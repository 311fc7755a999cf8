"""A program as XLA dumped it: a few files, each of one format."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from ...schema import ids
from .. import formats
from ..formats import BINARY, BY_NAME, FORMATS, Format, Role
from ..model.binary_parts import with_binary
from ..model.parts import Parts
from ..model.space_names import with_space_names
from ..outcomes import MISSING, OK, PARTIAL, FileOutcome, Settings
from ..readers.hlo_proto import ProtoIdentity, identify_hlo_proto, read_hlo_proto
from ..readers.hlo_text import header_name
from ..readers.lines import Lines, whole_lines
from ..readers.stack_frames import FRAME_TABLES
from .dumped_texts import FIRST, USED_VALUES, Outcomes, Texts, add_definitions, read_texts
from .files import SourceFile
from .program import Identified, Key

# The heading of the frames in HLO text.
_FRAMES = f"\n{FRAME_TABLES[-1]}\n".encode()
_NO_ASSIGNMENT = (
    "no buffer assignment: the program comes from JAX's compilation cache, or an early stage of "
    "compilation; JAX_ENABLE_COMPILATION_CACHE=false compiles it anew"
)

# Dumps of this size are read and hashed by as many threads; for others threads cost more.
_LARGE_BYTES = 4 << 20
_FILES_AT_ONCE = 2


@dataclass(frozen=True)
class DumpedProgram:
    """The files of one program, by format; see `program.Program`."""

    key: Key
    files: Mapping[Format, SourceFile]

    @property
    def oom(self) -> bool:
        """XLA writes these files only if it ran out of memory after buffer assignment."""
        return any(f is formats.OOM_HLO or f.role is Role.OOM for f in self.files)

    @property
    def size_bytes(self) -> int:
        """The size of its files on disk, compressed or not."""
        return sum(file.size for file in self.files.values())

    @property
    def modified(self) -> float:
        """The modification time of its newest file."""
        return max(file.modified for file in self.files.values())

    def fingerprint(self) -> Identified:
        """Read and hash the files; parse the settings, which are not part of the module."""
        outcomes: Outcomes = {}
        texts: Texts = {}
        self._read_files([format_ for format_ in FORMATS if format_ is not BINARY], texts, outcomes)
        if self._needs_binary(texts):
            self._read_files([BINARY], texts, outcomes)
        binary = _identify_binary(texts, outcomes)
        settings = _read_settings(texts, outcomes)
        name = self._module_name(texts, binary)
        contents = dict(_contents(outcomes))
        if binary is not None and FIRST in texts and any(f.role is Role.PROGRAM for f in texts):
            # The rest of the binary has numbers that change with what was compiled before.
            contents[BINARY.name] = binary.beside_text
        module_id = ids.module_id(name, contents.items())
        content = {format_: text for format_, text in texts.items() if format_ in _CONTENT}
        found = Identified(module_id, name, list(outcomes.values()), settings, content)
        found.unread = frozenset({BINARY.name} if BINARY in self.files else ()) - {
            format_.name for format_ in outcomes
        }
        is_alone = formats.MAKES_A_DUMP.intersection(outcomes) == {BINARY}
        if is_alone and binary is not None and not binary.has_assignment:
            found.left_out = _NO_ASSIGNMENT
        return found

    def _read_files(self, wanted: list[Format], texts: Texts, outcomes: Outcomes) -> None:
        """Read the files of these formats, and hash all but the binary."""
        held = [format_ for format_ in wanted if format_ in self.files]
        for format_ in held:
            path = self.files[format_].path.as_posix()
            outcomes[format_] = FileOutcome(path, format_.name)
        files, found = [self.files[f] for f in held], [outcomes[f] for f in held]
        if self.size_bytes < _LARGE_BYTES:
            read = list(map(_read_file, files, found))
        else:
            # To read and to hash releases Python's lock.
            with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
                read = list(threads.map(_read_file, files, found))
        texts |= {
            format_: text for format_, text in zip(held, read, strict=True) if text is not None
        }

    def _needs_binary(self, texts: Texts) -> bool:
        """Whether the binary says what the texts do not: otherwise it is not read.

        A text may be missing. Up to JAX 0.7 the HLO text has no stack frames, and the newest
        libtpu prints no shardings of arguments.
        """
        program = next((texts[f] for f in texts if f.role is Role.PROGRAM), None)
        if FIRST not in texts or program is None:
            return True
        if _FRAMES not in program and b" source_line=" in program:
            return True
        first_line = program[: program.find(b"\n")]
        return b"num_partitions=" in first_line and b", sharding=" not in program

    def read(self, identified: Identified, *, beside: bool = False) -> Parts | None:
        """Parse each file as far as possible; with `beside`, HLO text in its own thread."""
        texts: Texts = identified.content
        outcomes = {BY_NAME[file.kind]: file for file in identified.files}
        documents: dict[Format, Lines] = {}
        parts = read_texts(texts, outcomes, documents, beside=beside)
        is_damaged = any(
            file.status != OK and format_.role in (Role.ASSIGNMENT, Role.PROGRAM)
            for format_, file in outcomes.items()
        )
        if is_damaged and BINARY in self.files and BINARY not in outcomes:
            self._read_files([BINARY], texts, outcomes)
            if BINARY in texts:
                outcomes[BINARY].sha256 = _sha256(texts[BINARY])
            identified.files.append(outcomes[BINARY])
        if BINARY in texts:
            with outcomes[BINARY].recording():
                parts = with_binary(parts, read_hlo_proto(texts.pop(BINARY)), is_damaged=is_damaged)
                if parts.is_binary:
                    parts = with_space_names(parts, self.key.platform)
                    outcomes[BINARY].holds = (FIRST.title,)
        if parts.hlo is None and parts.used_values is not None:
            add_definitions(parts, parts.used_values, documents[USED_VALUES], outcomes)
        readable = {f for f, file in outcomes.items() if file.status in (OK, PARTIAL)}
        if readable.isdisjoint(formats.MAKES_A_DUMP):
            return None
        if not parts.is_binary and any(f.role is Role.ASSIGNMENT for f in outcomes):
            held = {part for file in identified.files for part in file.holds}
            # HLO text alone is a complete dump; a buffer assignment needs all its parts.
            identified.files += [
                self._missing(format_)
                for format_ in FORMATS
                if format_.role is Role.ASSIGNMENT
                and format_ not in outcomes
                and format_.title not in held
            ]
        return parts

    def _module_name(self, texts: Texts, binary: ProtoIdentity | None) -> str:
        """The module's name in the file names; for renamed files, the name in the content."""
        if self.key.number is None:
            if binary is not None:
                return binary.module_name
            for format_ in FORMATS:
                if format_.role is Role.PROGRAM and format_ in texts:
                    first_line = texts[format_][:1000].decode(errors="replace")
                    if name := header_name(first_line):
                        return name
        return self.key.module_name

    def _missing(self, format_: Format) -> FileOutcome:
        path = PurePosixPath(self.key.workload) / f"{self.key.name}.*{format_.ending}"
        message = f"{format_.title} is missing: dump the program again, keep all its files"
        return FileOutcome(path.as_posix(), format_.name, status=MISSING, message=message)


_CONTENT = frozenset(formats.IS_CONTENT)


def _read_file(file: SourceFile, outcome: FileOutcome) -> bytes | None:
    """Read a file, and hash all but a binary; None if it cannot be read."""
    with outcome.recording():
        text = file.read()
        outcome.bytes = len(text)
        if outcome.kind != BINARY.name:
            outcome.sha256 = _sha256(text)
        return text
    return None


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _identify_binary(texts: Texts, outcomes: Outcomes) -> ProtoIdentity | None:
    """What the binary is, None if there is none or it is damaged: then it is not read."""
    if BINARY in texts:
        with outcomes[BINARY].recording():
            found = identify_hlo_proto(texts[BINARY])
            # The bytes of equal modules differ, because the order of a map is not fixed.
            outcomes[BINARY].sha256 = found.content
            return found
        outcomes[BINARY].sha256 = _sha256(texts.pop(BINARY))
    return None


def _contents(outcomes: Outcomes) -> list[tuple[str, str | None]]:
    """The format and SHA-256 of each file that a module's id is the hash of."""
    held = [format_ for format_ in formats.IS_CONTENT if format_ in outcomes]
    if formats.OOM_HLO in held and BY_NAME["hlo"] in held:
        held.remove(formats.OOM_HLO)
    return [(format_.name, outcomes[format_].sha256) for format_ in held]


def _read_settings(texts: Texts, outcomes: Outcomes) -> Settings:
    """The compiler's flags and the device, from the files of settings."""
    settings = Settings()
    for format_, text in texts.items():
        with outcomes[format_].recording():
            # JAX 0.6 writes an empty file where no option is set.
            if format_.role is Role.FLAGS and texts[format_]:
                settings.flags = (settings.flags or {}) | _read_flags(format_, text)
            elif format_.role is Role.DEVICE:
                settings.device |= format_.read(whole_lines(text))
    return settings


@lru_cache(maxsize=16)
def _read_flags(format_: Format, text: bytes) -> dict[str, str]:
    """A file's flags; cached, because libtpu writes the same flags for each module of a run."""
    flags: dict[str, str] = format_.read(whole_lines(text))
    return flags
