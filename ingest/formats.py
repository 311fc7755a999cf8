"""The formats that memhouse reads, one registry, and what else lies beside a dump."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .readers.buffer_assignment import read_buffer_assignment
from .readers.compiler_settings import (
    read_compilation_environment,
    read_debug_options,
    read_flagfile,
    read_gpu_target,
    read_tpu_target,
)
from .readers.hlo_proto import read_hlo_proto
from .readers.hlo_text import read_hlo_text
from .readers.lines import Lines, split_sections, uncompressed_name
from .readers.live_range import read_live_ranges
from .readers.pasted import contains_assignment
from .readers.usage_report import read_usage_report
from .readers.used_values import read_used_values

# What lies beside the files of a dump: told by name alone.
#
# A dump folder holds thousands of files of other stages of the compiler. `formats.by_name` goes
# first: what is a format there is not looked up here.

_MAKE = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
_FINAL = (
    "give the folder with the final stage, *after_optimizations.txt and "
    f"*after_optimizations-buffer-assignment.txt; {_MAKE} makes them"
)


@dataclass(frozen=True)
class OtherFile:
    """A kind of files that are no part of a dump.

    name: unique; title: what it is, for many files; pattern: found in the file's name;
    instead: what to give to ingest in its place.
    """

    name: str
    title: str
    pattern: str
    instead: str = _FINAL


_DUMP = r"\.(?:txt|hlo\.pb|pb|dot|html|url)$"
# The first pattern that is found counts.
OTHER_FILES = (
    OtherFile("before-optimizations", "HLO before optimizations", rf"before_optimizations{_DUMP}"),
    OtherFile(
        "before-buffer-assignment",
        "HLO before buffer assignment",
        rf"after_optimizations_before_buffer_assignment{_DUMP}",
    ),
    OtherFile(
        "after-buffer-assignment",
        "HLO after buffer assignment, without the assignment",
        rf"after_optimizations_after_buffer_assignment{_DUMP}",
    ),
    OtherFile("after-codegen", "HLO after code generation", rf"after_codegen{_DUMP}"),
    OtherFile(
        "oom-list",
        "lists of what filled the memory when it ran out",
        r"\.oom_top_memory_consuming_instructions$|\.peak_memory_tensors\.txt$",
    ),
    OtherFile("usage-report-pb", "memory usage reports in binary", r"-memory-usage-report\.pb$"),
    OtherFile(
        "passes",
        "HLO texts between two passes",
        r"^(?:\d{10,20}\.)?module_.*\.\d{4,9}\..*(?:after|before)_.*\.txt$",
    ),
    OtherFile("pass", "HLO between two passes", rf"\.\d{{4}}\..*{_DUMP}"),
    OtherFile("stage", "HLO of another stage", r"^module_\d+\..*\.(?:hlo\.pb|hlo)$"),
    OtherFile("object", "machine code", r"\.o$|\.so$|\.cubin$|\.hsaco$|\.sass$"),
    OtherFile("llvm", "LLVM and assembly code", r"\.ll$|\.bc$|\.ptx$|\.s$|\.asm$"),
    OtherFile("mlir", "MLIR and StableHLO", r"\.mlir(?:bc)?$"),
    OtherFile(
        "thunks", "the runtime's list of steps", r"thunk_(?:sequence|metadata|schedule)[\w.]*$"
    ),
    OtherFile("autotuning", "results of autotuning", r"autotune_?(?:results|cache)"),
    OtherFile("graph", "drawn graphs", r"\.(?:dot|svg|html|png)$"),
    OtherFile(
        "session", "profiles of XProf, with the modules that ran", r"\.(?:xplane|hlo_proto)\.pb$",
        f"no module ran while the profile was recorded: {_MAKE} makes a dump",
    ),
    OtherFile(
        "log", "logs, searched for out-of-memory messages",
        r"\.(?:log|err|out|stderr|stdout)$|(?:^|[._-])(?:error|stderr|stdout)\.txt$",
        f"they have no out-of-memory message of XLA; {_MAKE} makes a dump",
    ),
    OtherFile(
        "trace", "profiles for a trace viewer", r"\.trace(?:\.json)?(?:\.gz)?$|^perfetto.*\.gz$",
        f"a profile holds events, its dump the memory: {_MAKE} makes the dump",
    ),
    OtherFile(
        "pprof", "JAX's device memory profiles", r"^memory.*\.prof$|\.prof(?:\.gz)?$",
        f"such a profile has no live ranges: {_MAKE} makes a dump",
    ),
    OtherFile(
        "checkpoint", "data of a checkpoint",
        r"^manifest\.ocdbt$|^ocdbt\.process_|^_(?:METADATA|CHECKPOINT_METADATA|sharding)$|\.orbax|"
        r"^commit_success\.txt$|\.ckpt\b|^checkpoint$|\.safetensors$|\.npz$|\.pt$|\.pth$|\.msgpack$",
        f"a checkpoint holds weights: {_MAKE} makes a dump of the program",
    ),
    OtherFile(
        "cache", "programs in JAX's compilation cache", r"^jit_.*-(?:cache|atime)$",
        "the cache holds machine code: compile without it (JAX_ENABLE_COMPILATION_CACHE=false) "
        f"and with {_MAKE}",
    ),
    OtherFile("warehouse", "warehouses of memhouse", r"\.(?:duckdb|duckdb\.wal|db)$",
        "a warehouse holds what was ingested: give it by --db"),
    OtherFile("settings", "settings of a compilation", r"^(?:topology|compile_options)\.pb$"),
)  # fmt: skip


@lru_cache(maxsize=10_000)
def other_by_name(name: str) -> OtherFile | None:
    """The kind that a file's name (the last part of its path) tells; None if none does."""
    for candidate in (name, uncompressed_name(name)):
        for other in OTHER_FILES:
            if re.search(other.pattern, candidate):
                return other
    return None


