"""Reads a run's programs, in turn or in processes beside this one, and writes rows in batches."""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa

from ..schema import arrow, ids
from ..schema.journal import entries
from ..schema.stores.base import Batch, Known
from ..schema.stores.duckdb import Store
from ..schema.versions import READER_VERSION
from .choose_run import Occurrences
from .modules import with_ids
from .outcomes import OK
from .read_program import (
    Content,
    ProgramOutcome,
    ReadBefore,
    batches_of,
    content_of,
    read_programs,
    recognised,
)
from .readers.line_columns import use_quick_memory
from .sources.program import Identified, Program

# Reads programs, one after the other or in processes beside the writing process.

# The bytes of files to read ahead: enough to keep the processes busy while a new warehouse is
# created, few enough for memory. One program a process, and one more, may always wait.
_AHEAD_BYTES = 32 << 20
_BATCHES_PER_JOB = 2


class Workers:
    """A number of jobs for reading programs; a context manager.

    With one job this process reads; with several jobs as many processes read, unless there is a
    single program. `mine` are patterns of files that are the user's code, see `frames.are_library`.
    """

    def __init__(self, jobs: int, mine: Sequence[str] = ()) -> None:
        self._jobs, self._mine = jobs, mine
        self._pool = ProcessPoolExecutor(jobs, initializer=_prepare) if jobs > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcome of each program, in order; see `read_programs` for `known`."""
        if self._pool is None or len(programs) == 1:
            before = ReadBefore()
            for batch in batches_of(programs):
                together = [(program, None) for program in batch]
                yield from read_programs(together, known, mine=self._mine, before=before)
            return
        plan = _Plan(programs, known, self._mine, self._pool)
        # Each process has a few batches to do, so that they end together.
        batches = deque(batches_of(programs, least=_BATCHES_PER_JOB * self._jobs))
        begun: deque[tuple[int, Iterator[ProgramOutcome]]] = deque()
        while batches or begun:
            ahead_bytes = sum(size for size, _ in begun)
            while batches and (len(begun) <= self._jobs or ahead_bytes < _AHEAD_BYTES):
                batch = batches.popleft()
                size = sum(program.size_bytes for program in batch)
                begun.append((size, plan.begin(batch)))
                ahead_bytes += size
            yield from begun.popleft()[1]


class _Plan:
    """Which programs of a run processes read: not those known, and of one content only the first.

    Hashing a program costs less than sending it to another process, and most programs of a run are
    known, or those of another host too.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        known: Set[int],
        mine: Sequence[str],
        pool: ProcessPoolExecutor,
    ) -> None:
        self._known, self._mine, self._pool = known, mine, pool
        self._names = Counter(program.key.module_name for program in programs)
        self._before, self._contents = ReadBefore(), set[Content]()

    def begin(self, batch: Sequence[Program]) -> Iterator[ProgramOutcome]:
        """Begin to read programs; the iterator waits for their outcomes, in order."""
        sent: list[tuple[Program, Identified | None]] = []
        reading: list[Future[list[ProgramOutcome]]] = []
        read: deque[ProgramOutcome] = deque()

        def next_read() -> ProgramOutcome:
            while reading:
                read.extend(reading.pop().result())
            return read.popleft()

        outcomes: list[Callable[[], ProgramOutcome]] = []
        for program in batch:
            content = identified = None
            if self._known or self._names[program.key.module_name] > 1:
                identified = program.fingerprint()
                content = content_of(program.key, identified)
                if identified.module_id in self._known:
                    outcomes.append(partial(recognised, program, identified))
                    continue
                if content in self._contents:
                    # The first one's outcome comes before this one's. No content waits in memory.
                    identified.content = None
                    outcomes.append(partial(self._repeated, program, identified))
                    continue
                self._contents.add(content)
            outcomes.append(partial(self._read, content, next_read))
            # The content is sent along, so it is read once.
            sent.append((program, identified))
        if sent:
            reading.append(self._submit(sent))
        return (outcome() for outcome in outcomes)

    def _submit(self, programs: list[tuple[Program, Identified | None]]) -> Future[Any]:
        return self._pool.submit(read_programs, programs, frozenset(), mine=self._mine)

    def _read(
        self, content: Content | None, outcome_of: Callable[[], ProgramOutcome]
    ) -> ProgramOutcome:
        outcome = outcome_of()
        self._before.remember(outcome)
        if outcome.status != OK and content is not None:
            self._contents.remove(content)
        return outcome

    def _repeated(self, program: Program, identified: Identified) -> ProgramOutcome:
        found = self._before.outcome(program, identified)
        return found or self._submit([(program, None)]).result()[0]


