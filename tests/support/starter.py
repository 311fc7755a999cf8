"""A process that has imported what commands import, and becomes each command by a fork.

A start of memhouse takes half a second, nearly all of it imports, and the tests start it thousands
of times. `command.py` runs this file: its argument is the socket on which it is asked, by
`start_by_fork.py`. It ends when its input ends, that is with who started it.
"""

import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

# What commands import that read a warehouse, and what Typer prints their help and errors with.
IMPORTED = (
    *("memhouse.cli.app", "memhouse.cli.opening", "memhouse.queries.lists"),
    *("pydantic", "typer.rich_utils"),
)
LARGEST = 1 << 20
Request = tuple[list[str], str, dict[str, str]]


def next_request(listening: socket.socket) -> tuple[Request, list[int]]:
    """Returns in a new process for each request: what is asked, and the streams it is to have."""
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while True:
            if any(key.fd == 0 for key, _ in selector.select()):
                os._exit(0)
            asked, _ = listening.accept()
            if os.fork() == 0:
                break
            asked.close()
    listening.close()
    # This process waits for the command, because only a parent learns how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(asked, LARGEST, 3)
    if command := os.fork():
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(command, 0)
        asked.send(marshal.dumps(os.waitstatus_to_exitcode(status)))
        os._exit(0)
    asked.close()
    return marshal.loads(data), streams


def become(request: Request, streams: list[int]) -> None:
    """Run the command's script, as Python that is started anew does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv, folder, environment = request
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(sys.argv[1])
    listening.listen()
    print("ready", flush=True)
    # Nobody asks how those ended that waited for commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    become(*next_request(listening))
