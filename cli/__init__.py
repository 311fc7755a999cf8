"""The `memhouse` command. The commands only parse, call and show."""

import sys


def main() -> None:
    """The entry point: run the command; an expected failure is one line and a status."""
    import duckdb
    from sqlalchemy.exc import DBAPIError

    from ..schema.warehouse import WarehouseError
    from .app import app
    from .output import print_error

    try:
        app()
    except (WarehouseError, duckdb.Error) as error:
        print_error(str(error).strip())
        sys.exit(1)
    except DBAPIError as error:
        print_error(str(error.orig).strip())
        sys.exit(1)
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output, `head` for one, has had enough: that is no failure.
        sys.stderr.close()
        sys.exit(0)
