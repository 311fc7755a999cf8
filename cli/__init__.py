"""The `memhouse` command, a skin of the library: options, a call, a renderer, a status."""

import os
import sys

from .encoding import replace_unencodable

_WRONG_USAGE = 2
_BISECTION_ABORTS = 128


def main() -> None:
    """The entry point: run the command and end the process."""
    _open_standard_streams()
    replace_unencodable(sys.stdout, sys.stderr)
    # At its own exit Python writes again to a stream that failed, and fails with its own status.
    os._exit(run())


def run() -> int:
    """Run the command of `sys.argv`; its status. An expected failure is one line and a status."""
    try:
        status = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output, `head` for one, has had enough: that is not a failure.
        return 0
    except Exception as error:
        from .errors import report_expected_error

        failed = report_expected_error(error)
        if failed is None:
            raise
        return failed
    return status


def _run() -> int:
    # Not at the top of the file: Ctrl-C while they are imported is no traceback either.
    from ..schema.errors import UsageError
    from .app import build_app

    # A shell that completes a line has it in the environment.
    completes = "_MEMHOUSE_COMPLETE" in os.environ
    if len(sys.argv) == 1 and not completes:
        from .commands.doctor import show_first_steps

        show_first_steps()
        # A script that lost the command's name must not pass.
        return _WRONG_USAGE
    try:
        # Loading one command instead of all saves most of the start.
        app = build_app(None if completes else sys.argv[1])
    except UsageError as error:
        from .render.text import print_error

        print_error(str(error))
        return _BISECTION_ABORTS if _bisects(sys.argv) else _WRONG_USAGE
    try:
        app(prog_name="memhouse")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        return _BISECTION_ABORTS if status == _WRONG_USAGE and _bisects(sys.argv) else status
    return 0


def _bisects(arguments: list[str]) -> bool:
    """Whether `git bisect run` asks: to git, the status of wrong usage is a bad commit."""
    return any(argument.partition("=")[0] == "--bisect" for argument in arguments)


def _open_standard_streams() -> None:
    """Where a standard stream is closed, open /dev/null in its place.

    Its number would go to the next file opened, and a message meant for stderr to the warehouse.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
