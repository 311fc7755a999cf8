"""A program that someone holds compiled: HLO text, an HloProto, or an object of JAX."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any

from ...schema import ids
from ...schema.errors import UsageError
from ...xla.errors import DumpError
from ...xla.parts import Parts
from ..outcomes import FileOutcome
from ..readers.hlo_header import header_name
from ..readers.hlo_text import read_hlo_text
from ..readers.lines import split_complete_lines
from ..readers.proto_identity import find_hlo_proto, identify_hlo_proto
from ..readers.wire import encode_varint
from .files import SourceFile, exists, is_folder
from .hlo_protos import HloProtoProgram, platform_of
from .program import Identified, Key, Program

# Where the figures of a program come from.
BUFFER_ASSIGNMENT = "buffer assignment"
SERIALIZED = "serialized executable"
HLO_PROTO = "HloProto without buffer assignment"
TEXT = "HLO text"
_LONGEST_NAME = 80


# A program, and where its figures come from.
Read = tuple[Program, str]


def program_of(given: object) -> Read:
    """The program that the user gives, and where its figures come from. Raises UsageError."""
    # HLO text has several lines, a path has one.
    if isinstance(given, str) and ("\n" in given or given[:9] in ("", "HloModule")):
        return _of_text(given.encode(errors="surrogateescape"))
    if isinstance(given, str | os.PathLike):
        return _of_content(_read_file(Path(given)))
    if isinstance(given, bytes | bytearray | memoryview):
        return _of_content(bytes(given))
    stage = unwrap(given)
    if is_compiled(stage):
        return _of_compiled(stage)
    raise cannot_be_read(stage)


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
        return SourceFile(path.name, path, status.st_mtime, status.st_size).read()
    except DumpError as error:
        raise UsageError(f"{path}: {error}", "program") from None


def _of_content(content: bytes) -> Read:
    # An HloProto starts with its module's tag and length, which no HLO text does.
    is_text = content.lstrip()[:9] == b"HloModule" or content[:1] != b"\x0a"
    return _of_text(content) if is_text else _of_proto(content)


def _of_text(text: bytes) -> Read:
    # What a program prints of itself may lack the end of its last line.
    return TextProgram(text.rstrip(b"\n") + b"\n", modified=0.0), TEXT


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
    program = HloProtoProgram(key, content, "HloProto", "hlo-proto", modified=0.0)
    found = BUFFER_ASSIGNMENT if identity.has_assignment else HLO_PROTO
    return program, source or found


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
    module_field = b"\x0a" + encode_varint(len(module)) + module
    return module_field + b"\x1a" + encode_varint(len(assignment)) + assignment


# HLO text in memory: `compiled.as_text()` in a notebook.


@dataclass(frozen=True)
class TextProgram:
    """HLO text in memory; see `program.Program`."""

    text: bytes
    modified: float
    oom: bool = False

    @property
    def key(self) -> Key:
        """The program is called by its module's name."""
        name = header_name(self.text[:1000].decode(errors="replace")) or "module"
        return Key(".", name, name=name)

    @property
    def size_bytes(self) -> int:
        """The length of the text."""
        return len(self.text)

    def fingerprint(self) -> Identified:
        """Hash the text."""
        sha256 = hashlib.sha256(self.text).hexdigest()
        name = self.key.module_name
        file = FileOutcome("text", "hlo", len(self.text), sha256)
        return Identified(ids.module_id(name, [("hlo", sha256)]), name, [file])

    def read(self, identified: Identified) -> Parts | None:
        """Parse the text."""
        (file,) = identified.files
        with file.recording():
            program = read_hlo_text(split_complete_lines(self.text))
            file.leave_out(program.unread)
            file.pass_over(program.not_understood)
            return Parts(program=program)
        return None


# What a user's object of JAX is: told by the module of its type, so jax is never imported.

_WHAT = "what"


def is_of_jax(given: object) -> bool:
    """Whether jax or jaxlib made the object."""
    return any(
        kind.__module__.partition(".")[0] in ("jax", "jaxlib") for kind in type(given).__mro__
    )


def unwrap(given: Any) -> Any:
    """The lowered or compiled program of JAX inside a framework's wrapper; other objects as is.

    The Lowered and Compiled of Flax NNX and of Equinox have it as `lowered` or `compiled`.
    """
    if is_of_jax(given):
        return given
    stages = (getattr(given, name, None) for name in ("lowered", "compiled"))
    return next((stage for stage in stages if is_of_jax(stage)), given)


def is_compiled(given: object) -> bool:
    """Whether it is what `lowered.compile()` gives."""
    stage = unwrap(given)
    return is_of_jax(stage) and hasattr(stage, "runtime_executable")


def is_lowered(given: object) -> bool:
    """Whether it is what `jax.jit(f).lower(…)` gives."""
    stage = unwrap(given)
    return is_of_jax(stage) and hasattr(stage, "compile") and hasattr(stage, "compiler_ir")


def to_lowered(given: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The program lowered, from a jitted function and its arguments. Raises UsageError."""
    if is_lowered(given):
        if arguments or named:
            raise UsageError("it is lowered already: leave its arguments out", _WHAT)
        return unwrap(given)
    if is_compiled(given):
        raise UsageError(
            "it is compiled already: read it with memhouse.read(compiled), or record the lowered"
            " program: jax.jit(f).lower(...)",
            _WHAT,
        )
    function, arguments, named = _unbound(given, arguments, named)
    if _can_lower(function):
        lowered = unwrap(function.lower(*arguments, **named))
        if is_lowered(lowered):
            return lowered
    if callable(given):
        raise UsageError("only a jitted function can be recorded: use jax.jit(f)", _WHAT)
    raise UsageError(
        f"expected a jitted function of JAX or jax.jit(f).lower(...), found {_kind(given)}", _WHAT
    )


def _can_lower(given: object) -> bool:
    """Whether it is a jitted function of JAX or of a framework; text has a method `lower` too."""
    return not isinstance(given, str | bytes) and callable(getattr(given, "lower", None))


def _unbound(
    function: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function and arguments of a partial, Python's or Equinox's, or of a bound method."""
    while True:
        if isinstance(function, MethodType):
            function, arguments = function.__func__, (function.__self__, *arguments)
        elif all(hasattr(function, name) for name in ("func", "args", "keywords")):
            arguments = (*function.args, *arguments)
            named = dict(function.keywords) | named
            function = function.func
        else:
            return function, arguments, named


def cannot_be_read(given: object) -> UsageError:
    """The error for an object that holds no compiled program."""
    if is_lowered(given) or _can_lower(given):
        return UsageError(
            "it is not compiled yet: use memhouse.record, which compiles it", "program"
        )
    return UsageError(
        "expected a compiled program of JAX, HLO text (compiled.as_text()), the bytes of an"
        f" HloProto, or a file's path, found {_kind(given)}",
        "program",
    )


def _kind(given: object) -> str:
    return "None" if given is None else f"an object of type {type(given).__name__}"