# The formats that memhouse reads: one registry.
#
# To add a format, add one entry here and one reader in `readers/`. The name of a dump's file is
# `module_NNNN.NAME[.cl_CHANGELIST].[TARGET_]after_optimizations<SUFFIX>`, where NAME may hold
# dots. A folder holds thousands of other files: ingest excludes them by name, unopened.
#
# Up to about JAX 0.9 one `-buffer-assignment.txt` holds BufferAssignment, Used values and
# HloLiveRange (`cpu/jax-0.9.0`, the seeds). Since 0.10 each part has its own file.


class Role(Enum):
    """The role of a file in its dump.

    Any file of ASSIGNMENT, PROGRAM, BINARY or REPORT makes a dump. A BINARY holds what the files of
    ASSIGNMENT and PROGRAM hold. A module's id is the hash of these files and of a REPORT. FLAGS,
    DEVICE and OOM belong to the dump, but not to the module. A file of OOM is there only if XLA
    ran out of memory.
    """

    ASSIGNMENT = 1
    PROGRAM = 2
    BINARY = 3
    REPORT = 4
    FLAGS = 5
    DEVICE = 6
    OOM = 7


@dataclass(frozen=True, eq=False)
class Format:
    """A format of files.

    name: its name in `dump_files`; title: the content's name in messages; start, ending: of a
    file's name, `start` a pattern with the groups stem and target; part: the field of Parts, flags
    or device to fill, empty if the file fills several or none; read: from the file's lines, of a
    BINARY from its bytes, to the part; opening: the text's beginning, None if only the name
    identifies the format.
    """

    name: str
    title: str
    role: Role
    start: str
    ending: str
    part: str
    read: Callable[[Any], Any]
    opening: str | None = None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of a file's whole name."""
        return re.compile(f"^{self.start}{re.escape(self.ending)}$")

    def __str__(self) -> str:
        return self.title

    def __reduce__(self) -> tuple[Callable[[str], "Format"], tuple[str]]:
        # Another process has the same registry.
        return _named, (self.name,)


# What precedes the ending of a file's name.
_TARGET = r"(?:(?P<target>cpu|gpu|sm_\d+(?:\.\d+)?[a-z]*_gpu|gfx\w+_gpu)_)?"
_FINAL_STAGE = rf"(?P<stem>.*?)\.?{_TARGET}"
_ASSIGNMENT = rf"(?P<stem>.*?)(?:\.?{_TARGET}after_optimizations)?"
_MODULE = r"(?P<stem>(?:\d{10,20}\.)?module_.*)(?P<target>)"
_ANY = r"(?P<stem>.*)(?P<target>)"

