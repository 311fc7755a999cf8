"""The Program protocol: what a source yields, for example a dump in a folder.

The pipeline, the workers and the batches use only this protocol. To add a source, yield
objects that have these attributes and methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...xla.parts import Parts
from ..outcomes import FileOutcome, Settings


@dataclass(frozen=True)
class Key:
    """What identifies a program within its run.

    workload: the folder within the run, `.` if none; module_name: the HLO module's name;
    number: the module's number within its process; platform: cpu, gpu or tpu; name: the stem
    of the file names, or any name that is unique within workload and target; target and
    compiler as in `dumps`.
    """

    workload: str
    module_name: str
    number: int | None = None
    platform: str | None = None
    name: str = ""
    target: str | None = None
    compiler: str | None = None

    @property
    def in_run(self) -> tuple[str, str, str | None]:
        """The part that is unique within the run."""
        return self.workload, self.name, self.target


@dataclass
class Identified:
    """A program before parsing, identified by the hash of its content.

    module_id: see `schema.ids`; module_name: for renamed files, the name in the content;
    files: the outcome of each file so far; content: the data that `Program.read` needs, so
    that each file is read once, and takes out, so that the memory is free afterwards;
    unread: the kinds of files that are there but are not needed; left_out: why the program
    cannot be read although nothing is wrong with it; shared_memory: of a GPU's kernels, by
    instruction.
    """

    module_id: int
    module_name: str
    files: list[FileOutcome] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    content: Any = None
    unread: frozenset[str] = frozenset()
    left_out: str | None = None
    shared_memory: Mapping[str, int] = field(default_factory=dict)


class Program(Protocol):
    """One program of a run; picklable, because another process may read it."""

    @property
    def key(self) -> Key:
        """What identifies the program within its run."""

    @property
    def size_bytes(self) -> int:
        """The stored size, compressed or not: an estimate of the cost of reading."""

    @property
    def modified(self) -> float:
        """When the program was written, in seconds since 1970."""

    @property
    def oom(self) -> bool:
        """Whether XLA ran out of memory while compiling the program."""

    def fingerprint(self) -> Identified:
        """Identify the program without parsing it. Records errors in the files' outcomes."""

    def read(self, identified: Identified) -> Parts | None:
        """Parse the program as far as possible; None if nothing is readable.

        Records errors in the files of `identified`.
        """
