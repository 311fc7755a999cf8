"""Programs as XLA dumps them: the files of a folder, grouped by program, and their parts."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...schema import ids
from ...xla.columns.bridge_h import definition_table
from ...xla.columns.bridge_p import read_hlo_proto
from ...xla.columns.bridge_t import part_as_tables
from ...xla.columns.parts import (
    HloText,
    NotUnderstoods,
    Parts,
    UsedValues,
    with_space_names,
)
from ...xla.compiler_passes import PassText
from ...xla.errors import DumpError
from ...xla.pass_programs import PassProgram
from ...xla.program import Unread
from .. import formats
from ..formats import BINARY, BY_NAME, FORMATS, Format, NamedFile, Role
from ..outcomes import FAILED, MISSING, OK, PARTIAL, FileOutcome, Settings
from ..readers.hlo_header import header_name
from ..readers.hlo_text import read_definitions
from ..readers.lines import (
    Lines,
    check_last_line_end,
    excerpt,
    split_complete_lines,
    split_hlo_lines,
    split_lines,
)
from ..readers.pass_text import PassName, pass_name, read_pass_text
from ..readers.pasted import contains_assignment, read_pasted_assignment
from ..readers.proto_identity import ProtoIdentity, identify_hlo_proto
from ..readers.stack_frames import FRAME_TABLES
from ..readers.thunks import METADATA, SEQUENCE, read_shared_memory, thunks_name
from ..readers.usage_report import read_rounded_allocations, read_totals
from ..readers.used_values import read_definition_lines
from .files import SourceFile
from .program import Identified, Key

# Joins what a dump's texts say with what its binary says.
#
# The texts come first: only they have XLA's order of positions and uses, and the names of the
# memory spaces.


def with_binary(texts: Parts, binary: Parts, *, is_damaged: bool) -> Parts:
    """The texts' parts with what they lack; the binary's parts alone if a text is damaged."""
    if is_damaged and binary.buffer_assignment is not None:
        return replace(binary, space_names=texts.space_names, is_binary=True)
    parts = replace(texts)
    if parts.hlo is None:
        parts.hlo = binary.hlo
    elif binary.hlo is not None:
        parts.hlo = _with_shardings(parts.hlo, binary.hlo)
        if not len(parts.hlo.stack_frames):
            parts.hlo = _with_frames(parts.hlo, binary.hlo)
    if parts.buffer_assignment is None and binary.buffer_assignment is not None:
        parts.buffer_assignment = binary.buffer_assignment
        parts.is_binary = True
    return parts


def _with_shardings(text: HloText, binary: HloText) -> HloText:
    """The text with the binary's shardings: the newest libtpu prints none of arguments."""
    shapes, others = text.entry_shapes, binary.entry_shapes
    if shapes is None or others is None or len(shapes) != len(others):
        return text
    # The rows of both are in the order of the signature.
    column = shapes.schema.get_field_index("sharding")
    filled = pc.coalesce(shapes["sharding"], others["sharding"])
    return replace(text, entry_shapes=shapes.set_column(column, "sharding", filled))


def _with_frames(text: HloText, binary: HloText) -> HloText:
    """The text with the binary's stack frames: up to JAX 0.7 only the binary has them."""
    at = pc.index_in(
        text.instructions["instruction"],
        value_set=binary.instructions["instruction"].combine_chunks(),
    )
    column = text.instructions.schema.get_field_index("stack_frame_id")
    instructions = text.instructions.set_column(
        column, "stack_frame_id", binary.instructions["stack_frame_id"].take(at)
    )
    return replace(text, instructions=instructions, stack_frames=binary.stack_frames)


# Programs as XLA dumps them: the files of a folder, grouped by program, and their parts.

# Parses the texts of a dumped program into parts.

Texts = dict[Format, Any]  # bytes, or of HLO text what was read
Outcomes = dict[Format, FileOutcome]

# The first file of older dumps holds all parts.
FIRST = formats.ASSIGNMENT
USED_VALUES = BY_NAME["buffer-assignment-values"]