def _prepare() -> None:
    """Prepare a process: set up its memory, and end it when its parent ends."""
    # Ctrl-C goes to all processes, and a process that ends by itself may hold the queue's lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_quick_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End with the parent: otherwise processes of a killed parent would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)


# Collects the outcomes of a run's programs and writes them in batches.

# Rows wait in memory until a batch reaches a limit, because a transaction for each small module
# costs more than reading it, and because the store compresses several large modules in parallel.
# A small table takes far more memory than its rows. Dumps of known modules take little, and each
# transaction works the history of the whole run out again.
_BATCH_BYTES = 96 << 20
_BATCH_MODULES = 500
_BATCH_DUMPS = 8_000

_Row = dict[str, Any]


class Batches:
    """A run's dumps that wait for the store; `new_modules` counts the modules written.

    `run` is the run's own row and labels, if they change: they are part of the first batch, so
    that a stored run has dumps. The dumps in `kept` stay as they are stored.
    `device_memory_bytes` is each dump's device's memory, if the user says so.
    `entry` is what the journal says of the ingest, with the first batch that changes anything.
    `read_again` counts the modules whose rows an older reader had stored.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        known: Known,
        occurrences: Occurrences,
        run: Batch | None = None,
        kept: Set[int] = frozenset(),
        device_memory_bytes: int | None = None,
        *,
        host: str | None = None,
        entry: _Row | None = None,
    ) -> None:
        self._host, self._entry = host, entry
        self._store, self._run_id, self._known = store, run_id, known
        self._occurrences = occurrences
        self._run, self._kept = run, kept
        self._device_memory_bytes = device_memory_bytes
        self._stored, self._complete = set(known.modules), set(known.complete)
        self._outdated = set(known.outdated)
        self._flag_sets, self._file_sets = map(
            set, (known.sets["flags_id"], known.sets["files_id"])
        )
        self.new_modules = self.read_again = 0
        self._dumps: list[tuple[_Row, ProgramOutcome]] = []
        self._modules: dict[int, ProgramOutcome] = {}
        # Those of kept dumps, whose rows a repeated program may need.
        self._spare: dict[int, ProgramOutcome] = {}
        self._flags: dict[int, dict[str, str]] = {}
        self._files: dict[int, list[_Row]] = {}
        self._waiting_bytes = 0

    def add(self, outcome: ProgramOutcome) -> bool:
        """Add a program's outcome; False if the dump stays as it is stored."""
        key = outcome.key
        if ids.dump_id(self._run_id, *key.in_run) in self._kept:
            if outcome.module is not None and outcome.status == OK:
                assert outcome.module_id is not None
                self._spare[outcome.module_id] = outcome
            return False
        occurrence = self._occurrences.number(key.workload, outcome.module_name, key.platform)
        files = [file.row(key.workload) for file in outcome.files]
        row = {
            **_dump_row(self._run_id, outcome, occurrence),
            "host": self._host,
            "files_id": ids.files_id(files),
        }
        self._set_device_memory(row)
        stored = self._known.dumps.get(row["dump_id"], row)
        # The folder of a whole night holds the parts that hosts ingested.
        row["host"] = stored["host"]
        # A message in a log may have said so.
        row["oom"] |= stored["oom"]
        if self._is_stored(row, outcome):
            return False
        self._dumps.append((row, outcome))
        flags_id = row["flags_id"]
        if flags_id is not None and flags_id not in self._flag_sets:
            self._flags[flags_id] = outcome.settings.flags or {}
        if row["files_id"] not in self._file_sets:
            self._files[row["files_id"]] = files
        if outcome.is_repeated and outcome.module_id in self._spare:
            outcome.module = self._spare[outcome.module_id].module
        if outcome.module is not None and self._is_wanted(outcome):
            assert outcome.module_id is not None
            self._modules[outcome.module_id] = outcome
            self._waiting_bytes += outcome.module.nbytes
        else:
            # Its rows would wait in memory for nothing.
            outcome.module = None
        is_full = (
            self._waiting_bytes > _BATCH_BYTES
            or len(self._modules) >= _BATCH_MODULES
            or len(self._dumps) >= _BATCH_DUMPS
        )
        if is_full:
            self.write()
        return True

    def _is_stored(self, row: _Row, outcome: ProgramOutcome) -> bool:
        """Whether the dump, its files and its module are stored as they were read now."""
        stored = self._known.dumps.get(row["dump_id"])
        if outcome.status != OK:
            is_wanted = outcome.module is not None and self._is_wanted(outcome)
            return stored == row and not is_wanted
        # Only who reads a file notes what it does not say.
        if stored is None or {**stored, "files_id": row["files_id"]} != row:
            return False
        was_read = outcome.module is not None or outcome.is_repeated
        return not was_read or outcome.module_id not in self._outdated

    def _set_device_memory(self, row: _Row) -> None:
        """Set the memory that the user says; what was said of a stored dump stays."""
        said = self._device_memory_bytes
        stored = self._known.dumps.get(row["dump_id"])
        if said is None and stored is not None and stored["device_kind"] == row["device_kind"]:
            said = stored["device_memory_bytes"]
        if said is not None:
            row["device_memory_bytes"] = said

    def _is_wanted(self, outcome: ProgramOutcome) -> bool:
        """Whether the module is not stored, or by an older reader, or is complete only now."""
        return (
            outcome.module_id not in self._stored
            or outcome.module_id in self._outdated
            or (outcome.status == OK and outcome.module_id not in self._complete)
        )

    def _action(self) -> _Row:
        """What becomes of the entry if no night enters: its dumps are stored, and read again."""
        is_again = (
            self._run is None
            and self._modules.keys() <= self._stored & self._outdated
            and all(row["dump_id"] in self._known.dumps for row, _ in self._dumps)
        )
        return {"action": "read again"} if is_again and self._modules else {}

    def write(self) -> None:
        """Write all waiting rows in one transaction."""
        if not self._dumps and self._run is None:
            return
        rows = [row for row, _ in self._dumps]
        run = self._run or Batch({})
        told = {} if self._entry is None else entries(self._entry | self._action())
        tables = {
            **run.tables,
            **told,
            "dumps": arrow.rows("dumps", rows),
        }
        if self._files:
            of_sets = [{"files_id": id_, **row} for id_, of in self._files.items() for row in of]
            tables["file_sets"] = arrow.rows("file_sets", of_sets)
        if self._flags:
            flags = [
                {"flags_id": flags_id, "flag": flag, "value": value}
                for flags_id, flag_set in self._flags.items()
                for flag, value in sorted(flag_set.items())
            ]
            tables["compiler_flags"] = arrow.rows("compiler_flags", flags)
        self._store.write(
            Batch(
                tables | _module_tables(self._modules),
                modules=sorted(self._stored & self._modules.keys()),
                dumps=sorted(self._known.dumps.keys() & {row["dump_id"] for row in rows}),
                runs=run.runs,
            )
        )
        self._run = self._entry = None
        self.read_again += len(self._outdated & self._modules.keys())
        self._outdated -= self._modules.keys()
        self.new_modules += len(self._modules.keys() - self._stored)
        self._stored.update(self._modules)
        self._complete.update(id_ for id_, of in self._modules.items() if of.status == OK)
        self._flag_sets.update(self._flags)
        self._file_sets.update(self._files)
        for written in (self._dumps, self._modules, self._flags, self._files):
            written.clear()
        self._waiting_bytes = 0


