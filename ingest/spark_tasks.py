"""What Spark's executors do for an ingest: list archives, identify programs and read them.

A task gets and returns bytes, so that nothing is unpickled before the versions are compared.
"""

import hashlib
import pickle
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..schema.errors import MissingPackageError
from ..schema.lake.data_files import DataFile, write_file
from .archived_files import Listing, close_archive, listing
from .batches import add_owned, joined
from .join import Module
from .outcomes import OK
from .read_program import ProgramOutcome, read_program
from .readers.lines import use_quick_memory
from .sources.program import Identified, Program
from .sources.shared_paths import SharedPath, UnseenError

# Rows that wait in memory; small tables of many modules are one file.
_FILE_BYTES = 256 << 20
_ROOMS = ("xla", "schema", "ingest")


class RefusedError(Exception):
    """Why a task cannot be done, however often it is tried; a line for the user."""


@dataclass
class Written:
    """Files of a lake, and the modules whose rows they hold."""

    files: list[DataFile]
    modules: frozenset[int]


@dataclass
class ReadJob:
    """Programs to read, each with its place in the run; those of one module stand together.

    stored: of these modules, those that are in the lake, though not whole.
    """

    lake: str
    programs: list[tuple[int, Program, Identified]]
    stored: frozenset[int]


@dataclass
class ReadResult:
    """The outcomes without rows, by the programs' places in the run; the rows are in files."""

    outcomes: list[tuple[int, ProgramOutcome]] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)


def archive_job(archive: SharedPath) -> Listing:
    """What an archive holds."""
    return listing(archive)


def identify_job(programs: Sequence[tuple[int, Program]]) -> list[tuple[int, Identified]]:
    """The programs' fingerprints, without content."""
    return [(place, replace(program.fingerprint(), content=None)) for place, program in programs]


def read_job(job: ReadJob) -> ReadResult:
    """Read the programs and write their modules' rows to files of the lake."""
    if "://" not in job.lake and not Path(job.lake, "_delta_log").is_dir():
        raise RefusedError(
            f"{job.lake}: executor {socket.gethostname()} does not see this folder: "
            "make the lake where all machines see it, in a shared folder or s3://"
        )
    result, rows = ReadResult(), _Rows(job.lake)
    alike = _Alike()
    for place, program, identified in job.programs:
        outcome = alike.outcome(program, identified)
        if outcome is None:
            outcome = _read(program, identified)
            alike.add(identified, outcome)
        if outcome.module is not None and outcome.module.tables:
            assert outcome.module_id is not None
            if outcome.module_id not in job.stored or outcome.status == OK:
                rows.add(outcome.module_id, outcome.module.tables)
            outcome.module = Module(outcome.module.header, {})
        result.outcomes.append((place, outcome))
    result.written = rows.written()
    return result


def _read(program: Program, identified: Identified) -> ProgramOutcome:
    again = program.fingerprint()
    if again.module_id != identified.module_id:
        raise RefusedError(
            f"{identified.files[0].path} changed while it was read: give the same command again"
        )
    return read_program(program, frozenset(), again)


class _Alike:
    """The outcome of the module read last, for other dumps of the same module.

    Their files have the same content, so reading them gives the same outcome.
    """

    def __init__(self) -> None:
        self._identified: Identified | None = None
        self._outcome: ProgramOutcome | None = None

    def add(self, identified: Identified, outcome: ProgramOutcome) -> None:
        """Remember an outcome."""
        self._identified, self._outcome = identified, outcome

    def outcome(self, program: Program, identified: Identified) -> ProgramOutcome | None:
        """The outcome of a program, None if it must be read."""
        first, done = self._identified, self._outcome
        if first is None or done is None or first.module_id != identified.module_id:
            return None
        if _content(first) != _content(identified) or len(done.files) != len(first.files):
            return None
        if done.key.platform != program.key.platform or done.key.compiler != program.key.compiler:
            return None
        return ProgramOutcome(
            program.key,
            program.oom,
            program.size_bytes,
            done.status,
            done.module_id,
            identified.module_name,
            [
                replace(of_first, path=own.path)
                for own, of_first in zip(identified.files, done.files, strict=True)
            ],
            identified.settings,
            # The rows were written with the first.
            None if done.module is None else Module(done.module.header, {}),
        )


def _content(identified: Identified) -> list[Mapping[str, object]]:
    return [file.row() | {"path": None} for file in identified.files]


class _Rows:
    """The rows of modules, on their way to files."""

    def __init__(self, lake: str) -> None:
        self._lake = lake
        self._written: list[Written] = []
        self._last: tuple[int, Mapping[str, pa.Table]] | None = None
        self._waiting: dict[str, list[pa.Table]] = {}
        self._modules: set[int] = set()
        self._bytes = 0

    def add(self, module_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Add a module's rows; of several dumps of one module the last one's count."""
        if self._last is not None and self._last[0] != module_id:
            self._take_last()
        self._last = module_id, tables

    def written(self) -> list[Written]:
        """All files; the rows that still wait are written."""
        self._take_last()
        self._write()
        return self._written

    def _take_last(self) -> None:
        if self._last is None:
            return
        module_id, tables = self._last
        self._last = None
        self._modules.add(module_id)
        add_owned(self._waiting, module_id, tables)
        self._bytes += sum(table.nbytes for table in tables.values())
        if self._bytes > _FILE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._modules:
            files = [
                write_file(self._lake, name, rows)
                for name, rows in joined(self._waiting).items()
                if len(rows)
            ]
            self._written.append(Written(files, frozenset(self._modules)))
        self._waiting, self._modules, self._bytes = {}, set(), 0


def perform(driver: str, job: Callable[[Any], Any], argument: bytes) -> bytes:
    """Do a task; the pickled result, or the text of why it is refused.

    `driver` is what `code_digest` says on the driver. Errors that may pass are raised: then Spark
    tries the task again.
    """
    if driver != code_digest():
        return pickle.dumps(
            f"executor {socket.gethostname()} has another version of memhouse than the driver: "
            "install the same on all machines"
        )
    use_quick_memory()
    try:
        return pickle.dumps((job(pickle.loads(argument)),))
    except (RefusedError, UnseenError, MissingPackageError) as refused:
        return pickle.dumps(str(refused))
    finally:
        close_archive()


@cache
def code_digest() -> str:
    """A digest of the code that reads and stores: rows depend on it."""
    found = hashlib.sha256(f"{sys.version_info[:2]} {pa.__version__}".encode())
    for room in _ROOMS:
        for name, content in sorted(_code(files(f"{__package__.split('.')[0]}.{room}"), room)):
            found.update(f"{name} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


def _code(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            found += _code(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(".py"):
            found.append((f"{name}/{entry.name}", entry.read_bytes()))
    return found
