"""Reads programs, one after the other or in processes beside the writing process."""

import errno
import mmap
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Protocol

import pyarrow as pa

from ..schema.errors import WarehouseError
from .batches import FilesOf
from .read_program import ProgramOutcome, read_program, recognised
from .readers.lines import use_quick_memory
from .sources.program import Identified, Program

# Hands the rows of large modules from reading processes to the writing process.
#
# A reading process puts the rows into memory without a name in any file system and sends the
# memory's descriptor; the writing process maps the memory. So the rows are copied once, and
# nothing stays behind, however the processes end.

# The mapped memory of each module keeps a descriptor open, and a process may have few of them.
LARGE_BYTES = 4 << 20

_NUMBER_BYTES = 8
_TABLE = b"table"


class HandOver:
    """The writing process's end; `sending` is the end of all reading processes."""

    def __init__(self) -> None:
        self._receiving, self.sending = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._receiving.setblocking(False)
        # None where this process had no descriptor left.
        self._arrived: dict[int, mmap.mmap | None] = {}
        self._lock = threading.Lock()

    def receive(self) -> None:
        """Map all memory that was sent: few messages may wait, then senders wait too."""
        with self._lock, suppress(BlockingIOError):
            while True:
                number, descriptors, *_ = socket.recv_fds(self._receiving, _NUMBER_BYTES, 1)
                self._arrived[int.from_bytes(number)] = _mapped(descriptors)

    def take(self, number: int) -> dict[str, pa.Table]:
        """The tables that were sent under this number; their memory is freed with them.

        Raises WarehouseError if this process had too many open files to receive them.
        """
        self.receive()
        memory = self._arrived.pop(number)
        if memory is None:
            raise WarehouseError("too many open files: raise `ulimit -n`, or use --jobs 1")
        source = pa.BufferReader(pa.py_buffer(memory))
        tables = {}
        while source.tell() < source.size():
            table = pa.ipc.open_stream(source).read_all()
            name = table.schema.metadata[_TABLE].decode()
            tables[name] = table.replace_schema_metadata()
        return tables

    def close(self) -> None:
        """Close both ends."""
        self._receiving.close()
        self.sending.close()


def send(sending: socket.socket, number: int, tables: Mapping[str, pa.Table]) -> None:
    """Send the tables of a module under a number."""
    with os.fdopen(_nameless_memory(), "wb") as memory:
        for name, table in tables.items():
            schema = table.schema.with_metadata({_TABLE: name})
            with pa.ipc.new_stream(memory, schema) as stream:
                stream.write_table(table)
        memory.flush()
        socket.send_fds(sending, [number.to_bytes(_NUMBER_BYTES)], [memory.fileno()])


def _mapped(descriptors: Sequence[int]) -> mmap.mmap | None:
    """The memory of a message's descriptor, None if this process has too many open files."""
    try:
        # The system drops a descriptor for which there is no room, and a map needs another one.
        return mmap.mmap(descriptors[0], 0, access=mmap.ACCESS_READ) if descriptors else None
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _nameless_memory() -> int:
    """A descriptor of empty memory; where the system has none, of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("memhouse")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


# Reads programs, one after the other or in processes beside the writing process.

# The bytes of files to read ahead: enough to keep the processes busy while a new warehouse is
# created, few enough for memory. One program a process, and one more, may always wait.
_AHEAD_BYTES = 32 << 20


class Reading(Protocol):
    """What reads the programs of a run, here or on other machines."""

    def prepared(self, programs: Sequence[Program]) -> Sequence[Program]:
        """The programs as those who read see them."""

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcome of each program, in order; see `read_program` for `known`."""

    @property
    def files_of(self) -> FilesOf | None:
        """What gives the files that hold the rows of modules; None: the outcomes have the rows."""


