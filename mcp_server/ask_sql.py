"""The tool `sql`: a statement runs in a process of its own, which dies when its time is up."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import duckdb

from ..queries.catalogue import open_with_views
from ..queries.lint import lint
from ..queries.own_macros import use_macros
from ..queries.questions import Kind
from ..queries.sql import require_harmless
from ..schema.errors import (
    MemhouseError,
    QueryError,
    RefusedError,
    WarehouseBusyError,
    WarehouseError,
    duckdb_says,
    until_free,
)
from ..schema.store import Store
from .bounded import Answer, Part, bounded

_MOST_ROWS = 200
_MOST_SECONDS = 30
# To start a process, wait for a writer and open the warehouse.
_TO_OPEN = 25


def sql(
    db: str,
    macros: Sequence[str],
    query: Annotated[str, Kind("one SELECT (or WITH, FROM, DESCRIBE) of DuckDB's SQL")],
    rows: Annotated[int, Kind("most rows of the answer", least=1, at_once=_MOST_ROWS)] = 50,
    seconds: Annotated[
        int, Kind("the query is stopped after so many", least=1, at_once=_MOST_SECONDS)
    ] = 10,
) -> str:
    """Any other question, as SQL (DuckDB's) on the views and tables that `views` lists.

    Sizes are plain bytes. Select few columns and aggregate: an answer is 4 KB at most. Views
    say run and workload, and is_latest of the newest dump of each name: SELECT … FROM peak_buffers
    WHERE is_latest AND workload = '…'. They are of the main memory, NAME_by_space of all. Refused:
    whatever is not one SELECT, files, URLs, settings; stopped: what takes more than `seconds` or
    1 GB of memory.
    """
    asked = json.dumps(
        {"db": db, "macros": macros, "query": query, "rows": rows, "seconds": seconds}
    )
    # With -P no file of the folder that the user is in stands for one of Python's.
    command = [sys.executable, "-P", "-m", "memhouse.mcp_server.ask_sql"]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=seconds + _TO_OPEN
        )
        timed_out = done.returncode == -signal.SIGALRM
    except subprocess.TimeoutExpired:
        timed_out = True
    if timed_out:
        raise QueryError(f"stopped after {seconds} s: filter or aggregate earlier")
    if done.returncode or not done.stdout:
        raise QueryError("the query was stopped, for lack of memory: filter or aggregate earlier")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise QueryError(answer["error"])
    return done.stdout


# The process that runs one statement of an agent, and can be killed: `python -m` of this file.
#
# DuckDB's own limits do not suffice: one long string or list takes memory that it does not count,
# and some functions do not stop when they are told to. Standard input is a JSON object with db,
# macros, query, rows and seconds; standard output the answer, {"error": …} if it is refused or
# fails.

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
    store = when_free(lambda: open_with_views(asked["db"], read_only=True))
    use_macros(store, asked["macros"])
    found = lint(require_harmless(asked["query"], store), store)
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
    warnings = [f"warning: {each.advice}" for each in found]
    return bounded(Answer(warnings, {"result": part}, "filter, aggregate, or use LIMIT OFFSET"))


def confined(store: Store) -> Any:
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


# A night's ingest takes longer: the agent is told, and may ask again. The other process is not
# named to it, since a command line may hold secrets.
_WAIT_SECONDS = 5
_BUSY = "another process is writing to the warehouse: ask again in a minute"
_T = TypeVar("_T")


def when_free(opened: Callable[[], _T]) -> _T:
    """What `opened` gives once no other process writes. Raises WarehouseError after 5 s."""
    try:
        return until_free(opened, _WAIT_SECONDS)
    except WarehouseBusyError:
        raise WarehouseError(_BUSY) from None


if __name__ == "__main__":
    main()
