"""A DuckDB database in memory, set up as warehouses are."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import duckdb

from .readable import quoted


def memory_database() -> duckdb.DuckDBPyConnection:
    """A connection to a new database in memory, before `set_up`."""
    connection = duckdb.connect()
    # What does not fit into memory would go to the folder that the user is in.
    spill = Path(tempfile.gettempdir(), f"memhouse-{os.getpid()}")
    connection.execute(f"SET temp_directory = {quoted(str(spill))}")
    return connection


def set_up(connection: duckdb.DuckDBPyConnection) -> None:
    """The settings of every connection to a warehouse."""
    # All times are shown in UTC, whatever the machine's time zone.
    connection.execute("SET TimeZone = 'UTC'")
    # A table that is absent is an error, and not the Python variable of its name.
    connection.execute("SET python_enable_replacements = false")
    # It would be written among the output of a query that takes more than two seconds. A notebook
    # without ipywidgets has none, and cannot set it.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def confine(connection: duckdb.DuckDBPyConnection, *folders: str) -> None:
    """From now on SQL opens no file but the connection's own and those in these folders.

    It holds for all connections of this process to the same database, and cannot be undone.
    """
    if folders:
        connection.execute(f"SET allowed_directories = [{', '.join(map(quoted, folders))}]")
    connection.execute("SET enable_external_access = false")