# A module's id is the hash over its files in this order of formats.
FORMATS = (
    Format(
        "buffer-assignment", "BufferAssignment", Role.ASSIGNMENT, _ASSIGNMENT,
        "-buffer-assignment.txt", "assignment", read_buffer_assignment, "BufferAssignment:",
    ),
    # The line `Total bytes used` precedes `Used values:` in every version.
    Format(
        "buffer-assignment-values", "Used values", Role.ASSIGNMENT, _ASSIGNMENT,
        "-buffer-assignment-values.txt", "used_values", read_used_values, "Total bytes used: ",
    ),
    Format(
        "live-range", "HloLiveRange", Role.ASSIGNMENT, _ASSIGNMENT,
        "-live-range.txt", "live_ranges", read_live_ranges, "HloLiveRange (max ",
    ),
    Format(
        "hlo", "HloModule", Role.PROGRAM, _FINAL_STAGE,
        "after_optimizations.txt", "program", read_hlo_text, "HloModule ",
    ),
    # XLA writes this text only if it ran out of memory after buffer assignment. The text equals
    # the HLO text and replaces the HLO text if that file is missing.
    Format(
        "oom-hlo", "HloModule", Role.PROGRAM, _ANY,
        ".oom_intermediate_module.txt", "program", read_hlo_text,
    ),
    Format(
        "hlo-proto", "HloProto", Role.BINARY, _FINAL_STAGE,
        "after_optimizations.hlo.pb", "", read_hlo_proto,
    ),
    # The same program as in `oom-hlo`, without an assignment: only its being there says something.
    Format(
        "oom-hlo-proto", "HloProto", Role.OOM, _ANY,
        ".oom_intermediate_module.hlo.pb", "", read_hlo_proto,
    ),
    Format(
        "memory-usage-report", "memory usage report", Role.REPORT, _ASSIGNMENT,
        "-memory-usage-report.txt", "space_names", read_usage_report, "Memory Space: ",
    ),
    Format("flagfile", "flags", Role.FLAGS, _MODULE, ".flagfile", "flags", read_flagfile),
    Format(
        "debug-options", "flags", Role.FLAGS, _MODULE,
        ".debug_options", "flags", read_debug_options,
    ),
    # Options of the call are in this file alone, so its values replace those of the others.
    Format(
        "tpu-comp-env", "flags", Role.FLAGS, _MODULE,
        ".tpu_comp_env.txt", "flags", read_compilation_environment,
    ),
    Format(
        "target-arguments", "target", Role.DEVICE, _MODULE,
        ".target_arguments.txt", "device", read_tpu_target,
    ),
    Format(
        "gpu-target-config", "target", Role.DEVICE, _MODULE,
        ".gpu_target_config.pbtxt", "device", read_gpu_target,
    ),
)  # fmt: skip
BY_NAME = {format_.name: format_ for format_ in FORMATS}
_ENDINGS = (*(format_.ending for format_ in FORMATS), ".gz", ".zst")


def _named(name: str) -> Format:
    return BY_NAME[name]


OOM_HLO = BY_NAME["oom-hlo"]
BINARY = BY_NAME["hlo-proto"]
ASSIGNMENT = BY_NAME["buffer-assignment"]
REPORT = BY_NAME["memory-usage-report"]

MAKES_A_DUMP = frozenset(
    f for f in FORMATS if f.role in (Role.ASSIGNMENT, Role.PROGRAM, Role.BINARY, Role.REPORT)
)
IS_CONTENT = tuple(f for f in FORMATS if f.role not in (Role.FLAGS, Role.DEVICE, Role.OOM))
# The bytes of a file that identify its format.
SNIFFED_BYTES = 96

# Used values begin with the same total.
_OLD_REPORT = re.compile(rb"Total bytes used: \d+ \([^()]*\)\s+Alloc")
# A module's field, its length, then the module's name as the first field in it.
_HLO_PROTO = re.compile(rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x0a[\x01-\x7f][\w.<>\[\]-]+", re.ASCII)
# A file that a user has renamed may have any format; its first bytes identify the format.
_MAYBE_TEXT = re.compile(r"^(?!(?:\d{10,20}\.)?module_\d+\.)[^.](?:[^.]*|.*\.(?:txt|hlo|log))$")


class NamedFile(NamedTuple):
    """What a file's name says: the stem of its dump, its format and its target."""

    stem: str
    format: Format
    target: str | None


def by_name(name: str) -> NamedFile | None:
    """The file that a name (the last part of a path) describes, None if not part of a dump."""
    # Most files of a folder are of other stages.
    return _by_name(name) if name.endswith(_ENDINGS) else None


# The files of every run and host have the same names.
@lru_cache(maxsize=50_000)
def _by_name(name: str) -> NamedFile | None:
    name = uncompressed_name(name)
    for format_ in FORMATS:
        if name.endswith(format_.ending) and (match := format_.pattern.match(name)):
            return NamedFile(match["stem"], format_, match["target"] or None)
    return None


def by_content(beginning: bytes) -> Format | None:
    """The format whose opening is a file's first bytes, None if there is none."""
    if _HLO_PROTO.match(beginning):
        return BINARY
    start = beginning.lstrip()
    if _OLD_REPORT.match(start):
        return REPORT
    if contains_assignment(start.decode(errors="replace"), at_start=True):
        return ASSIGNMENT
    for format_ in FORMATS:
        if format_.opening is not None and start.startswith(format_.opening.encode()):
            return format_
    return None


def may_be_renamed(name: str) -> bool:
    """Whether `by_content` should examine a file that `by_name` does not know."""
    return _MAYBE_TEXT.match(uncompressed_name(name)) is not None


def is_binary(name: str) -> bool:
    """Whether a file that the user named, and `by_name` does not know, may be a BINARY."""
    return uncompressed_name(name).endswith(".pb") and other_by_name(name) is None


def sections(lines: Lines) -> dict[Format, Lines]:
    """The sections of a buffer-assignment document, in order. Raises DumpError."""
    openings = {f: f.opening for f in FORMATS if f.opening is not None}
    return split_sections(lines, openings)