def read_texts(texts: Texts, outcomes: Outcomes, documents: dict[Format, Lines]) -> Parts:
    """What the texts hold; `documents` receives the lines of each section.

    A text is taken out of `texts`, so that its memory is free as soon as it is read.
    """
    parts = Parts()
    _read_hlo(texts, outcomes, parts)
    for format_ in FORMATS:
        if format_.role is Role.ASSIGNMENT and format_ in texts:
            with outcomes[format_].recording():
                text = texts.pop(format_)
                _read_document(format_, text, outcomes[format_], parts, documents)
        elif format_.role is Role.REPORT and format_ in texts:
            _read_whole(format_, texts.pop(format_), outcomes[format_], parts)
    return parts


def _read_hlo(texts: Texts, outcomes: Outcomes, parts: Parts) -> None:
    """Read the HLO text, from the first format that has one."""
    format_ = _with_hlo(texts)
    if format_ is not None:
        _read_whole(format_, texts.pop(format_), outcomes[format_], parts)


def _with_hlo(texts: Texts) -> Format | None:
    """The first format that has an HLO text."""
    return next((f for f in FORMATS if f.role is Role.PROGRAM and f in texts), None)


def _read_whole(format_: Format, text: bytes, outcome: FileOutcome, parts: Parts) -> None:
    """Read a file that consists of one part."""
    with outcome.recording():
        lines, damaged = _lines(format_, text)
        part = format_.read(lines)
        if damaged:
            lines_are = "1 line is" if len(damaged) == 1 else f"{len(damaged)} lines are"
            why = Unread(damaged[0], f"{lines_are} not read, whose bytes are not UTF-8")
            part.unread.insert(0, why)
        formats.store_part(parts, format_, part)
        outcome.leave_out(getattr(part, "unread", ()))
        outcome.pass_over(getattr(part, "not_understood", ()))


def _lines(format_: Format, text: bytes) -> tuple[Lines, list[int]]:
    """The lines of a file, and the line numbers of corrupt instructions of HLO text."""
    if format_.role is Role.PROGRAM:
        return split_hlo_lines(text)
    return split_complete_lines(text), []


def _read_document(
    format_: Format, text: bytes, outcome: FileOutcome, parts: Parts, documents: dict[Format, Lines]
) -> None:
    """Read every section of a file; a section is read wholly or not at all.

    `documents` receives the lines of each section. Raises DumpError.
    """
    lines = split_lines(text)
    found = formats.sections(lines)
    if format_ not in found:
        raise DumpError(f"not a dump of {format_}: it starts with {excerpt(lines.text[0])}", line=1)
    for section, part in found.items():
        # The first file of older dumps holds all parts; every other file holds one part.
        if section != format_ and format_ != FIRST:
            raise DumpError(
                f"expected {format_} alone, found {section}: it is another dump's file",
                part.first_number,
            )
    errors = []
    newer: NotUnderstoods = ()
    for section, part in found.items():
        outcome.holds = (*outcome.holds, section.title)
        if section in documents:
            parts.doubled.append(section.title)
        documents[section] = part
        try:
            if part.last_number == lines.last_number:
                check_last_line_end(text)
            if section.role is Role.ASSIGNMENT:
                read = section.read(part)
                formats.store_part(parts, section, read)
                newer = (*newer, *read.not_understood)
        except DumpError as error:
            errors.append(error)
    if errors:
        outcome.status = FAILED if len(errors) == len(found) else PARTIAL
        outcome.line, outcome.message = errors[0].line, str(errors[0])
    else:
        outcome.pass_over(newer)


def _read_alone(format_: Format, text: bytes, outcome: FileOutcome, parts: Parts) -> None:
    """Read what a file says that is all there is of a program: somebody may have pasted it."""
    try:
        if format_ is formats.REPORT:
            lines = split_lines(text)
            totals, allocations = read_totals(lines), read_rounded_allocations(lines)
            if not totals:
                return
            parts.totals, parts.buffer_assignment = totals, part_as_tables(allocations)
            if outcome.status == FAILED:
                outcome.status = PARTIAL
            outcome.note("of a usage report alone totals are exact, and other sizes are rounded")
        elif outcome.status == FAILED and set(outcome.holds) <= {format_.title}:
            pasted = read_pasted_assignment(split_lines(text))
            if pasted is not None:
                # The last line that is there may be cut.
                if pasted.unread and not text.endswith(b"\n"):
                    pasted.is_complete = False
                parts.buffer_assignment = part_as_tables(pasted)
                outcome.status, outcome.line, outcome.message = OK, None, None
                outcome.holds = (format_.title,)
                outcome.leave_out(pasted.unread)
    except DumpError:
        return  # The file's outcome says what is wrong.


