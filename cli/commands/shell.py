"""`memhouse shell`: harlequin, a SQL editor in the terminal, on the warehouse."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from ... import schema
from ...schema.connection import database_path
from ..opening import reading
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Wait
from ..render.text import print_error

EXAMPLE = "memhouse shell --db memhouse.duckdb"
_WRONG_USAGE = 2


def shell(
    db: Db = DEFAULT_DB,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Open a SQL editor on the warehouse, to read only.

    It is harlequin, which `pip install 'memhouse[shell]'` installs.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_error("the shell needs a terminal: `memhouse sql -` reads queries from a pipe")
        raise typer.Exit(_WRONG_USAGE)
    if not _is_installed("harlequin"):
        print_error("the shell needs harlequin: pip install 'memhouse[shell]'")
        raise typer.Exit(1)

    # Says what is wrong with the warehouse before harlequin opens it.
    with reading(db, wait=wait):
        path = database_path(db)
    # What harlequin runs first: from then on SQL opens no file, not even a large sort's own.
    first = Path(schema.__file__).parent / "shell.sql"
    options = ["--read-only", "--init-path", str(first)]
    command = [sys.executable, "-m", "harlequin", *options, str(path or db)]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # How find_spec says that the package was blocked.
        return False
