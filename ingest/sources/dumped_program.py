"""A program as XLA dumped it: a few files, each of one format."""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import PurePosixPath
from typing import Any

from ...schema import ids
from ...xla.compiler_passes import PassText
from ...xla.errors import DumpError
from ...xla.parts import Parts
from ...xla.pass_programs import PassProgram
from ...xla.program import Program, ScopedMemory
from ...xla.spaces import name_spaces
from .. import formats
from ..formats import BINARY, BY_NAME, FORMATS, Format, Role
from ..outcomes import MISSING, OK, PARTIAL, FileOutcome, Settings
from ..readers.hlo_header import header_name
from ..readers.lines import split_complete_lines
from ..readers.pass_text import PassName, read_pass_text
from ..readers.proto_identity import ProtoIdentity, identify_hlo_proto
from ..readers.stack_frames import FRAME_TABLES
from ..readers.thunks import METADATA, SEQUENCE, read_shared_memory
from .dump_parts import (
    FIRST,
    Contents,
    Outcomes,
    add_binary,
    add_definitions,
    read_lone_text,
    read_texts,
)
from .files import SourceFile
from .program import Identified, Key

# The heading of the frames in HLO text.
_FRAMES = f"\n{FRAME_TABLES[-1]}\n".encode()
# Parts of a module's id: the texts between passes, and the shared memory of kernels.
_PASSES = "passes"
_SHARED = "shared-memory"
_NO_ASSIGNMENT = (
    "no buffer assignment: the program comes from JAX's compilation cache, or an early stage of "
    "compilation; JAX_ENABLE_COMPILATION_CACHE=false compiles it anew"
)

# Two threads read and hash the files of a dump from this size on; for others threads cost more.
_LARGE_BYTES = 4 << 20
_N_THREADS = 2
_CONTENT = frozenset(formats.IS_CONTENT)