class Workers:
    """A number of jobs for reading programs; a context manager.

    With one job this process reads. With several jobs as many processes read, which start with
    the first run of several programs; this process reads a single program, in threads. `mine` are
    patterns of files that are the user's code, see `frames.are_library`.
    """

    def __init__(self, jobs: int, mine: Sequence[str] = ()) -> None:
        self._jobs, self._mine = jobs, mine
        self._numbers = count()
        self._handed: HandOver | None = None
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            self._handed = HandOver()
            self._pool = ProcessPoolExecutor(
                jobs, initializer=_prepare, initargs=(self._handed.sending,)
            )
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._handed is not None:
            self._handed.close()

    files_of = None

    def prepared(self, programs: Sequence[Program]) -> Sequence[Program]:
        """As they are."""
        return programs

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcome of each program, in order; see `read_program` for `known`.

        With several jobs reading begins at once, not with the first outcome requested.
        """
        if self._pool is None:
            return (read_program(program, known, mine=self._mine) for program in programs)
        if len(programs) == 1:
            (program,) = programs
            outcome = self._thread.submit(
                read_program, program, known, beside=True, mine=self._mine
            )
            return (future.result() for future in [outcome])
        begun: _Begun = deque()
        rest = deque(programs)
        self._begin_ahead(begun, rest, known)
        return self._results(begun, rest, known)

    def _results(
        self, begun: "_Begun", rest: deque[Program], known: Set[int]
    ) -> Iterator[ProgramOutcome]:
        while begun:
            _, outcome = begun.popleft()
            yield outcome()
            self._begin_ahead(begun, rest, known)

    def _begin_ahead(self, begun: "_Begun", rest: deque[Program], known: Set[int]) -> None:
        """Begin to read programs until enough are ahead and every process has work."""
        ahead_bytes = sum(size for size, _ in begun)
        while rest and (len(begun) <= self._jobs or ahead_bytes < _AHEAD_BYTES):
            program = rest.popleft()
            begun.append((program.size_bytes, self._begin(program, known)))
            ahead_bytes += program.size_bytes

    def _begin(self, program: Program, known: Set[int]) -> Callable[[], ProgramOutcome]:
        """Begin to read a program; returns a function that waits for the outcome."""
        assert self._pool is not None
        assert self._handed is not None
        handed, number = self._handed, next(self._numbers)
        identified = None
        if known:
            # Hashing a program costs less than sending it to another process, and most
            # programs of a run are known. The content is sent along, so it is read once.
            identified = program.fingerprint()
            if identified.module_id in known:
                outcome = recognised(program, identified)
                return lambda: outcome
        reading = self._pool.submit(_read_beside, program, identified, number, self._mine)
        reading.add_done_callback(lambda _: handed.receive())

        def read() -> ProgramOutcome:
            outcome, is_handed_over = reading.result()
            if is_handed_over:
                assert outcome.module is not None
                outcome.module.tables = handed.take(number)
            return outcome

        return read


# The programs being read, in order: their sizes and the functions that wait for outcomes.
_Begun = deque[tuple[int, Callable[[], ProgramOutcome]]]


# A reading process's end of the hand-over.
_sending: socket.socket


def _prepare(sending: socket.socket) -> None:
    """Prepare a process: set up its memory, and end it when its parent ends."""
    global _sending
    _sending = sending
    # Ctrl-C goes to all processes, and a process that ends by itself may hold the queue's lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_quick_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _read_beside(
    program: Program, identified: Identified | None, number: int, mine: Sequence[str]
) -> tuple[ProgramOutcome, bool]:
    """Read a program in a process; whether its rows are handed over, not in the outcome."""
    outcome = read_program(program, frozenset(), identified, mine=mine)
    module = outcome.module
    if module is None or module.nbytes < LARGE_BYTES:
        return outcome, False
    send(_sending, number, module.tables)
    module.tables = {}
    return outcome, True


def _end_with_parent() -> None:
    """End with the parent: otherwise processes of a killed parent would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
