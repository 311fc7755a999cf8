"""Reads dumps, one after the other or in processes beside the one that writes them."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from .read_dump import DumpOutcome, read_dump, recognise
from .readers.lines import use_quick_memory
from .sources.dump_folder import Dump

# What is read and not yet written is held in memory: of so many bytes of files, which keeps
# the processes busy while a new warehouse is made, but of a dump for each process and one more
# in any case.
_AHEAD_BYTES = 32 << 20


class Readers:
    """So many processors for reading dumps; a context manager.

    One processor is this process alone. Several are as many processes, which start with the
    first folder of several dumps; a single dump is read here, in threads.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = ProcessPoolExecutor(jobs, initializer=_prepare) if jobs > 1 else None
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def read(self, found: list[Dump], known: Set[int]) -> Iterator[DumpOutcome]:
        """Each dump read, in order; see `read_dump` for `known`.

        With several processors reading begins at once, not when the first is asked for.
        """
        if self._pool is None:
            return (read_dump(dump, known) for dump in found)
        if len(found) == 1:
            outcome = self._thread.submit(read_dump, found[0], known, beside=True)
            return (future.result() for future in [outcome])
        begun: _Begun = deque()
        rest = deque(found)
        self._begin_ahead(begun, rest, known)
        return self._results(begun, rest, known)

    def _results(
        self, begun: "_Begun", rest: deque[Dump], known: Set[int]
    ) -> Iterator[DumpOutcome]:
        while begun:
            _, outcome = begun.popleft()
            yield outcome()
            self._begin_ahead(begun, rest, known)

    def _begin_ahead(self, begun: "_Begun", rest: deque[Dump], known: Set[int]) -> None:
        """Begin to read dumps until enough are ahead, and no process is out of work."""
        ahead_bytes = sum(size for size, _ in begun)
        while rest and (len(begun) <= self._jobs or ahead_bytes < _AHEAD_BYTES):
            dump = rest.popleft()
            begun.append((dump.size_bytes, self._begin(dump, known)))
            ahead_bytes += dump.size_bytes

    def _begin(self, dump: Dump, known: Set[int]) -> Callable[[], DumpOutcome]:
        """Begin to read a dump; what is returned waits for the outcome."""
        assert self._pool is not None
        # To hash a dump takes less than to send it to another process, and most of a night's
        # are known.
        outcome = recognise(dump, known) if known else None
        if outcome is not None:
            return lambda: outcome
        return self._pool.submit(read_dump, dump, frozenset()).result


# The dumps being read, in order: each one's size, and what waits for its outcome.
_Begun = deque[tuple[int, Callable[[], DumpOutcome]]]


def _prepare() -> None:
    """Make a process ready: memory for the readers, and an end with the parent's."""
    # A terminal sends Ctrl-C to all. One that ends on its own may hold the queue's lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_quick_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent tells its processes nothing: they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
