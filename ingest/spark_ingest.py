"""Ingest on Spark: executors identify and read the dumps, the driver commits the run at once.

The pipeline is that of `memhouse ingest`, with executors in place of its processes. They write
the rows of modules to data files of the lake, which nobody sees before the driver's commit; only
files of results that reached the driver are committed. The driver itself reads what it alone has:
the files of archives and the modules of profiles.
"""

import os
import pickle
import re
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ..schema.errors import JobError, MissingPackageError, UsageError
from ..schema.lake.changes import without_modules
from ..schema.lake.commits import discard
from ..schema.lake.data_files import DataFile, write_file
from ..schema.versions import READER_VERSION, TOOL_VERSION, layout
from .modules import Module, Rows, with_ids
from .read_program import ProgramOutcome, ReadBefore, batches_of, read_programs, recognised
from .readers.lines import use_quick_memory
from .sources.dump_folder import DumpedProgram
from .sources.files import Given, RemotePath, SourceFile
from .sources.program import Fingerprinted, Identified, Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_R = TypeVar("_R")
# Without a number of tasks: as many for each core, and more if a task would read more bytes, whose
# rows wait in memory.
_TASKS_PER_CORE = 2
_TASK_BYTES = 128 << 20
_SHARE = "name a path that all machines see, such as a shared folder or s3://"
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)\b: .*)", re.MULTILINE)

# Modules, and the files with their rows.
_Written = tuple[Set[int], Sequence[DataFile]]


class Executors:
    """Spark's executors as what reads the programs of a run; see `workers.Reading`.

    `lake` is the lake's place; `paths` are those that the user gives, absolute; `tasks` is how many
    tasks read at most. Its methods raise JobError for what executors cannot do.
    """

    def __init__(
        self, spark: "SparkSession", lake: str, paths: Sequence[Given], tasks: int | None
    ) -> None:
        try:
            self._context = spark.sparkContext
        except Exception as error:
            # Spark Connect has sessions without RDDs.
            raise UsageError(
                "ingest needs a Spark session of its own cluster, not one of Spark Connect", "spark"
            ) from error
        self._lake, self._tasks = lake, tasks
        self._folders = [path for path in paths if isinstance(path, Path)]
        self._written: list[_Written] = []

    def prepared(self, programs: Sequence[Program]) -> Sequence[Program]:
        """The programs with their fingerprints."""
        alone = [[place] for place in range(len(programs))]
        identified: dict[int, Identified] = {}
        for places, fingerprints in self._done("identify dumps", _identify, programs, alone):
            identified.update(zip(places, fingerprints, strict=True))
        return [Fingerprinted(program, identified[at]) for at, program in enumerate(programs)]

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcomes, in order; the rows of modules that are not known go to files."""
        # An ingest that begins again reads again.
        self.discard_files()
        outcomes: dict[int, ProgramOutcome] = {}
        # The dumps of one module are in one task, so that its rows are written once.
        of_module: dict[int, list[int]] = {}
        for place, program in enumerate(programs):
            identified = program.fingerprint()
            if identified.module_id in known or identified.left_out is not None:
                outcomes[place] = recognised(program, identified)
            else:
                of_module.setdefault(identified.module_id, []).append(place)
        read = partial(_read, self._lake)
        groups = list(of_module.values())
        for places, (read_ones, written) in self._done("read dumps", read, programs, groups):
            outcomes.update(zip(places, read_ones, strict=True))
            self._written.append(written)
        return (outcomes[place] for place in range(len(programs)))

    def files_of(self, modules: Set[int]) -> list[DataFile]:
        """The files with the rows of exactly these modules."""
        wanted: list[DataFile] = []
        taken, self._written = self._written, []
        for in_files, written in taken:
            files = written
            if "://" not in self._lake and not all(
                Path(self._lake, file.path).is_file() for file in files
            ):
                raise JobError(f"{self._lake}: executors write to another folder: {_SHARE}")
            # A dump that stays as it is stored was read all the same.
            if unwanted := in_files - modules:
                files = [without_modules(self._lake, file, unwanted) for file in written]
                discard(self._lake, written, but=files)
            wanted += [file for file in files if file.rows]
        return wanted

    def discard_files(self) -> None:
        """Remove the files that nobody asked for, because their dumps stay as they are stored."""
        discard(self._lake, (file for _, files in self._written for file in files), but=())
        self._written = []

    def _done(
        self,
        what: str,
        do: Callable[[list[Any]], _R],
        programs: Sequence[Program],
        groups: Sequence[list[int]],
    ) -> Iterator[tuple[list[int], _R]]:
        """Do it with the programs, those of a group in one task: each task's places and result."""
        shared: list[list[int]] = []
        own: list[list[int]] = []
        for group in groups:
            (shared if all(self._is_shared(programs[at]) for at in group) else own).append(group)
        for places in _divided(programs, own, 0):
            yield places, do([programs[at] for at in places])
        context = self._context
        least = _TASKS_PER_CORE * context.defaultParallelism
        tasks = _divided(programs, shared, least, self._tasks)
        if not tasks:
            return
        pickled = [pickle.dumps([programs[at] for at in task]) for task in tasks]
        context.setJobDescription(f"memhouse: {what}")
        try:
            task = partial(_task, _versions(), do)
            results = context.parallelize(pickled, len(pickled)).map(task).collect()
        except Exception as error:
            raise JobError(f"Spark could not {what}: {_reason(error)}") from error
        finally:
            context.setJobDescription(None)  # type: ignore[arg-type]
        for places, result in zip(tasks, results, strict=True):
            if isinstance(result, JobError):
                raise result
            yield places, result

    def _is_shared(self, program: Program) -> bool:
        """Whether the driver reads the files below the given paths, as executors can."""
        locations = [file.location for file in _files(program)]
        return bool(locations) and all(
            isinstance(location, RemotePath)
            or (
                isinstance(location, Path)
                and any(location.is_relative_to(folder) for folder in self._folders)
                and os.access(location, os.R_OK)
            )
            for location in locations
        )