def add_definitions(parts: Parts, used: UsedValues, section: Lines, outcomes: Outcomes) -> None:
    """Read the definitions in Used values, which replace a missing HLO text."""
    outcome = next(file for file in outcomes.values() if USED_VALUES.title in file.holds)
    try:
        definitions = read_definitions(read_definition_lines(section))
        parts.used_values = replace(
            used, definitions=definition_table(definitions), unread=tuple(definitions.unread)
        )
        outcome.leave_out(definitions.unread)
    except DumpError as error:
        parts.used_values = None
        if outcome.status == OK:
            alone = len(outcome.holds) == 1
            outcome.status = FAILED if alone else PARTIAL
            outcome.line, outcome.message = error.line, str(error)


# A program as XLA dumped it: a few files, each of one format.

# The heading of the frames in HLO text.
_FRAMES = f"\n{FRAME_TABLES[-1]}\n".encode()
# The texts between passes, in a module's id.
_PASSES = "passes"
# What the runtime's list of steps says, in a module's id.
_SHARED = "shared-memory"
_NO_ASSIGNMENT = (
    "no buffer assignment: the program comes from JAX's compilation cache, or an early stage of "
    "compilation; JAX_ENABLE_COMPILATION_CACHE=false compiles it anew"
)

# Dumps of this size are read and hashed by as many threads; for others threads cost more.
_LARGE_BYTES = 4 << 20
_FILES_AT_ONCE = 2


@dataclass(frozen=True)
class DumpedProgram:
    """The files of one program, by format; see `program.Program`.

    passes: its texts between the compiler's passes, in order; thunks: the two files of the
    runtime's list of steps, by what they are.
    """

    key: Key
    files: Mapping[Format, SourceFile]
    passes: Sequence[tuple[PassName, SourceFile]] = ()
    thunks: Mapping[str, SourceFile] = field(default_factory=dict)

    @property
    def oom(self) -> bool:
        """XLA writes these files only if it ran out of memory after buffer assignment."""
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
            contents[BINARY.name] = binary.missing_in_text
        if self.passes:
            # To hash the texts would be to read all of them for a program that is stored.
            contents[_PASSES] = _sha256(
                "\n".join(f"{file.name} {file.size}" for _, file in self.passes).encode()
            )
        shared = self._shared_memory(outcomes)
        if shared:
            contents[_SHARED] = _sha256(repr(sorted(shared.items())).encode())
        module_id = ids.module_id(name, contents.items())
        content = {format_: text for format_, text in texts.items() if format_ in _CONTENT}
        found = Identified(module_id, name, list(outcomes.values()), settings, content)
        found.shared_memory = shared
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
            path = self.files[format_].path
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

    def read(self, identified: Identified) -> Parts | None:
        """Parse each file as far as possible."""
        texts: Texts = identified.content
        outcomes = {BY_NAME[file.kind]: file for file in identified.files}
        documents: dict[Format, Lines] = {}
        is_alone = len(formats.MAKES_A_DUMP & outcomes.keys()) == 1
        alone = {f: texts[f] for f in (FIRST, formats.REPORT) if is_alone and f in texts}
        parts = read_texts(texts, outcomes, documents)
        is_damaged = any(
            file.status != OK and format_.role in (Role.ASSIGNMENT, Role.PROGRAM)
            for format_, file in outcomes.items()
        )
        if is_damaged and BINARY in self.files and BINARY not in outcomes:
            self._read_files([BINARY], texts, outcomes)
            if BINARY in texts:
                outcomes[BINARY].sha256 = _sha256(texts[BINARY])
            identified.files.append(outcomes[BINARY])
        for format_, text in alone.items():
            _read_alone(format_, text, outcomes[format_], parts)
        if BINARY in texts:
            with outcomes[BINARY].recording():
                parts = with_binary(parts, read_hlo_proto(texts.pop(BINARY)), is_damaged=is_damaged)
                if parts.is_binary:
                    parts = with_space_names(parts, self.key.platform)
                    outcomes[BINARY].holds = (FIRST.title,)
        if parts.hlo is not None and identified.shared_memory:
            parts.hlo = _with_shared_memory(parts.hlo, identified.shared_memory)
        parts.pass_texts = self._pass_texts()
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
        found = [
            PassText(name.step, name.pipeline, name.compiler_pass, partial(_read_pass, file))
            for name, file in self.passes
        ]
        final = self.files.get(BY_NAME["hlo"])
        if found and final is not None:
            last = max(text.step for text in found)
            found.append(PassText(last + 1, None, None, partial(_read_pass, final)))
        return found

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
    try:
        text = file.read()
    except DumpError as error:
        outcome.fail(error)
        return None
    outcome.bytes = len(text)
    if outcome.kind != BINARY.name:
        outcome.sha256 = _sha256(text)
    return text


