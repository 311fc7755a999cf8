"""Groups a folder's files into the programs that they dump."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from .. import formats
from ..errors import DumpError
from ..formats import Format, NamedFile, Role
from .dumped_program import DumpedProgram
from .files import SourceFile
from .program import Key

_XLA_MODULE = re.compile(
    r"^(?:\d{10,20}\.)?module_(?P<number>[0-9]{1,9})\.(?P<name>.*?)(?:\.cl_(?P<compiler>\d+))?$"
)
_RENAMED_ENDINGS = (".gz", ".zst", ".txt", ".pb", ".hlo", ".log")

_Files = dict[Format, SourceFile]


def is_wanted(name: str) -> bool:
    """Whether a file of this name may be part of a dump."""
    return formats.by_name(name) is not None or formats.may_be_renamed(name)


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
    for file in files:
        try:
            known = _format_of(file, named_file)
        except DumpError as error:
            refuse(file, error)
            continue
        if known is None:
            continue
        workload = file.path.parent.as_posix()
        if known.format.role in (Role.FLAGS, Role.DEVICE):
            # Their names have no target, so they belong to every dump of this stem.
            settings[workload, known.stem].setdefault(known.format, file)
            continue
        key = (workload, known.stem, known.target)
        there = dumps[key].get(known.format)
        if there is not None and _plain_name(there) != _plain_name(file):
            # `a.txt` and `a.log` may both be HLO text, and both must be read.
            key = (workload, _plain_name(file), known.target)
        # A plain file precedes its compressed copy and is used.
        dumps[key].setdefault(known.format, file)
    found = [
        DumpedProgram(parse_key(*key), held | settings[key[0], key[1]])
        for key, held in dumps.items()
        if not formats.MAKES_A_DUMP.isdisjoint(held)
    ]
    found.sort(
        key=lambda program: (
            program.key.workload,
            program.key.number or 0,
            program.key.name,
            program.key.target or "",
        )
    )
    return found


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
    return file.path.name.removesuffix(".gz").removesuffix(".zst")


def _format_of(file: SourceFile, named_file: bool) -> NamedFile | None:
    """A file's format, by its name or else by its first bytes. Raises DumpError."""
    name = file.path.name
    known = formats.by_name(name)
    if known is not None or not (named_file or formats.may_be_renamed(name)):
        return known
    found = formats.by_content(file.read(formats.SNIFFED_BYTES))
    if found is None and formats.is_binary(name):
        found = formats.BINARY
    if found is None:
        return None
    for ending in _RENAMED_ENDINGS:
        name = name.removesuffix(ending)
    return NamedFile(name, found, None)