def _dump_row(run_id: str, outcome: ProgramOutcome, occurrence: int) -> _Row:
    key, settings = outcome.key, outcome.settings
    return {
        "dump_id": ids.dump_id(run_id, *key.in_run),
        "run_id": run_id,
        "workload": key.workload,
        "module_name": outcome.module_name,
        "module_number": key.number,
        "occurrence": occurrence,
        "platform": key.platform,
        "target": key.target,
        "compiler": key.compiler,
        "module_id": outcome.module_id,
        "flags_id": None if settings.flags is None else ids.flags_id(settings.flags),
        "device_kind": settings.device.get("device_kind"),
        "device_memory_bytes": settings.device.get("device_memory_bytes"),
        "topology": settings.device.get("topology"),
        "status": outcome.status,
        "oom": outcome.oom,
    }


def _module_tables(outcomes: dict[int, ProgramOutcome]) -> dict[str, pa.Table]:
    """The rows of these modules, by table, with module_id."""
    modules = {id_: of.module for id_, of in outcomes.items() if of.module is not None}
    if not modules:
        return {}
    headers = [
        {"module_id": module_id, "module_name": outcomes[module_id].module_name}
        | module.header
        | {"reader_version": READER_VERSION}
        for module_id, module in modules.items()
    ]
    return {"modules": arrow.rows("modules", headers), **with_ids(modules)}
