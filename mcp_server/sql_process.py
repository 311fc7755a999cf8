"""Runs a statement of an agent in a process of its own, which is killed when its time is up.

DuckDB's limits do not suffice: a long string or list takes memory that DuckDB does not count, and
some functions do not stop when they are interrupted.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import duckdb

from ..queries.catalogue import open_with_views
from ..queries.lint import lint
from ..queries.own_macros import use_macros
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
from .answer import Answer, Part, answer_json

# To start the process, wait for a writer and open the warehouse.
_STARTUP_SECONDS = 25
# DuckDB's own limit gives the better message.
_DUCKDB_MEMORY = "1GB"
_PROCESS_BYTES = 2 << 30
_NO_MEMORY = "the query needs more memory than 1 GB: filter or aggregate earlier"
# An ingest may take longer: then the agent can ask again. Its process is not named, since a
# command line may contain secrets.
_WAIT_SECONDS = 5
_BUSY = "another process is writing to the warehouse: ask again in a minute"
_T = TypeVar("_T")


def when_free(open_warehouse: Callable[[], _T]) -> _T:
    """Open a warehouse once no other process writes. Raises WarehouseError after 5 s."""
    try:
        return until_free(open_warehouse, _WAIT_SECONDS)
    except WarehouseBusyError:
        raise WarehouseError(_BUSY) from None


def select_json(db: str, macros: Sequence[str], query: str, rows: int, seconds: int) -> str:
    """The answer to one SELECT as JSON, computed in a new process. Raises QueryError."""
    request = json.dumps([db, macros, query, rows, seconds])
    # -P: files in the working directory do not replace modules of Python.
    command = [sys.executable, "-P", "-m", "memhouse.mcp_server.sql_process"]
    timeout = seconds + _STARTUP_SECONDS
    try:
        process = subprocess.run(
            command, input=request, capture_output=True, text=True, timeout=timeout
        )
        timed_out = process.returncode == -signal.SIGALRM
    except subprocess.TimeoutExpired:
        timed_out = True
    if timed_out:
        raise QueryError(f"stopped after {seconds} s: filter or aggregate earlier")
    if process.returncode or not process.stdout:
        raise QueryError("the query was stopped, for lack of memory: filter or aggregate earlier")
    if error := json.loads(process.stdout).get("error"):
        raise QueryError(error)
    return process.stdout


def main() -> None:
    """Answer the request on standard input, on standard output; {"error": …} if it fails."""
    try:
        output = _select(*json.loads(sys.stdin.read()))
    except MemoryError:
        output = json.dumps({"error": _NO_MEMORY})
    except RecursionError:
        output = json.dumps({"error": "the query is nested too deeply"})
    except RefusedError as error:
        # Its message names options of the command that would allow it: agents have none.
        output = json.dumps({"error": error.what})
    except MemhouseError as error:
        output = json.dumps({"error": str(error)})
    sys.stdout.write(output)
    sys.stdout.flush()
    os._exit(0)


def _select(db: str, macros: Sequence[str], query: str, rows: int, seconds: int) -> str:
    store = when_free(lambda: open_with_views(db, read_only=True))
    use_macros(store, macros)
    warnings = lint(require_harmless(query, store), store)
    connection = confined(store)
    # Nothing catches this signal: the process ends, even if its parent has ended.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        table = connection.sql(query).limit(rows + 1).to_arrow_table()
    except duckdb.OutOfMemoryException:
        raise QueryError(_NO_MEMORY) from None
    except duckdb.Error as error:
        raise QueryError(duckdb_says(error)) from None
    more = None if len(table) > rows else 0
    part = Part(table.slice(0, rows), more=more, exact=True)
    sentences = [f"warning: {warning.advice}" for warning in warnings]
    return answer_json(
        Answer(sentences, {"result": part}, "filter, aggregate, or use LIMIT OFFSET")
    )


def confined(store: Store) -> duckdb.DuckDBPyConnection:
    """The store's connection, limited from now on in memory, threads, files and settings."""
    connection = store.connection
    connection.execute(f"SET memory_limit = '{_DUCKDB_MEMORY}'")
    connection.execute("SET threads = 2")
    connection.execute("SET max_temp_directory_size = '0KB'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    connection.execute("BEGIN TRANSACTION READ ONLY")
    for limit, value in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_DATA, _PROCESS_BYTES)):
        # Not every system has all limits; those of DuckDB hold everywhere.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    return connection


if __name__ == "__main__":
    main()
