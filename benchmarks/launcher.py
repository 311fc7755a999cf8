"""Runs one command and writes its time and memory to a file, as JSON.

    python launcher.py FILE sample|- COMMAND...

The launcher is a small process of its own, because Linux counts the memory of the process
that starts a command into the command's maximum.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep

_SAMPLING_INTERVAL = 0.02


def main(file: str, sample: str, *command: str) -> None:
    """Start the command, wait for it, and write its time and memory."""
    start = perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    total = 0
    if sample == "sample":
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            total = max(total, _memory_of_session(child.pid))
            sleep(_SAMPLING_INTERVAL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = perf_counter() - start
    result = {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": seconds,
        # Of the command and of all its children that it waited for.
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        # ru_maxrss is in KiB, for the largest process among the command and its children.
        "peak_bytes": usage.ru_maxrss * 1024,
        "total_bytes": total,
    }
    Path(file).write_text(json.dumps(result))


def _memory_of_session(session: int) -> int:
    """Current memory of the command and all its children; shared memory counts once."""
    total = 0
    for folder in Path("/proc").iterdir():
        # A process may end while its files are read.
        with suppress(OSError, ValueError, IndexError):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name.isdigit() and int(stat[3]) == session:
                rollup = (folder / "smaps_rollup").read_text()
                total += 1024 * int(rollup.partition("\nPss:")[2].split()[0])
    return total


if __name__ == "__main__":
    main(*sys.argv[1:])
