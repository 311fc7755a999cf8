"""Reads programs, one after the other or in processes beside the one that writes them."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from .read_program import ProgramOutcome, read_program, recognised
from .readers.lines import use_quick_memory
from .sources.program import Program

# What is read and not yet written is held in memory. So many bytes of files keep the processes
# busy while a new warehouse is made; a program for each process and one more wait in any case.
_AHEAD_BYTES = 32 << 20


class Workers:
    """So many processors for reading programs; a context manager.

    One processor is this process alone. Several are as many processes, which start with the
    first run of several programs; a single program is read here, in threads.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = ProcessPoolExecutor(jobs, initializer=_prepare) if jobs > 1 else None
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def read(self, programs: Sequence[Program], known: Set[int]) -> Iterator[ProgramOutcome]:
        """Each program read, in order; see `read_program` for `known`.

        With several processors reading begins at once, not when the first outcome is asked for.
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
        """Begin to read programs until enough are ahead, and no process is out of work."""
        ahead_bytes = sum(size for size, _ in begun)
        while rest and (len(begun) <= self._jobs or ahead_bytes < _AHEAD_BYTES):
            program = rest.popleft()
            begun.append((program.size_bytes, self._begin(program, known)))
            ahead_bytes += program.size_bytes

    def _begin(self, program: Program, known: Set[int]) -> Callable[[], ProgramOutcome]:
        """Begin to read a program; what is returned waits for the outcome."""
        assert self._pool is not None
        identified = None
        if known:
            # To hash a program takes less than to send it to another process, and most
            # programs of a night are known. The content goes along: nothing is read twice.
            identified = program.fingerprint()
            if identified.module_id in known:
                outcome = recognised(program, identified)
                return lambda: outcome
        return self._pool.submit(read_program, program, frozenset(), identified).result


# The programs being read, in order: each one's size, and what waits for its outcome.
_Begun = deque[tuple[int, Callable[[], ProgramOutcome]]]


def _prepare() -> None:
    """Make a process ready: memory for the readers, and an end with the parent's."""
    # A terminal sends Ctrl-C to all. A process that ends on its own may hold the queue's lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_quick_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent tells its processes nothing: they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