def _with_shared_memory(hlo: HloText, shared: Mapping[str, int]) -> HloText:
    """The text with the shared memory of its kernels."""
    instructions = hlo.instructions
    at = pc.index_in(instructions["instruction"], value_set=pa.array(shared, pa.large_string()))
    used = pa.array(shared.values(), pa.int64()).take(at.combine_chunks())
    number = instructions.schema.get_field_index("used_scoped_bytes")
    return replace(hlo, instructions=instructions.set_column(number, "used_scoped_bytes", used))


def _read_pass(file: SourceFile) -> tuple[PassProgram | None, int]:
    """A text between two passes, and its size; None if it cannot be read."""
    try:
        text = file.read()
        return read_pass_text(text), len(text)
    except DumpError:
        return None, 0


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
        if format_.role not in (Role.FLAGS, Role.DEVICE):
            continue
        with outcomes[format_].recording():
            if format_.role is Role.DEVICE:
                settings.device |= _read_setting(format_, text)
            # JAX 0.6 writes an empty file where no option is set.
            elif text:
                settings.flags = (settings.flags or {}) | _read_setting(format_, text)
    return settings


@lru_cache(maxsize=16)
def _read_setting(format_: Format, text: bytes) -> dict[str, Any]:
    """A file's flags or device; cached, because XLA writes the same for each module of a run."""
    found: dict[str, Any] = format_.read(split_complete_lines(text))
    return found


# Groups a folder's files into the programs that they dump.

_XLA_MODULE = re.compile(
    r"^(?:\d{10,20}\.)?module_(?P<number>[0-9]{1,9})\.(?P<name>.*?)(?:\.cl_(?P<compiler>\d+))?$"
)
# Files of people's own are shorter.
_LARGEST_SOURCE = 4 << 20
_RENAMED_ENDINGS = (".gz", ".zst", ".txt", ".pb", ".hlo", ".log")

_Files = dict[Format, SourceFile]
# The files that describe the device, by platform.
_DEVICES = {"tpu": BY_NAME["target-arguments"], "gpu": BY_NAME["gpu-target-config"]}


def is_wanted(name: str) -> bool:
    """Whether a file of this name may be part of a dump."""
    return (
        formats.by_name(name) is not None
        or formats.may_be_renamed(name)
        or pass_name(name) is not None
        or thunks_name(name) is not None
    )


