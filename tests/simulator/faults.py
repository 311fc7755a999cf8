"""What goes wrong: processes that die, disks that are full, torn or flip bits."""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The modules whose calls are counted: those that store.
_STORING = (
    "memhouse.schema.store",
    "memhouse.schema.table_rows",
    "memhouse.schema.connection",
    "memhouse.schema.compaction",
    "memhouse.ingest.pipeline",
)


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a process, if anything.

    killed_at: the call of a function of memhouse's stores, or of what they call, at which the
    process is killed; interrupted_at: the same, with Ctrl-C; killed_after: seconds; room: the
    bytes that a file may have. torn: how much stays of what the dead process wrote last.
    """

    killed_at: int | None = None
    interrupted_at: int | None = None
    killed_after: float | None = None
    room: int | None = None
    torn: float | None = None

    def arm(self) -> None:
        """Let it happen to this process."""
        if self.room is not None:
            # Python 3.11 would leave half of a module's bytecode behind.
            sys.dont_write_bytecode = True
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.room, self.room))
        if self.killed_at is None and self.interrupted_at is None:
            return
        left = self.killed_at or self.interrupted_at

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal left
            calls = frame if event == "c_call" else frame.f_back if event == "call" else None
            if calls is None or not calls.f_globals.get("__name__", "").startswith(_STORING):
                return
            left -= 1
            if left == 0:
                sys.setprofile(None)
                os.kill(os.getpid(), signal.SIGKILL if self.killed_at else signal.SIGINT)

        sys.setprofile(count)


def tear(before: Mapping[Path, int], after: Mapping[Path, int], share: float) -> None:
    """Take from files what a dead process appended last, but for a share of it."""
    for path, size in after.items():
        if path in before and size > before[path]:
            os.truncate(path, before[path] + int((size - before[path]) * share))


def flip(path: Path, place: float, bit: int) -> None:
    """Turn one bit of a file; `place` is a share of its length."""
    with path.open("r+b") as file:
        at = int(place * path.stat().st_size)
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ (1 << (bit - 1))]))
