"""Reads dumps, one after the other or in processes beside the one that writes them."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ProcessPoolExecutor

from .discover import Dump
from .lines import use_quick_memory
from .read_dump import DumpOutcome, read_dump, recognise


class Readers:
    """So many processors for reading dumps; a context manager.

    One processor is this process alone. Several are as many processes, which start with the
    first folder of several dumps; a single dump is read here, with a thread beside.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = ProcessPoolExecutor(jobs, initializer=_prepare) if jobs > 1 else None

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def read(self, found: list[Dump], known: Set[int]) -> Iterator[DumpOutcome]:
        """Each dump read, in order; see `read_dump` for `known`."""
        if self._pool is None or len(found) < 2:
            for dump in found:
                yield read_dump(dump, known, beside=self._jobs > 1)
            return
        # Only so many ahead: what is read but not yet written is held in memory.
        ahead: deque[Callable[[], DumpOutcome]] = deque()
        for dump in found:
            ahead.append(self._begin(dump, known))
            if len(ahead) > self._jobs:
                yield ahead.popleft()()
        while ahead:
            yield ahead.popleft()()

    def _begin(self, dump: Dump, known: Set[int]) -> Callable[[], DumpOutcome]:
        """Begin to read a dump; what is returned waits for the outcome."""
        assert self._pool is not None
        # To hash a dump takes less than to send it to another process, and most of a night's
        # are known.
        outcome = recognise(dump, known) if known else None
        if outcome is not None:
            return lambda: outcome
        return self._pool.submit(read_dump, dump, frozenset()).result


def _prepare() -> None:
    """Make a process ready: memory for the readers, and an end with the parent's."""
    use_quick_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent tells its processes nothing: they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
