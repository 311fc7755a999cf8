"""What goes wrong with a warehouse's file, in one line that says what to do."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_LOCKED = re.compile(r"Could not set lock|Conflicting lock")
_HOLDER = re.compile(r"\(PID (\d+)\)")
_LINE = re.compile(r"\s*\bLINE (\d+):.*", re.DOTALL)
# What DuckDB's background writers say comes wrapped in JSON.
_WRAPPED = re.compile(r'\{"exception_type":.*\}', re.DOTALL)
_PYTHON = re.compile(r"python[\d.]*")
_LONGEST_COMMAND = 80
_NO_ROOM = "make room, then give the same command again"
# What to do, by what the system says.
_REMEDIES = {
    "No space left on device": _NO_ROOM,
    "Disk quota exceeded": _NO_ROOM,
    "File too large": _NO_ROOM,
    "Read-only file system": "name a place that can be written to",
    "Permission denied": "ask its owner for the right to it, or name another file",
    "Is a directory": "it is a folder, name a file",
    "Could not read enough bytes": "it is damaged, restore it from a copy or name another file",
    "not a valid DuckDB database file": "name another file",
}


class MemhouseError(Exception):
    """What memhouse raises; the message is one line that says what to do."""


class WarehouseError(MemhouseError):
    """A warehouse that cannot be opened or written to."""


class WarehouseBusyError(WarehouseError):
    """Another process, the `holder`, has the warehouse open, and one of the two writes."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{name} is in use by {holder}: try again when it has finished")
        self.in_use = f"{name} is in use by {holder}"


class QueryError(MemhouseError):
    """A query that is wrong; the message is DuckDB's, on one line."""


class UsageError(MemhouseError):
    """An argument that is wrong: a run that is not there, a module that is not the only one.

    `argument` is its name in Python, None if no single one is to blame.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class FileError(MemhouseError):
    """A file that cannot be written."""


class MissingPackageError(MemhouseError, ImportError):
    """A package that memhouse does not need, but this call does."""


def opening_error(error: duckdb.Error, name: str) -> WarehouseError:
    """What to raise when DuckDB cannot open the file `name`."""
    said = duckdb_says(error)
    if _LOCKED.search(said):
        return WarehouseBusyError(name, _holder(said))
    if "not a valid DuckDB database file" in said:
        return WarehouseError(f"{name} is not a DuckDB database: name another file")
    return WarehouseError(f"cannot open {name}: {with_remedy(said)}")


def duckdb_says(error: duckdb.Error) -> str:
    """DuckDB's message on one line: of the query it shows, the line's number."""
    said = str(error)
    if wrapped := _WRAPPED.search(said):
        with suppress(ValueError, KeyError):
            said = str(json.loads(wrapped[0])["exception_message"])
    return " ".join(_LINE.sub(r" (line \1)", said).split())


def with_remedy(said: str) -> str:
    """A message with what to do about it, where that is known."""
    return next((f"{said}: {do}" for what, do in _REMEDIES.items() if what in said), said)


def _holder(said: str) -> str:
    """The process that DuckDB says has the file, with its command where the system tells."""
    found = _HOLDER.search(said)
    if found is None:
        return "another process"
    try:
        command = _short(Path(f"/proc/{found[1]}/cmdline").read_text(errors="replace"))
    except OSError:
        return f"process {found[1]}"
    return f"process {found[1]} ({command})" if command else f"process {found[1]}"


def _short(cmdline: str) -> str:
    """A command as it was typed: no folders of the program, nor the Python that runs it."""
    command, *arguments = cmdline.rstrip("\0").split("\0")
    if _PYTHON.fullmatch(Path(command).name) and arguments and not arguments[0].startswith("-"):
        command, *arguments = arguments
    typed = " ".join(" ".join([Path(command).name, *arguments]).split())
    return typed if len(typed) <= _LONGEST_COMMAND else typed[: _LONGEST_COMMAND - 1] + "…"
