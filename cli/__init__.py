"""The `memhouse` command. The commands only parse and call; `reports/` does and shows."""

import gc
import os
import re
import sys

# What DuckDB makes of Ctrl-C while it works, and while it asks Arrow for rows.
_INTERRUPTED = re.compile(r"Query interrupted|: KeyboardInterrupt:")
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """The entry point: run the command; an expected failure is one line and a status."""
    _open_standard_streams()
    # Nearly all objects are the libraries' and stay. To look for garbage among them at every
    # import, and to take them down one by one at the end, was 0.15 s of a short query's 0.65 s.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        status = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # The reader of our output, `head` for one, has had enough: that is no failure.
        status = 0
    except Exception as error:
        if _INTERRUPTED.search(str(error)):
            status = 130
        elif message := _expected(error):
            from .render.output import print_error

            print_error(message)
            status = 1
        else:
            raise
    os._exit(status)


def _run() -> int:
    """Run the command; its status."""
    from .app import app

    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


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


def _expected(error: Exception) -> str | None:
    """What to tell the user of a failure that is not our bug; None if it is."""
    from concurrent.futures.process import BrokenProcessPool

    import duckdb
    from sqlalchemy.exc import DBAPIError

    from ..schema.errors import WarehouseError, duckdb_says, with_remedy

    match error:
        case WarehouseError():
            return str(error)
        case DBAPIError() | duckdb.Error():
            return with_remedy(duckdb_says(error))
        case OSError(strerror=str(reason)):
            return with_remedy(f"{error.filename or 'cannot write the output'}: {reason}")
        case BrokenProcessPool():
            return (
                "a process that read dumps was killed, for lack of memory perhaps: "
                "give the same command again, with fewer --jobs"
            )
    return None