def find_dumps(
    files: Iterable[SourceFile],
    refuse: Callable[[SourceFile, DumpError], None],
    *,
    named_file: bool = False,
) -> list[DumpedProgram]:
    """Group files into programs, in the order of workload and module number.

    A file with an unknown name is recognised by its first bytes. With `named_file` the user
    named this one file, so its first bytes are read whatever its name. `refuse` receives the
    files that cannot be read.
    """
    dumps: dict[tuple[str, str, str | None], _Files] = defaultdict(dict)
    settings: dict[tuple[str, str], _Files] = defaultdict(dict)
    devices: dict[tuple[str, Format], list[SourceFile]] = defaultdict(list)
    passes: dict[tuple[str, str], dict[int, tuple[PassName, SourceFile]]] = defaultdict(dict)
    thunks: dict[tuple[str, str], dict[str, SourceFile]] = defaultdict(dict)
    for file in files:
        workload = file.folder
        name = pass_name(file.name)
        if name is not None:
            # A plain file precedes its compressed copy.
            passes[workload, name.stem].setdefault(name.step, (name, file))
            continue
        step_list = thunks_name(file.name)
        if step_list is not None:
            stem, part = step_list
            thunks[workload, stem].setdefault(part, file)
            continue
        try:
            known = format_of(file, is_named=named_file)
        except DumpError as error:
            refuse(file, error)
            continue
        if known is None:
            continue
        if known.format.role in (Role.FLAGS, Role.DEVICE):
            # Their names have no target, so they belong to every dump of this stem.
            settings[workload, known.stem].setdefault(known.format, file)
            if known.format.role is Role.DEVICE:
                devices[workload, known.format].append(file)
            continue
        key = (workload, known.stem, known.target)
        there = dumps[key].get(known.format)
        if there is not None and _plain_name(there) != _plain_name(file):
            # `a.txt` and `a.log` may both be HLO text, and both must be read.
            key = (workload, _plain_name(file), known.target)
        # A plain file precedes its compressed copy and is used.
        dumps[key].setdefault(known.format, file)
    device_of = cache(lambda workload, format_: _only_one(devices[workload, format_]))
    found = []
    for key, held in dumps.items():
        if formats.MAKES_A_DUMP.isdisjoint(held):
            continue
        parsed, beside = parse_key(*key), settings[key[0], key[1]]
        device = _DEVICES.get(parsed.platform or "")
        # XLA may describe the device beside the first module of the process alone.
        if device is not None and device not in beside and (only := device_of(key[0], device)):
            beside = beside | {device: only}
        between = passes.get((key[0], key[1]), {})
        texts = [between[step] for step in sorted(between)]
        steps = thunks.get((key[0], key[1]), {})
        found.append(DumpedProgram(parsed, held | beside, texts, steps))
    found.sort(
        key=lambda program: (
            program.key.workload,
            program.key.number or 0,
            program.key.name,
            program.key.target or "",
        )
    )
    return found


def _only_one(files: list[SourceFile]) -> SourceFile | None:
    """The first of some files, None if they differ or cannot be read."""
    try:
        return files[0] if len({file.read() for file in files}) == 1 else None
    except DumpError:  # The program of the file says so.
        return None


def parse_key(workload: str, stem: str, target: str | None) -> Key:
    """Parse a dump's stem, for example `module_0000.jit_train_step.cl_933746096`."""
    platform = None if target is None else "cpu" if target == "cpu" else "gpu"
    match = _XLA_MODULE.match(stem)
    if match is None:
        return Key(workload, stem, platform=platform, name=stem, target=target)
    # XLA omits the target only for TPU.
    return Key(
        workload,
        match["name"],
        int(match["number"]),
        platform or "tpu",
        name=stem,
        target=target,
        compiler=match["compiler"],
    )


def _plain_name(file: SourceFile) -> str:
    """A file's name without its compression suffix."""
    return file.name.removesuffix(".gz").removesuffix(".zst")


def format_of(file: SourceFile, *, is_named: bool) -> NamedFile | None:
    """What a file holds, by its name or else by its first bytes. Raises DumpError.

    In a file that the user named, a buffer assignment may stand anywhere: in a source's comment.
    """
    name = file.name
    known = formats.by_name(name)
    if known is not None or not (is_named or formats.may_be_renamed(name)):
        return known
    found = formats.by_content(file.read(formats.SNIFFED_BYTES))
    if found is None and formats.is_binary(name):
        found = formats.BINARY
    may_be_pasted = found is None and is_named and file.size <= _LARGEST_SOURCE
    if may_be_pasted and contains_assignment(file.read().decode(errors="replace")):
        found = formats.ASSIGNMENT
    if found is None:
        return None
    for ending in _RENAMED_ENDINGS:
        name = name.removesuffix(ending)
    return NamedFile(name, found, None)
