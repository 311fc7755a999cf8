"""Reads programs, one after the other or in processes beside the writing process."""

import multiprocessing
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import count
from typing import Protocol

from . import hand_over
from .batches import FilesOf
from .read_program import ProgramOutcome, read_program, recognised
from .readers.lines import use_quick_memory
from .sources.files import Given, OpenArchive
from .sources.program import Identified, Program

# The bytes of files to read ahead: enough to keep the processes busy while a new warehouse is
# created, few enough for memory. One program a process, and one more, may always wait.
_AHEAD_BYTES = 32 << 20


class Reading(Protocol):
    """What reads the programs of a run, here or on other machines."""

    def archives(self, paths: Sequence[Given], refuse: Callable[[str], None]) -> OpenArchive | None:
        """What opens the archives under the paths; None: they are unpacked by this process."""

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
    the first run of several programs; this process reads a single program, in threads.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._numbers = count()
        self._handed: hand_over.HandOver | None = None
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            self._handed = hand_over.HandOver()
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

    def archives(self, paths: Sequence[Given], refuse: Callable[[str], None]) -> None:
        """This process unpacks them."""

    def prepared(self, programs: Sequence[Program]) -> Sequence[Program]:
        """As they are."""
        return programs

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """The outcome of each program, in order; see `read_program` for `known`.

        With several jobs reading begins at once, not with the first outcome requested.
        """
        if self._pool is None:
            return (read_program(program, known) for program in programs)
        if len(programs) == 1:
            outcome = self._thread.submit(read_program, programs[0], known, beside=True)
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
        reading = self._pool.submit(_read_beside, program, identified, number)
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
    program: Program, identified: Identified | None, number: int
) -> tuple[ProgramOutcome, bool]:
    """Read a program in a process; whether its rows are handed over, not in the outcome."""
    outcome = read_program(program, frozenset(), identified)
    module = outcome.module
    if module is None or module.nbytes < hand_over.LARGE_BYTES:
        return outcome, False
    hand_over.send(_sending, number, module.tables)
    module.tables = {}
    return outcome, True


def _end_with_parent() -> None:
    """End with the parent: otherwise processes of a killed parent would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
