"""Ingest on Spark: executors identify and read the programs, the driver commits once.

Executors write the rows of new modules to files of the lake, which nobody sees until the driver
commits them. Of a task that is tried again only the files of the result that reached the driver
are committed.
"""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from ..schema.errors import JobError, UsageError, WarehouseError
from ..schema.lake.changes import without_modules
from ..schema.lake.commits import discard
from ..schema.lake.data_files import DataFile
from ..schema.stores.delta import DeltaStore
from .archived_files import ArchivedFile, Listing, archives_under, shared_archive
from .pipeline import Summary
from .pipeline import ingest as ingest_paths
from .read_program import ProgramOutcome, recognised
from .sources.dump_folder import DumpedProgram
from .sources.files import Given, OpenArchive, RemotePath, SourceFile
from .sources.forward_bytes import FilePart
from .sources.hlo_protos import HloProtoProgram, InMemory
from .sources.program import Fingerprinted, Identified, Program
from .sources.shared_paths import SharedPath, shared
from .spark_packing import pack
from .spark_tasks import (
    ReadJob,
    Written,
    archive_job,
    code_digest,
    identify_job,
    perform,
    read_job,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
_R = TypeVar("_R")
# Without a number of tasks: as many for each core, and more if a task would read more bytes.
_TASKS_PER_CORE = 2
_TASK_BYTES = 1 << 30
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt)\b.*)", re.MULTILINE)


def ingest(
    spark: "SparkSession",
    store: DeltaStore,
    *paths: Given,
    tool_version: str,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    tasks: int | None = None,
) -> Summary:
    """Ingest the dumps under the paths into a lake as one run; see `pipeline.ingest`.

    `tasks` is how many tasks read at most, by default two for each core. Raises JobError for
    paths that executors do not see, UsageError and WarehouseError.
    """
    summary = ingest_paths(
        store,
        *paths,
        tool_version=tool_version,
        workers=Executors(spark, store, tasks),
        run_id=run_id,
        run_at=run_at,
        labels=labels,
    )
    store.tidy()
    return summary


