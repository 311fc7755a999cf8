"""The `memhouse` command. The commands only parse and call; `reports/` does and shows."""

import sys


def main() -> None:
    """The entry point: run the command; an expected failure is one line and a status."""
    from .app import app

    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output, `head` for one, has had enough: that is no failure.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        message = _expected(error)
        if message is None:
            raise
        from .output import print_error

        print_error(message)
        sys.exit(1)


def _expected(error: Exception) -> str | None:
    """What to tell the user of a failure that is not our bug; None if it is."""
    import duckdb
    from sqlalchemy.exc import DBAPIError

    from ..schema.warehouse import WarehouseError

    if isinstance(error, DBAPIError):
        return str(error.orig).strip()
    return str(error).strip() if isinstance(error, WarehouseError | duckdb.Error) else None