@dataclass(frozen=True)
class DumpedProgram:
    """The files of one program; see `program.Program`.

    Attributes:
        files: by format.
        passes: the texts between the compiler's passes, in order.
        thunks: the files of the runtime's list of steps, by SEQUENCE and METADATA.
    """

    key: Key
    files: Mapping[Format, SourceFile]
    passes: Sequence[tuple[PassName, SourceFile]] = ()
    thunks: Mapping[str, SourceFile] = field(default_factory=dict)

    @property
    def oom(self) -> bool:
        """Whether the dump has a file that XLA writes only if it ran out of memory."""
        return any(f is formats.OOM_HLO or f.role is Role.OOM for f in self.files)

    @cached_property
    def size_bytes(self) -> int:
        """The size of its files on disk, compressed or not."""
        passes = (file for _, file in self.passes)
        files = [*self.files.values(), *passes, *self.thunks.values()]
        return sum(file.size for file in files)

    @property
    def modified(self) -> float:
        """The modification time of its newest file."""
        return max(file.modified for file in self.files.values())

    def fingerprint(self) -> Identified:
        """Read and hash the files; parse the settings, which are not part of the module."""
        outcomes: Outcomes = {}
        contents: Contents = {}
        self._read_files([f for f in FORMATS if f is not BINARY], contents, outcomes)
        if self._needs_binary(contents):
            self._read_files([BINARY], contents, outcomes)
        binary = _identify_binary(contents, outcomes)
        settings = _read_settings(contents, outcomes)
        name = self._module_name(contents, binary)
        hashes = _hashes(outcomes)
        has_text = FIRST in contents and any(f.role is Role.PROGRAM for f in contents)
        if binary is not None and has_text:
            # The rest of the binary has ids that depend on earlier compilations of the process.
            hashes[BINARY.name] = binary.missing_in_text
        if self.passes:
            # Hashing the texts would mean reading all of them even for a program that is stored.
            names = "\n".join(f"{file.name} {file.size}" for _, file in self.passes)
            hashes[_PASSES] = _sha256(names.encode())
        shared_memory = self._shared_memory(outcomes)
        if shared_memory:
            hashes[_SHARED] = _sha256(repr(sorted(shared_memory.items())).encode())
        module_id = ids.module_id(name, hashes.items())
        content = {format_: text for format_, text in contents.items() if format_ in _CONTENT}
        identified = Identified(module_id, name, list(outcomes.values()), settings, content)
        identified.shared_memory = shared_memory
        if BINARY in self.files and BINARY not in outcomes:
            identified.unread = frozenset({BINARY.name})
        is_alone = formats.MAKES_A_DUMP.intersection(outcomes) == {BINARY}
        if is_alone and binary is not None and not binary.has_assignment:
            identified.left_out = _NO_ASSIGNMENT
        return identified

    def _read_files(
        self, formats_: Sequence[Format], contents: Contents, outcomes: Outcomes
    ) -> None:
        """Read the files of these formats, and hash all but the binary."""
        existing = [format_ for format_ in formats_ if format_ in self.files]
        for format_ in existing:
            outcomes[format_] = FileOutcome(self.files[format_].path, format_.name)
        files = [self.files[format_] for format_ in existing]
        file_outcomes = [outcomes[format_] for format_ in existing]
        if self.size_bytes < _LARGE_BYTES:
            texts = list(map(_read_file, files, file_outcomes))
        else:
            # Reading and hashing release Python's lock.
            with ThreadPoolExecutor(_N_THREADS) as threads:
                texts = list(threads.map(_read_file, files, file_outcomes))
        for format_, text in zip(existing, texts, strict=True):
            if text is not None:
                contents[format_] = text

    def _needs_binary(self, contents: Contents) -> bool:
        """Whether the binary has something that the texts lack: otherwise it is not read.

        Up to JAX 0.7 the HLO text has no stack frames, and the newest libtpu prints no shardings
        of arguments.
        """
        program = next((contents[f] for f in contents if f.role is Role.PROGRAM), None)
        if FIRST not in contents or program is None:
            return True
        if _FRAMES not in program and b" source_line=" in program:
            return True
        first_line = program[: program.find(b"\n")]
        return b"num_partitions=" in first_line and b", sharding=" not in program

    def read(self, identified: Identified) -> Parts | None:
        """Parse each file as far as possible; None if no file can be read."""
        contents: Contents = identified.content
        outcomes = {BY_NAME[file.kind]: file for file in identified.files}
        is_alone = len(formats.MAKES_A_DUMP & outcomes.keys()) == 1
        lone = {f: contents[f] for f in (FIRST, formats.REPORT) if is_alone and f in contents}
        parts, sections = read_texts(contents, outcomes)
        is_damaged = any(
            file.status != OK and format_.role in (Role.ASSIGNMENT, Role.PROGRAM)
            for format_, file in outcomes.items()
        )
        if is_damaged and BINARY in self.files and BINARY not in outcomes:
            self._read_files([BINARY], contents, outcomes)
            if BINARY in contents:
                outcomes[BINARY].sha256 = _sha256(contents[BINARY])
            identified.files.append(outcomes[BINARY])
        for format_, content in lone.items():
            read_lone_text(format_, content, outcomes[format_], parts)
        if BINARY in contents:
            with outcomes[BINARY].recording():
                add_binary(parts, contents.pop(BINARY), is_damaged=is_damaged)
                if parts.is_binary:
                    name_spaces(parts, self.key.platform)
                    outcomes[BINARY].holds = (FIRST.title,)
        if parts.program is not None:
            _add_shared_memory(parts.program, identified.shared_memory)
        parts.pass_texts = self._pass_texts()
        add_definitions(parts, sections, outcomes)
        readable = {f for f, file in outcomes.items() if file.status in (OK, PARTIAL)}
        if readable.isdisjoint(formats.MAKES_A_DUMP):
            return None
        if not parts.is_binary:
            identified.files += self._missing_files(outcomes)
        return parts

    def _missing_files(self, outcomes: Outcomes) -> list[FileOutcome]:
        """The missing parts of a buffer assignment; HLO text alone is a complete dump."""
        if not any(format_.role is Role.ASSIGNMENT for format_ in outcomes):
            return []
        titles = {title for file in outcomes.values() for title in file.holds}
        stem = PurePosixPath(self.key.workload) / self.key.name
        return [
            FileOutcome(
                f"{stem}.*{format_.ending}",
                format_.name,
                status=MISSING,
                message=f"{format_.title} is missing: dump the program again, keep all its files",
            )
            for format_ in FORMATS
            if format_.role is Role.ASSIGNMENT
            and format_ not in outcomes
            and format_.title not in titles
        ]

    def _shared_memory(self, outcomes: Outcomes) -> dict[str, int]:
        """The shared memory of a GPU's kernels; a list that cannot be read is a note."""
        if self.key.platform != "gpu" or {SEQUENCE, METADATA} - self.thunks.keys():
            return {}
        try:
            return read_shared_memory(*(self.thunks[name].read() for name in (SEQUENCE, METADATA)))
        except DumpError as error:
            for format_, outcome in outcomes.items():
                if format_.role in (Role.PROGRAM, Role.BINARY):
                    outcome.note(f"the shared memory of kernels is not known: {error}")
            return {}

    def _pass_texts(self) -> list[PassText]:
        """The texts between the passes, and the final one."""
        texts = [
            PassText(name.step, name.pipeline, name.compiler_pass, partial(_read_pass, file))
            for name, file in self.passes
        ]
        final = self.files.get(BY_NAME["hlo"])
        if texts and final is not None:
            last_step = max(text.step for text in texts)
            texts.append(PassText(last_step + 1, None, None, partial(_read_pass, final)))
        return texts

    def _module_name(self, contents: Contents, binary: ProtoIdentity | None) -> str:
        """The module's name in the file names; for renamed files, the name in the content."""
        if self.key.number is not None:
            return self.key.module_name
        if binary is not None:
            return binary.module_name
        for format_, content in contents.items():
            if format_.role is Role.PROGRAM:
                name = header_name(content[:1000].decode(errors="replace"))
                if name:
                    return name
        return self.key.module_name


