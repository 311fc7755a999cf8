"""What a file of a dump folder is, told by its name.

`module_NNNN.NAME[.cl_CHANGELIST].[TARGET_]after_optimizations<SUFFIX>`, where NAME may hold
dots. A folder holds thousands of other files: they are told apart without opening them.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

BUFFER_ASSIGNMENT = "buffer-assignment"
USED_VALUES = "buffer-assignment-values"
LIVE_RANGE = "live-range"
USAGE_REPORT = "memory-usage-report"
HLO = "hlo"
OOM_HLO = "oom-hlo"
DEBUG_OPTIONS = "debug-options"
FLAGFILE = "flagfile"
TPU_TARGET = "target-arguments"
GPU_TARGET = "gpu-target-config"

# The kinds that make a dump: any one of them is worth a module.
MAIN_KINDS = (BUFFER_ASSIGNMENT, USED_VALUES, LIVE_RANGE, HLO, OOM_HLO)
# What a module's id is the hash of. The OOM text is the same as the HLO text beside it, and
# stands in for it where that is missing.
CONTENT_KINDS = (*MAIN_KINDS, USAGE_REPORT)
# Those that hold the buffer assignment; HLO text alone is no such dump, and complete.
ASSIGNMENT_KINDS = (BUFFER_ASSIGNMENT, USED_VALUES, LIVE_RANGE)

_TARGET = r"(?:(?P<target>cpu|gpu|sm_\d+(?:\.\d+)?[a-z]*_gpu|gfx\w+_gpu)_)?"
_ASSIGNMENT = re.compile(
    r"^(?P<stem>.*?)(?:\.?" + _TARGET + r"after_optimizations)?-(?P<kind>"
    r"buffer-assignment|buffer-assignment-values|live-range|memory-usage-report)\.txt$"
)
_HLO = re.compile(r"^(?P<stem>.*?)\.?" + _TARGET + r"after_optimizations\.txt$")
_OOM = re.compile(r"^(?P<stem>.*)\.oom_intermediate_module\.txt$")
# The compiler's settings belong to the dump but are not its content.
_SETTINGS = {
    ".debug_options": DEBUG_OPTIONS,
    ".flagfile": FLAGFILE,
    ".target_arguments.txt": TPU_TARGET,
    ".gpu_target_config.pbtxt": GPU_TARGET,
}
SETTINGS_KINDS = tuple(_SETTINGS.values())
_XLA_MODULE = re.compile(
    r"^module_(?P<number>[0-9]{1,9})\.(?P<name>.*?)(?:\.cl_(?P<compiler>\d+))?$"
)
_COMPRESSED = re.compile(r"\.(gz|zst)$")
# A file that a user has renamed may be anything of these; what it holds tells.
_MAYBE_TEXT = re.compile(r"^(?!module_\d+\.)[^.](?:[^.]*|.*\.(?:txt|hlo|log))$")


class FileKind(NamedTuple):
    """What a file's name says: the dump it belongs to, what it holds, for which target."""

    stem: str
    kind: str
    target: str | None


@dataclass(frozen=True)
class DumpName:
    """What a dump's stem and target say."""

    module_name: str
    module_number: int | None
    compiler: str | None
    platform: str | None


# Every night's files have the same names.
@lru_cache(maxsize=10_000)
def kind_of(name: str) -> FileKind | None:
    """What a file is by its name (the last part of its path), None if it is not ours."""
    name = _COMPRESSED.sub("", name)
    for pattern, known in ((_ASSIGNMENT, None), (_HLO, HLO), (_OOM, OOM_HLO)):
        if match := pattern.match(name):
            groups = match.groupdict()
            return FileKind(groups["stem"], known or groups["kind"], groups.get("target"))
    for ending, kind in _SETTINGS.items():
        if name.endswith(ending) and name.startswith("module_"):
            return FileKind(name.removesuffix(ending), kind, None)
    return None


def may_be_renamed(name: str) -> bool:
    """Whether a file that `kind_of` does not know is worth a look at its first bytes."""
    return _MAYBE_TEXT.match(_COMPRESSED.sub("", name)) is not None


def parse_stem(stem: str, target: str | None) -> DumpName:
    """Take a dump's stem apart: `module_0000.jit_train_step.cl_933746096`."""
    match = _XLA_MODULE.match(stem)
    if match is None:
        return DumpName(stem, None, None, _platform(target))
    # XLA leaves the target out only for TPU.
    return DumpName(
        match["name"], int(match["number"]), match["compiler"], _platform(target) or "tpu"
    )


def _platform(target: str | None) -> str | None:
    if target is None:
        return None
    return "cpu" if target == "cpu" else "gpu"
