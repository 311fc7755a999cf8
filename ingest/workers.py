"""Reads the programs of a run in order, in this process or in several."""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial

from .outcomes import OK
from .read_program import (
    Content,
    ProgramOutcome,
    ReadBefore,
    content_of,
    read_program,
    recognised,
)
from .sources.program import Identified, Program

# The bytes of files to read ahead: enough to keep the processes busy while a new warehouse is
# created, few enough for memory. One program a process, and one more, may always wait.
_AHEAD_BYTES = 32 << 20


class Workers:
    """A number of jobs for reading programs; a context manager.

    With one job this process reads; with several jobs as many processes read, a program each.
    `user_code` are patterns of files that are the user's code, see `frames.is_library`.
    """

    def __init__(self, jobs: int, user_code: Sequence[str] = ()) -> None:
        self._jobs, self._user_code = jobs, user_code
        self._pool = ProcessPoolExecutor(jobs, initializer=_prepare) if jobs > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def read(
        self,
        programs: Sequence[Program],
        known: Set[int],
        fingerprints: Mapping[int, Identified],
    ) -> Iterator[ProgramOutcome]:
        """The outcome of each program, in order; see `read_program` for `known`.

        `fingerprints` are those taken before, by index: with them a known program is not hashed.
        """
        stored = {i: taken for i, taken in fingerprints.items() if taken.module_id in known}
        if self._pool is None or len(programs) == 1:
            before = ReadBefore()
            for index, program in enumerate(programs):
                yield read_program(
                    program, known, stored.get(index), user_code=self._user_code, before=before
                )
            return
        names = Counter(program.key.module_name for program in programs)
        run = _RunOfProcesses(self._pool, known, names, self._user_code)
        queue: deque[tuple[int, Callable[[], ProgramOutcome]]] = deque()
        queued_bytes = 0
        for index, program in enumerate(programs):
            while len(queue) > self._jobs and queued_bytes >= _AHEAD_BYTES:
                size, outcome = queue.popleft()
                queued_bytes -= size
                yield outcome()
            queue.append((program.size_bytes, run.begin(program, stored.get(index))))
            queued_bytes += program.size_bytes
        for _, outcome in queue:
            yield outcome()


class _RunOfProcesses:
    """Which programs of a run processes read: not those known, and of one content only the first.

    Hashing a program costs less than sending it to another process, and most programs of a run are
    known, or those of another host too.
    """

    def __init__(
        self,
        pool: ProcessPoolExecutor,
        known: Set[int],
        names: Counter[str],
        user_code: Sequence[str],
    ) -> None:
        self._pool, self._known, self._names, self._user_code = pool, known, names, user_code
        self._before, self._begun = ReadBefore(), set[Content]()

    def begin(
        self, program: Program, identified: Identified | None
    ) -> Callable[[], ProgramOutcome]:
        """Begin to read a program; the function waits for its outcome. Call it in order."""
        if not self._known and self._names[program.key.module_name] == 1:
            return partial(self._remembered, None, self._submit(program))
        identified = identified or program.fingerprint()
        if identified.module_id in self._known or identified.left_out is not None:
            return partial(recognised, program, identified)
        content = content_of(program.key, identified)
        if content in self._begun:
            # No content waits in memory.
            identified.content = None
            return partial(self._repeated, program, identified)
        self._begun.add(content)
        # The content is sent along, so that it is read once.
        return partial(self._remembered, content, self._submit(program, identified))

    def _submit(
        self, program: Program, identified: Identified | None = None
    ) -> Future[ProgramOutcome]:
        return self._pool.submit(
            read_program, program, frozenset(), identified, user_code=self._user_code
        )

    def _repeated(self, program: Program, identified: Identified) -> ProgramOutcome:
        return self._before.outcome(program, identified) or self._submit(program).result()

    def _remembered(
        self, content: Content | None, future: Future[ProgramOutcome]
    ) -> ProgramOutcome:
        outcome = future.result()
        self._before.remember(outcome)
        if outcome.status != OK and content is not None:
            # The files of the next program with this content may state more.
            self._begun.remove(content)
        return outcome


def _prepare() -> None:
    """Prepare a process that ends when its parent ends."""
    # Ctrl-C goes to all processes, and a process that ends by itself may hold the queue's lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End with the parent: otherwise processes of a killed parent would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a pool's process comes here"
    parent.join()
    os._exit(1)
