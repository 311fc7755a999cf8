"""A program that someone holds compiled: HLO text, an HloProto, or an object of JAX."""

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ...schema.errors import UsageError
from ...xla.errors import DumpError
from ..readers.proto_identity import find_hlo_proto, identify_hlo_proto
from .files import SourceFile, exists, is_folder
from .hlo_in_memory import TextProgram
from .hlo_protos import HloProtoProgram, InMemory, platform_of
from .jax_objects import cannot_be_read, is_compiled
from .program import Key, Program

# Where the figures of a program come from.
BUFFER_ASSIGNMENT = "buffer assignment"
SERIALIZED = "serialized executable"
HLO_PROTO = "HloProto without buffer assignment"
TEXT = "HLO text"
_LONGEST_NAME = 80


class Read(NamedTuple):
    """A program, and where its figures come from."""

    program: Program
    source: str


def program_of(given: object) -> Read:
    """The program that the user gives. Raises UsageError."""
    # HLO text has several lines, a path has one.
    if isinstance(given, str) and ("\n" in given or given[:9] in ("", "HloModule")):
        return _of_text(given.encode(errors="surrogateescape"))
    if isinstance(given, str | os.PathLike):
        return _of_content(_read_file(Path(given)))
    if isinstance(given, bytes | bytearray | memoryview):
        return _of_content(bytes(given))
    if is_compiled(given):
        return _of_compiled(given)
    raise cannot_be_read(given)


def _read_file(path: Path) -> bytes:
    """The content of a file that the user names, uncompressed."""
    if is_folder(path):
        raise UsageError(f"{path} is a folder: give one file of it, or ingest it", "program")
    if not exists(path):
        raise UsageError(
            f"not HLO text, nor a file: {str(path)[:_LONGEST_NAME]!r}: give the path of an .hlo.pb "
            "or of HLO text, or the text itself",
            "program",
        )
    try:
        status = path.stat()
        name = PurePosixPath(path.name)
        return SourceFile(name, path, status.st_mtime, status.st_size).read()
    except DumpError as error:
        raise UsageError(f"{path}: {error}", "program") from None


def _of_content(content: bytes) -> Read:
    # An HloProto starts with its module's tag and length, which no HLO text does.
    is_text = content.lstrip()[:9] == b"HloModule" or content[:1] != b"\x0a"
    return _of_text(content) if is_text else _of_proto(content)


def _of_text(text: bytes) -> Read:
    # What a program prints of itself may lack the end of its last line.
    return Read(TextProgram(text.rstrip(b"\n") + b"\n", modified=0.0), TEXT)


def _of_proto(content: bytes, source: str | None = None, platform: str | None = None) -> Read:
    try:
        identity = identify_hlo_proto(content)
    except DumpError as error:
        why = str(error).removeprefix("not a HloProto: ")
        raise UsageError(f"this is no HloProto: {why}", "program") from None
    if not identity.has_assignment and not identity.is_scheduled:
        raise UsageError(
            "it is of an early stage of compilation, without a schedule and a buffer assignment: "
            "give the compiled program, or its dump *after_optimizations.hlo.pb",
            "program",
        )
    key = Key(".", identity.module_name, platform=platform or platform_of(content))
    program = HloProtoProgram(key, InMemory(content), "HloProto", "hlo-proto", modified=0.0)
    found = BUFFER_ASSIGNMENT if identity.has_assignment else HLO_PROTO
    return Read(program, source or found)


def _of_compiled(compiled: Any) -> Read:
    """The most that the compiled program says: CPU's all, TPU's usually, GPU's the text."""
    executable = compiled.runtime_executable()
    # What a backend does not offer it refuses in its own way, with errors of many types.
    statistics = modules = platform = serialized = None
    with suppress(Exception):
        platform = _PLATFORMS.get(executable.client.platform)
    with suppress(Exception):
        statistics = compiled.memory_analysis()
    with suppress(Exception):
        modules = executable.hlo_modules()
    if whole := getattr(statistics, "serialized_hlo_proto", b""):  # up to jaxlib 0.5
        return _of_proto(whole, platform=platform)
    if modules is not None and len(modules) == 1:
        (module,) = modules
        if assignment := getattr(statistics, "serialized_buffer_assignment_proto", b""):
            content = _joined(module.as_serialized_hlo_module_proto(), assignment)
            return _of_proto(content, platform=platform)
        with suppress(Exception):
            serialized = executable.serialize()
        if found := find_hlo_proto(serialized or b"", module.name):
            return _of_proto(found, SERIALIZED, platform)
    text = compiled.as_text()
    if text is None:
        raise UsageError(
            "this backend says nothing of a compiled program: use memhouse.record(lowered)",
            "program",
        )
    return _of_text(text.encode())


_PLATFORMS = {"cpu": "cpu", "tpu": "tpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu"}


def _joined(module: bytes, assignment: bytes) -> bytes:
    """An HloProto of its two parts."""
    return b"\x0a" + _length(module) + module + b"\x1a" + _length(assignment) + assignment


def _length(content: bytes) -> bytes:
    rest, found = len(content), bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])
