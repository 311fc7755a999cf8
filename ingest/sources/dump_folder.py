"""The programs in a dump folder: its files, grouped by program."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from ...xla.errors import DumpError
from .. import formats
from ..formats import BY_NAME, Format, NamedFile, Role
from ..readers.lines import uncompressed_name
from ..readers.pass_text import PassName, pass_name
from ..readers.pasted import contains_assignment
from ..readers.thunks import thunks_name
from .dumped_program import DumpedProgram
from .files import SourceFile
from .program import Key

_XLA_MODULE = re.compile(
    r"^(?:\d{10,20}\.)?module_(?P<number>[0-9]{1,9})\.(?P<name>.*?)(?:\.cl_(?P<compiler>\d+))?$"
)
# The limit in bytes for the search of a source file for a pasted buffer assignment.
_MAX_SOURCE_BYTES = 4 << 20
_RENAMED_ENDINGS = (".gz", ".zst", ".txt", ".pb", ".hlo", ".log")
# The formats that describe the device, by platform.
_DEVICES = {"tpu": BY_NAME["target-arguments"], "gpu": BY_NAME["gpu-target-config"]}

_Files = dict[Format, SourceFile]


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

    A file with an unknown name is recognised by its first bytes. A plain file has precedence over
    its compressed copy, which follows it.

    Args:
        refuse: receives the files that cannot be read.
        named_file: whether the user named this one file, which is read whatever its name is.
    """
    folder = _DumpFolder()
    for file in files:
        try:
            folder.add(file, is_named=named_file)
        except DumpError as error:
            refuse(file, error)
    programs = [
        folder.program(workload, stem, target)
        for (workload, stem, target), program_files in folder.dumps.items()
        if not formats.MAKES_A_DUMP.isdisjoint(program_files)
    ]
    programs.sort(
        key=lambda program: (
            program.key.workload,
            program.key.number or 0,
            program.key.name,
            program.key.target or "",
        )
    )
    return programs


class _DumpFolder:
    """The files of dumps by workload and stem, and by format, step or kind.

    Attributes:
        dumps: also by target.
        settings: flags and devices; their names have no target, so that they belong to every dump
            with their stem.
        devices: all files of a workload that describe its device, by format.
    """

    def __init__(self) -> None:
        self.dumps: dict[tuple[str, str, str | None], _Files] = defaultdict(dict)
        self.settings: dict[tuple[str, str], _Files] = defaultdict(dict)
        self.devices: dict[tuple[str, Format], list[SourceFile]] = defaultdict(list)
        self.passes: dict[tuple[str, str], dict[int, tuple[PassName, SourceFile]]] = defaultdict(
            dict
        )
        self.thunks: dict[tuple[str, str], dict[str, SourceFile]] = defaultdict(dict)
        self._common_devices: dict[tuple[str, Format], SourceFile | None] = {}

    def add(self, file: SourceFile, *, is_named: bool) -> None:
        """Add a file, if it is part of a dump. Raises DumpError."""
        workload = file.folder
        pass_file = pass_name(file.name)
        if pass_file is not None:
            self.passes[workload, pass_file.stem].setdefault(pass_file.step, (pass_file, file))
            return
        thunks_file = thunks_name(file.name)
        if thunks_file is not None:
            stem, kind = thunks_file
            self.thunks[workload, stem].setdefault(kind, file)
            return
        named = format_of(file, is_named=is_named)
        if named is None:
            return
        if named.format.role in (Role.FLAGS, Role.DEVICE):
            self.settings[workload, named.stem].setdefault(named.format, file)
            if named.format.role is Role.DEVICE:
                self.devices[workload, named.format].append(file)
            return
        key = (workload, named.stem, named.target)
        existing = self.dumps[key].get(named.format)
        if existing is not None and uncompressed_name(existing.name) != uncompressed_name(
            file.name
        ):
            # `a.txt` and `a.log` may both be HLO text, and both must be read.
            key = (workload, uncompressed_name(file.name), named.target)
        self.dumps[key].setdefault(named.format, file)

    def program(self, workload: str, stem: str, target: str | None) -> DumpedProgram:
        """The program with this stem."""
        key = parse_key(workload, stem, target)
        files = self.dumps[workload, stem, target] | self.settings[workload, stem]
        device = _DEVICES.get(key.platform or "")
        if device is not None and device not in files:
            common = self._common_device(workload, device)
            if common is not None:
                files[device] = common
        steps = self.passes.get((workload, stem), {})
        passes = [steps[step] for step in sorted(steps)]
        return DumpedProgram(key, files, passes, self.thunks.get((workload, stem), {}))

    def _common_device(self, workload: str, format_: Format) -> SourceFile | None:
        """The first of a workload's device files; None if they differ or cannot be read.

        XLA may write one only next to the first module of the process.
        """
        if (workload, format_) not in self._common_devices:
            files = self.devices[workload, format_]
            try:
                is_common = len({file.read() for file in files}) == 1
            except DumpError:  # It is recorded where the file's own program is read.
                is_common = False
            self._common_devices[workload, format_] = files[0] if is_common else None
        return self._common_devices[workload, format_]


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


def format_of(file: SourceFile, *, is_named: bool) -> NamedFile | None:
    """The format of a file, by its name or its first bytes; None if it has none.

    A file that the user named may contain a buffer assignment anywhere, as in a comment of source
    code. Raises DumpError.
    """
    name = file.name
    named = formats.by_name(name)
    if named is not None or not (is_named or formats.may_be_renamed(name)):
        return named
    format_ = formats.by_content(file.read(formats.SNIFFED_BYTES))
    if format_ is None and formats.is_binary(name):
        format_ = formats.BINARY
    may_be_pasted = format_ is None and is_named and file.size <= _MAX_SOURCE_BYTES
    if may_be_pasted and contains_assignment(file.read().decode(errors="replace")):
        format_ = formats.ASSIGNMENT
    if format_ is None:
        return None
    for ending in _RENAMED_ENDINGS:
        name = name.removesuffix(ending)
    return NamedFile(name, format_, None)