def _read_file(file: SourceFile, outcome: FileOutcome) -> bytes | None:
    """Read a file, and hash all but a binary; None if it cannot be read."""
    try:
        text = file.read()
    except DumpError as error:
        outcome.fail(error)
        return None
    outcome.bytes = len(text)
    if outcome.kind != BINARY.name:
        outcome.sha256 = _sha256(text)
    return text


def _add_shared_memory(program: Program, shared_memory: Mapping[str, int]) -> None:
    """Add the shared memory of a GPU's kernels, in bytes by instruction."""
    for name, size in shared_memory.items():
        if name in program.row_of:
            row = program.row_of[name]
            scoped = program.scoped.get(row, ScopedMemory(None, None, None))
            program.scoped[row] = scoped._replace(used_bytes=size)


def _read_pass(file: SourceFile) -> tuple[PassProgram | None, int]:
    """A text between two passes, and its size; None if it cannot be read."""
    try:
        text = file.read()
        return read_pass_text(text), len(text)
    except DumpError:
        return None, 0


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _identify_binary(contents: Contents, outcomes: Outcomes) -> ProtoIdentity | None:
    """The identity of the binary; None if it is missing or corrupt: then it is not read."""
    if BINARY not in contents:
        return None
    with outcomes[BINARY].recording():
        identity = identify_hlo_proto(contents[BINARY])
        # The bytes of equal modules differ, because the order of a map is not fixed.
        outcomes[BINARY].sha256 = identity.content
        return identity
    outcomes[BINARY].sha256 = _sha256(contents.pop(BINARY))
    return None


def _hashes(outcomes: Outcomes) -> dict[str, str | None]:
    """The SHA-256 of the files on which a module's id depends, by the name of the format."""
    return {
        format_.name: outcomes[format_].sha256
        for format_ in formats.IS_CONTENT
        # The text of `oom-hlo` is the HLO text once more.
        if format_ in outcomes and not (format_ is formats.OOM_HLO and BY_NAME["hlo"] in outcomes)
    }


def _read_settings(contents: Contents, outcomes: Outcomes) -> Settings:
    """The compiler's flags and the device, from the files of settings."""
    settings = Settings()
    for format_, content in contents.items():
        if format_.role not in (Role.FLAGS, Role.DEVICE):
            continue
        with outcomes[format_].recording():
            if format_.role is Role.DEVICE:
                settings.device |= _read_setting(format_, content)
            # JAX 0.6 writes an empty file if no option is set.
            elif content:
                settings.flags = (settings.flags or {}) | _read_setting(format_, content)
    return settings


# XLA writes the same settings for each module of a run.
@lru_cache(maxsize=16)
def _read_setting(format_: Format, content: bytes) -> dict[str, Any]:
    """The flags or the device in a file."""
    values: dict[str, Any] = format_.read(split_complete_lines(content))
    return values
