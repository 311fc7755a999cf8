"""The process that runs one statement of an agent, and can be killed.

DuckDB's own limits do not suffice: one long string or list takes memory that it does not count,
and some functions do not stop when they are told to. Standard input is a JSON object with db,
macros, query, rows and seconds; standard output the answer, {"error": …} if it is refused or fails.
"""

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..schema.errors import MemhouseError, QueryError, RefusedError, duckdb_says
from .when_free import when_free

if TYPE_CHECKING:
    from ..schema.stores.base import Store

# DuckDB's own limit gives the better message.
_DUCKDB_MEMORY = "1GB"
_PROCESS_BYTES = 2 << 30
_NO_MEMORY = "the query needs more memory than 1 GB: filter or aggregate earlier"


def main() -> None:
    """Answer the question on standard input."""
    asked = json.loads(sys.stdin.read())
    try:
        said = _answer(asked)
    except MemoryError:
        said = json.dumps({"error": _NO_MEMORY})
    except RecursionError:
        said = json.dumps({"error": "the query is nested too deeply"})
    except RefusedError as error:
        # An agent has none of the options that would let it.
        said = json.dumps({"error": error.what})
    except MemhouseError as error:
        said = json.dumps({"error": str(error)})
    sys.stdout.write(said)
    sys.stdout.flush()
    os._exit(0)


def _answer(asked: dict[str, Any]) -> str:
    import duckdb

    from ..queries.catalogue import use_views
    from ..queries.lint import lint
    from ..queries.own_macros import use_macros
    from ..queries.sql import require_harmless
    from ..schema.stores import open_store
    from .bounded import Answer, Part, bounded

    store = when_free(lambda: open_store(asked["db"], read_only=True))
    use_views(store, read_only=True)
    use_macros(store, asked["macros"])
    traps = lint(require_harmless(asked["query"], store), store)
    connection = confined(store)
    rows = asked["rows"]
    # Nobody catches this: the process ends, whatever it is doing, also if who asked is gone.
    signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
    try:
        selected = connection.sql(asked["query"]).limit(rows + 1).to_arrow_table()
    except duckdb.OutOfMemoryException:
        raise QueryError(_NO_MEMORY) from None
    except duckdb.Error as error:
        raise QueryError(duckdb_says(error)) from None
    more = None if len(selected) > rows else 0
    part = Part(selected.slice(0, rows), more=more, exact=True)
    warnings = [f"warning: {trap.advice}" for trap in traps]
    return bounded(Answer(warnings, {"result": part}, "filter, aggregate, or use LIMIT OFFSET"))


def confined(store: "Store") -> Any:
    """The store's connection, which from now on takes no more than its share of the machine."""
    connection: Any = getattr(store, "connection")  # noqa: B009 - a Store has more than it promises.
    settings = [
        f"memory_limit = '{_DUCKDB_MEMORY}'",
        "threads = 2",
        "max_temp_directory_size = '0KB'",
        "enable_progress_bar = false",
    ]
    for setting in (*settings, "lock_configuration = true"):
        connection.execute(f"SET {setting}")
    connection.execute("BEGIN TRANSACTION READ ONLY")
    _limit_process()
    return connection


def _limit_process() -> None:
    """No file grows by this process from now on, and its memory is bounded."""
    for what, limit in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_DATA, _PROCESS_BYTES)):
        # Not every system has all limits; DuckDB's own stand everywhere.
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (limit, limit))


if __name__ == "__main__":
    main()
