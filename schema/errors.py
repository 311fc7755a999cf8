"""Errors of the warehouse; each message is one line that says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

_LOCKED = re.compile(r"Could not set lock|Conflicting lock")
_HOLDER = re.compile(r"\(PID (\d+)\)")
_LINE = re.compile(r"\s*\bLINE (\d+):.*", re.DOTALL)
# After it comes DuckDB's stack, in thousands of characters.
_CRASH = re.compile(r"(?:INTERNAL|FATAL) Error: ([^\n]*)")
# DuckDB's background writers wrap their messages in JSON.
_WRAPPED = re.compile(r'\{"exception_type":.*\}', re.DOTALL)
_PYTHON = re.compile(r"python[\d.]*")
_LONGEST_COMMAND = 80
_NO_ROOM = "make room, then give the same command again"
# What to do, by the message of the system or of DuckDB.
_REMEDIES = {
    "No space left on device": _NO_ROOM,
    "Disk quota exceeded": _NO_ROOM,
    "File too large": _NO_ROOM,
    "Read-only file system": "name a place that can be written to",
    "Permission denied": "ask the owner for permission, or name another file",
    "Is a directory": "it is a folder, name a file",
    "Not a directory": "a file is where a folder must be, name another folder",
    "File exists": "a file is where a folder must be, name another folder",
    "Could not read enough bytes": "it is damaged, restore it from a copy or name another file",
    "not a valid DuckDB database file": "name another file",
}


class MemhouseError(Exception):
    """The base of memhouse's errors; the message is one line that says what to do."""


class WarehouseError(MemhouseError):
    """A warehouse that cannot be opened or written to."""


class UnpreparedError(WarehouseError):
    """A warehouse that is empty: to open it to write makes its tables."""


class WarehouseBusyError(WarehouseError):
    """Another process, the `holder`, has the warehouse open, and one of the two writes."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{name} is in use by {holder}: try again when it has finished")
        self.in_use = f"{name} is in use by {holder}"


class QueryError(MemhouseError):
    """A query that is wrong; the message is DuckDB's, on one line."""


class RefusedError(QueryError):
    """SQL that does more than it may: `what` it does; the message says how to let it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what = what


class UsageError(MemhouseError):
    """A wrong argument: an unknown run, or a name that several modules have.

    `argument` is the argument's name in Python, None if several arguments are wrong together.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class FileError(MemhouseError):
    """A file that cannot be written."""


class MissingPackageError(MemhouseError, ImportError):
    """A package that memhouse does not need, but this call does."""


def opening_error(error: duckdb.Error, name: str) -> WarehouseError:
    """The error to raise when DuckDB cannot open the file `name`."""
    said = duckdb_says(error)
    if _LOCKED.search(said):
        return WarehouseBusyError(name, _holder(said))
    if "not a valid DuckDB database file" in said:
        return WarehouseError(not_duckdb(name))
    return WarehouseError(f"cannot open {name}: {with_remedy(said)}")


def not_duckdb(name: str) -> str:
    """The message for a file of another format, such as SQLite or Parquet."""
    return f"{name} is not a DuckDB database: name another file"


def duckdb_says(error: duckdb.Error) -> str:
    """DuckDB's message on one line; the excerpt of the query is replaced by its line number."""
    said = str(error)
    if wrapped := _WRAPPED.search(said):
        with suppress(ValueError, KeyError):
            said = str(json.loads(wrapped[0])["exception_message"])
    if crash := _CRASH.match(said):
        return f"DuckDB failed on this, by a mistake of its own: {crash[1]}"
    return " ".join(_LINE.sub(r" (line \1)", said).split())


def with_remedy(said: str) -> str:
    """The message, followed by what to do if this is known."""
    return next((f"{said}: {do}" for what, do in _REMEDIES.items() if what in said), said)


def _holder(said: str) -> str:
    """The process that holds the file according to DuckDB, with its command if known."""
    found = _HOLDER.search(said)
    if found is None:
        return "another process"
    try:
        command = _short(
            Path(f"/proc/{found[1]}/cmdline").read_text(encoding="utf-8", errors="replace")
        )
    except OSError:
        return f"process {found[1]}"
    return f"process {found[1]} ({command})" if command else f"process {found[1]}"


def _short(cmdline: str) -> str:
    """A command as it was typed, without the program's folders and the Python that runs it."""
    command, *arguments = cmdline.rstrip("\0").split("\0")
    if _PYTHON.fullmatch(Path(command).name) and arguments and not arguments[0].startswith("-"):
        command, *arguments = arguments
    typed = " ".join(" ".join([Path(command).name, *arguments]).split())
    return typed if len(typed) <= _LONGEST_COMMAND else typed[: _LONGEST_COMMAND - 1] + "…"


# Waits for a process that has the warehouse.

_ASK_AGAIN_SECONDS = 0.1
_T = TypeVar("_T")


def until_free(
    do: Callable[[], _T], seconds: float, tell: Callable[[WarehouseBusyError], None] | None = None
) -> _T:
    """What `do` returns when no other process has the warehouse; WarehouseBusyError at last.

    tell: is called once if there is something to wait for.
    """
    end = monotonic() + seconds
    while True:
        try:
            return do()
        except WarehouseBusyError as busy:
            if monotonic() >= end:
                raise
            if tell is not None:
                tell(busy)
                tell = None
        sleep(_ASK_AGAIN_SECONDS)
