"""A program that a source offers: a dump in a folder, a module in memory, whatever comes next.

The pipeline, the workers and the batches know a program by this page alone. To add a source,
yield objects that have these attributes and methods.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..model.parts import Parts
from ..outcomes import FileOutcome, Settings


@dataclass(frozen=True)
class Key:
    """What tells a program from the others of its run.

    workload: its folder within the run, `.` if none; module_name: the HLO module's name;
    number: the module's number within its process; platform: cpu, gpu or tpu; name: what its
    files are called, or any name that no other program of this workload and target has;
    target and compiler as in `dumps`.
    """

    workload: str
    module_name: str
    number: int | None = None
    platform: str | None = None
    name: str = ""
    target: str | None = None
    compiler: str | None = None


@dataclass
class Identified:
    """A program before it is parsed: what it is, by its content's hash.

    module_id: see `schema.ids`; module_name: as the content says, which knows better than a
    renamed file; files: what became of each file so far; content: whatever `Program.read`
    needs, so that nothing is read twice.
    """

    module_id: int
    module_name: str
    files: list[FileOutcome] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    content: Any = None


class Program(Protocol):
    """One program of a run. It must survive pickling, for it is read in another process."""

    @property
    def key(self) -> Key:
        """What tells it from the others of its run."""

    @property
    def size_bytes(self) -> int:
        """What it takes where it lies, packed or not: how much reading it costs."""

    @property
    def modified(self) -> float:
        """When it was made, in seconds since 1970."""

    @property
    def oom(self) -> bool:
        """Whether XLA ran out of memory compiling it."""

    def fingerprint(self) -> Identified:
        """Identify the program without parsing it. Records what is wrong in the files."""

    def read(self, identified: Identified, *, beside: bool = False) -> Parts | None:
        """Parse the program, as far as it can be parsed; None if nothing of it is readable.

        Records what is wrong in the files of `identified`. With `beside`, other threads may
        read parts of it at the same time.
        """
