"""Finds the dumps among a path's files: which files belong to one module."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .. import formats as kinds
from ..readers import sections
from ..readers.lines import DumpError
from .files import SourceFile

_KIND_OF_PART = {
    sections.BUFFER_ASSIGNMENT: kinds.BUFFER_ASSIGNMENT,
    sections.USED_VALUES: kinds.USED_VALUES,
    sections.LIVE_RANGE: kinds.LIVE_RANGE,
    sections.USAGE_REPORT: kinds.USAGE_REPORT,
    sections.HLO: kinds.HLO,
}


@dataclass
class Dump:
    """The files of one module as dumped: what its name says, and each file's kind."""

    workload: str
    stem: str
    target: str | None = None
    files: dict[str, SourceFile] = field(default_factory=dict)
    name: kinds.DumpName = field(init=False)
    occurrence: int = 1

    @property
    def oom(self) -> bool:
        """XLA leaves this file only where it gave up after buffer assignment."""
        return kinds.OOM_HLO in self.files

    @property
    def size_bytes(self) -> int:
        """What its files take as they lie there, packed or not."""
        return sum(file.size for file in self.files.values())


def is_wanted(name: str) -> bool:
    """Whether a file of this name may be part of a dump."""
    return kinds.kind_of(name) is not None or kinds.may_be_renamed(name)


def find_dumps(
    files: Iterable[SourceFile],
    refuse: Callable[[SourceFile, DumpError], None],
    *,
    named_file: bool = False,
) -> list[Dump]:
    """Group files to dumps, in the order of workload and module number.

    A file whose name says nothing is recognised by its first bytes; `named_file` says that
    the user gave this very file, so that whatever its name it is looked at. What cannot be
    looked at `refuse` is told.
    """
    dumps: dict[tuple[str, str, str | None], Dump] = {}
    settings: dict[tuple[str, str], dict[str, SourceFile]] = defaultdict(dict)
    for file in files:
        known = kinds.kind_of(file.path.name)
        if known is None:
            if not named_file and not kinds.may_be_renamed(file.path.name):
                continue
            try:
                known = _recognised(file)
            except DumpError as error:
                refuse(file, error)
                continue
            if known is None:
                continue
        workload = file.path.parent.as_posix()
        if known.kind in kinds.SETTINGS_KINDS:
            # Their names do not tell the target: they are of every dump of the name.
            settings[workload, known.stem].setdefault(known.kind, file)
            continue
        key = (workload, known.stem, known.target)
        there = dumps.setdefault(key, Dump(*key)).files.get(known.kind)
        if there is not None and _plain_name(there) != _plain_name(file):
            # `a.txt` and `a.log` may both be HLO text: neither may hide the other.
            key = (workload, _plain_name(file), known.target)
        # Of a file that lies there plain and packed the plain one comes first.
        dumps.setdefault(key, Dump(*key)).files.setdefault(known.kind, file)
    found = [dump for dump in dumps.values() if not dump.files.keys().isdisjoint(kinds.MAIN_KINDS)]
    for dump in found:
        dump.files |= settings[dump.workload, dump.stem]
        dump.name = kinds.parse_stem(dump.stem, dump.target)
    found.sort(
        key=lambda dump: (dump.workload, dump.name.module_number or 0, dump.stem, dump.target or "")
    )
    _count_occurrences(found)
    return found


def _plain_name(file: SourceFile) -> str:
    """A file's name, compressed or not."""
    return file.path.name.removesuffix(".gz").removesuffix(".zst")


def _recognised(file: SourceFile) -> kinds.FileKind | None:
    """What a file is by its first bytes. Raises DumpError."""
    part = sections.sniff(file.read(sections.SNIFFED_BYTES))
    if part is None:
        return None
    stem = file.path.name
    for ending in (".gz", ".zst", ".txt", ".hlo", ".log"):
        stem = stem.removesuffix(ending)
    return kinds.FileKind(stem, _KIND_OF_PART[part], None)


def _count_occurrences(dumps: list[Dump]) -> None:
    """Number the modules of one name within a workload from 1, in dump order."""
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for dump in dumps:
        key = (dump.workload, dump.name.module_name)
        seen[key] += 1
        dump.occurrence = seen[key]
