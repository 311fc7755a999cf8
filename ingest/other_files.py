"""What lies beside the files of a dump: told by name alone.

A dump folder holds thousands of files of other stages of the compiler. `formats.by_name` goes
first: what is a format there is not looked up here.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

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
    pattern: re.Pattern[str]
    instead: str


def _of(name: str, title: str, pattern: str, instead: str = _FINAL) -> OtherFile:
    return OtherFile(name, title, re.compile(pattern), instead)


_DUMP = r"\.(?:txt|hlo\.pb|pb|dot|html|url)$"
# The first pattern that is found counts.
OTHER_FILES = (
    _of("before-optimizations", "HLO before optimizations", rf"before_optimizations{_DUMP}"),
    _of(
        "before-buffer-assignment",
        "HLO before buffer assignment",
        rf"after_optimizations_before_buffer_assignment{_DUMP}",
    ),
    _of(
        "after-buffer-assignment",
        "HLO after buffer assignment, without the assignment",
        rf"after_optimizations_after_buffer_assignment{_DUMP}",
    ),
    _of("after-codegen", "HLO after code generation", rf"after_codegen{_DUMP}"),
    _of(
        "oom-list",
        "lists of what filled the memory when it ran out",
        r"\.oom_top_memory_consuming_instructions$|\.peak_memory_tensors\.txt$",
    ),
    _of("usage-report-pb", "memory usage reports in binary", r"-memory-usage-report\.pb$"),
    _of("pass", "HLO between two passes", rf"\.\d{{4}}\..*{_DUMP}"),
    _of("stage", "HLO of another stage", r"^module_\d+\..*\.(?:hlo\.pb|hlo)$"),
    _of("object", "machine code", r"\.o$|\.so$|\.cubin$|\.hsaco$|\.sass$"),
    _of("llvm", "LLVM and assembly code", r"\.ll$|\.bc$|\.ptx$|\.s$|\.asm$"),
    _of("mlir", "MLIR and StableHLO", r"\.mlir(?:bc)?$"),
    _of("thunks", "the runtime's list of steps", r"thunk_(?:sequence|metadata|schedule)[\w.]*$"),
    _of("autotuning", "results of autotuning", r"autotune_?(?:results|cache)"),
    _of("graph", "drawn graphs", r"\.(?:dot|svg|html|png)$"),
    _of(
        "session", "profiles of XProf, with the modules that ran", r"\.(?:xplane|hlo_proto)\.pb$",
        f"no module ran while the profile was recorded: {_MAKE} makes a dump",
    ),
    _of(
        "log", "logs, searched for out-of-memory messages",
        r"\.(?:log|err|out|stderr|stdout)$|(?:^|[._-])(?:error|stderr|stdout)\.txt$",
        f"they have no out-of-memory message of XLA; {_MAKE} makes a dump",
    ),
    _of(
        "trace", "profiles for a trace viewer", r"\.trace(?:\.json)?(?:\.gz)?$|^perfetto.*\.gz$",
        f"a profile holds events, its dump the memory: {_MAKE} makes the dump",
    ),
    _of(
        "pprof", "JAX's device memory profiles", r"^memory.*\.prof$|\.prof(?:\.gz)?$",
        f"such a profile has no live ranges: {_MAKE} makes a dump",
    ),
    _of(
        "checkpoint", "data of a checkpoint",
        r"^manifest\.ocdbt$|^ocdbt\.process_|^_(?:METADATA|CHECKPOINT_METADATA|sharding)$|\.orbax|"
        r"^commit_success\.txt$|\.ckpt\b|^checkpoint$|\.safetensors$|\.npz$|\.pt$|\.pth$|\.msgpack$",
        f"a checkpoint holds weights: {_MAKE} makes a dump of the program",
    ),
    _of(
        "cache", "programs in JAX's compilation cache", r"^jit_.*-(?:cache|atime)$",
        "the cache holds machine code: compile without it (JAX_ENABLE_COMPILATION_CACHE=false) "
        f"and with {_MAKE}",
    ),
    _of("warehouse", "warehouses of memhouse", r"\.(?:duckdb|duckdb\.wal|db)$",
        "a warehouse holds what was ingested: give it by --db"),
    _of("settings", "settings of a compilation", r"^(?:topology|compile_options)\.pb$"),
)  # fmt: skip
_COMPRESSED = re.compile(r"\.(gz|zst)$")


@lru_cache(maxsize=10_000)
def other_by_name(name: str) -> OtherFile | None:
    """The kind that a file's name (the last part of its path) tells; None if none does."""
    for candidate in (name, _COMPRESSED.sub("", name)):
        for other in OTHER_FILES:
            if other.pattern.search(candidate):
                return other
    return None