class Executors:
    """Spark's executors as what reads programs; see `workers.Reading`."""

    def __init__(self, spark: "SparkSession", store: DeltaStore, tasks: int | None) -> None:
        try:
            self._context = spark.sparkContext
        except Exception as error:
            # Spark Connect has sessions without RDDs.
            raise UsageError(
                "ingest needs a Spark session of its own cluster, not one of Spark Connect", "spark"
            ) from error
        self._store, self._tasks = store, tasks
        self._written: list[Written] = []

    def archives(self, paths: Sequence[Given], refuse: Callable[[str], None]) -> OpenArchive | None:
        """Executors list what the archives hold; who reads a file of one unpacks it again."""
        found = {
            str(archive): shared_archive(archive)
            for path in paths
            for archive in archives_under(path)
        }
        listed: dict[str, Listing] = {}
        if found:
            listings = self._run("list archives", archive_job, list(found.values()))
            listed = dict(zip(found, listings, strict=True))

        def opened(archive: Given, folder: PurePosixPath) -> Iterator[SourceFile]:
            if str(archive) not in listed:
                refuse(f"{archive}: it came while the dumps were listed: ingest once more")
                return iter(())
            return listed[str(archive)].opened(folder, refuse)

        return opened

    def prepared(self, programs: Sequence[Program]) -> Sequence[Program]:
        """The programs with their fingerprints, which executors take."""
        sent = [_sent(program) for program in programs]
        tasks = self._packed([[place] for place in range(len(sent))], sent)
        jobs = [[(place, sent[place]) for place in task] for task in tasks]
        identified: dict[int, Identified] = {}
        for result in self._run("identify programs", identify_job, jobs):
            identified.update(result)
        return [Fingerprinted(program, identified[place]) for place, program in enumerate(sent)]

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcomes; executors write the rows of modules that are not known."""
        # An ingest that begins again reads again.
        self._written = []
        outcomes: dict[int, ProgramOutcome] = {}
        given: list[Fingerprinted] = []
        of_module: dict[int, list[int]] = {}
        for place, program in enumerate(programs):
            assert isinstance(program, Fingerprinted)
            given.append(program)
            identified = program.fingerprint()
            if identified.module_id in known or identified.left_out is not None:
                outcomes[place] = recognised(program, identified)
            else:
                of_module.setdefault(identified.module_id, []).append(place)
        stored = self._store.stored_modules() & of_module.keys()
        jobs = [
            ReadJob(
                self._store.name,
                [(place, _inner(given[place]), given[place].fingerprint()) for place in task],
                stored,
            )
            for task in self._packed(list(of_module.values()), given)
        ]
        for result in self._run("read programs", read_job, jobs):
            outcomes.update(result.outcomes)
            self._written += result.written
        return (outcomes[place] for place in range(len(programs)))

    def files_of(self, modules: Set[int]) -> list[DataFile]:
        """The files with the rows of exactly these modules."""
        found: list[DataFile] = []
        for written in self._written:
            self._require_here(written.files)
            # A dump that stays as it is stored was read all the same.
            unwanted = written.modules - modules
            files = [without_modules(self._store.name, file, unwanted) for file in written.files]
            discard(self._store.name, written.files, but=files)
            found += [file for file in files if file.rows]
        return found

    def _require_here(self, files: Sequence[DataFile]) -> None:
        """An executor may have a folder of the lake's name on a disk of its own."""
        lake = self._store.name
        if "://" in lake:
            return
        for file in files:
            path = Path(lake, file.path)
            if not path.is_file() or path.stat().st_size != file.size_bytes:
                raise WarehouseError(
                    f"{lake}: executors write to another folder of this name: "
                    "make the lake where all machines see it, in a shared folder or s3://"
                )

    def _packed(
        self, groups: Sequence[Sequence[int]], programs: Sequence[Program]
    ) -> list[list[int]]:
        """The programs of each task, by their places."""
        total = sum(programs[place].size_bytes for group in groups for place in group)
        count = self._tasks or max(
            _TASKS_PER_CORE * self._context.defaultParallelism, total // _TASK_BYTES
        )
        return pack(
            groups,
            count,
            lambda place: programs[place].size_bytes,
            lambda place: _archive_of(_inner(programs[place])),
        )

    def _run(self, what: str, job: Callable[[_T], _R], arguments: Sequence[_T]) -> list[_R]:
        """Do the job with each argument, a task each; the results in their order."""
        if not arguments:
            return []
        pickled = [pickle.dumps(argument) for argument in arguments]
        task = partial(perform, code_digest(), job)
        context = self._context
        context.setJobDescription(f"memhouse: {what}")
        try:
            results = context.parallelize(pickled, len(pickled)).map(task).collect()
        except Exception as error:
            raise _told(error, what) from error
        finally:
            context.setJobDescription(None)  # type: ignore[arg-type]
        done: list[_R] = []
        for result in map(pickle.loads, results):
            if isinstance(result, str):
                raise JobError(result)
            done += result
        return done


def _told(error: Exception, what: str) -> Exception:
    """Spark's error as one line: what Python raised on the executor, or else Spark's own."""
    if not type(error).__module__.startswith(("py4j", "pyspark")):
        return error
    said = str(error)
    if "No module named 'memhouse" in said:
        return JobError(
            "executors have no memhouse, or an older one: install the driver's version on all "
            "machines, or send it with spark.archives"
        )
    raised = _RAISED.findall(said)
    line = raised[-1] if raised else said.strip().splitlines()[0]
    for found in raised:
        if not found.startswith(("Py4J", "SparkException", "PythonException")):
            line = found
            break
    return JobError(f"Spark could not {what}: {' '.join(line.split())}")


def _inner(program: Program) -> Program:
    while isinstance(program, Fingerprinted):
        program = program.program
    return program


def _archive_of(program: Program) -> SharedPath | None:
    """The archive that a program is in."""
    location: object = None
    if isinstance(program, DumpedProgram):
        location = next(iter(program.files.values())).location
    elif isinstance(program, HloProtoProgram) and isinstance(program.held, FilePart | SourceFile):
        location = program.held.location
    return location.archive if isinstance(location, ArchivedFile) else None


def _sent(program: Program) -> Program:
    """A program as executors can read it: by paths that do not depend on this process."""
    if isinstance(program, DumpedProgram):
        files = {format_: _shared(file) for format_, file in program.files.items()}
        return replace(program, files=files)
    if isinstance(program, HloProtoProgram):
        held = program.held
        if isinstance(held, FilePart) and isinstance(held.location, RemotePath | Path):
            # Of a compressed profile the driver has a copy.
            return replace(program, held=InMemory(held.read()))
        if isinstance(held, SourceFile):
            return replace(program, held=_shared(held))
    return program


def _shared(file: SourceFile) -> SourceFile:
    if isinstance(file.location, Path | RemotePath):
        return replace(file, location=shared(file.location, file.size))
    return file
