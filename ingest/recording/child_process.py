"""Running a command as `env` would: its streams, signals and exit status are passed through."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from ...schema.errors import MemhouseError

_KEYS = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (*_KEYS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
SIGNALLED = 128


class CommandError(MemhouseError):
    """A command that cannot be run; `status` is the exit status that shells give it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command to its end; its exit status, 128+N if signal N killed it.

    The child is in this process group, and has this process's streams. A signal that this
    process receives is sent on, except for Ctrl-C and the like: the terminal sends these to
    the child itself. Raises CommandError.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def send_on(number: int, _: FrameType | None) -> None:
        if number in _KEYS and _is_in_foreground():
            return
        if not children:
            early.append(number)
        with suppress(ProcessLookupError):
            for child in children:
                os.kill(child.pid, number)

    with handling(_FORWARDED, send_on):
        try:
            # Files that the user opened for the command stay open: `<(…)` in a shell is one.
            children.append(subprocess.Popen(command, env=environment, close_fds=False))
        except OSError as error:
            raise _cannot_run(command[0], error) from None
        except ValueError as error:  # A null byte.
            raise CommandError(f"{command[0]!r}: {error}", _NOT_EXECUTABLE) from None
        for number in early:
            send_on(number, None)
        status = children[0].wait()
    return SIGNALLED - status if status < 0 else status


@contextmanager
def handling(
    numbers: Sequence[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Handle these signals in the block; one that is ignored, as by `nohup`, stays ignored."""
    before = {}
    # Only the main thread may set handlers.
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ending_well() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block as an exception, so that it can clean up."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(SIGNALLED + number)

    with handling((signal.SIGTERM, signal.SIGHUP), end):
        yield


def _is_in_foreground() -> bool:
    """Whether the keys of a terminal send their signals to this process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _cannot_run(program: str, error: OSError) -> CommandError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        # A script is there whose interpreter is not.
        if os.path.exists(program):  # noqa: PTH110
            return CommandError(
                f"{program}: the interpreter in its first line is not there", _NOT_EXECUTABLE
            )
        return CommandError(f"{program}: there is no such command", _NOT_FOUND)
    why = error.strerror or str(error)
    return CommandError(f"{program}: it cannot be run: {why}", _NOT_EXECUTABLE)