def _files(program: Program) -> Collection[SourceFile]:
    """The files of a dump; none of a module in a profile."""
    inner = program.program if isinstance(program, Fingerprinted) else program
    return inner.files.values() if isinstance(inner, DumpedProgram) else ()


def _divided(
    programs: Sequence[Program], groups: Sequence[list[int]], least: int, most: int | None = None
) -> list[list[int]]:
    """The places of each task's programs: `most` tasks, or `least` and as many as bytes need."""
    sized = [(sum(programs[at].size_bytes for at in group), group) for group in groups]
    count = most or max(least, 1 + sum(size for size, _ in sized) // _TASK_BYTES)
    # The largest first, one to each task in turn.
    sized.sort(key=itemgetter(0), reverse=True)
    tasks = [[at for _, group in sized[n::count] for at in group] for n in range(count)]
    return list(filter(None, tasks))


def _reason(error: Exception) -> str:
    """What Python raised on an executor, or else what Spark says, in a line."""
    said = str(error)
    sparks_own = ("Py4J", "SparkException", "PythonException")
    raised = [line for line in _RAISED.findall(said) if not line.startswith(sparks_own)]
    return " ".join((raised or said.strip().splitlines() or [repr(error)])[0].split())


# What executors do, and the driver with what it alone has.


def _task(versions: tuple[Any, ...], do: Callable[[list[Any]], Any], pickled: bytes) -> Any:
    """Do it with the programs. A JobError is the result: what is raised, Spark tries again."""
    host = socket.gethostname()
    if versions != _versions():
        return JobError(
            f"executor {host} has another version of memhouse, Python or pyarrow than the driver: "
            "install the same on all machines"
        )
    use_quick_memory()
    programs = pickle.loads(pickled)
    try:
        for program in programs:
            _require_seen(program)
        return do(programs)
    except (JobError, MissingPackageError) as error:
        return JobError(f"executor {host}: {error}")


def _versions() -> tuple[Any, ...]:
    """What rows depend on, beside the dumps."""
    return TOOL_VERSION, READER_VERSION, layout(), pa.__version__, sys.version_info[:2]


def _require_seen(program: Program) -> None:
    """Raise JobError for a file that is another one here, or none: its dump has not failed."""
    for file in _files(program):
        if isinstance(file.location, RemotePath):
            continue
        with suppress(OSError), file.location.open("rb") as opened:
            if os.fstat(opened.fileno()).st_size == file.size:
                continue
        raise JobError(f"{file.location} is not the driver's file of {file.size} bytes: {_SHARE}")


def _identify(programs: list[Program]) -> list[Identified]:
    return [replace(program.fingerprint(), content=None) for program in programs]


def _read(lake: str, programs: list[Fingerprinted]) -> tuple[list[ProgramOutcome], _Written]:
    """Read the programs, each content once; the rows go to files."""
    outcomes: list[ProgramOutcome] = []
    modules: dict[int, Module] = {}
    before = ReadBefore()
    for batch in batches_of(programs):
        module_ids = [program.identified.module_id for program in batch]
        read = read_programs([(program, None) for program in batch], frozenset(), before=before)
        for program, module_id, outcome in zip(batch, module_ids, read, strict=True):
            if program.identified.module_id != module_id:
                raise JobError(
                    f"dump {program.key.name} of workload {program.key.workload} changed while "
                    "it was read: give the same command again"
                )
            if outcome.module is not None:
                # Of several dumps of a module the rows of the last one count.
                modules[module_id] = outcome.module
                outcome.module = Module(outcome.module.header, Rows({}))
        outcomes += read
    files = [write_file(lake, name, of) for name, of in with_ids(modules).items() if len(of)]
    return outcomes, ({*modules}, files)
