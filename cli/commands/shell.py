"""`memhouse shell`: open harlequin, a SQL editor in the terminal."""

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


def shell(db: Db = DEFAULT_DB, wait: Wait = DEFAULT_WAIT) -> None:
    """Open a SQL editor on the warehouse, to read only.

    The editor is harlequin. Requires `pip install 'memhouse[shell]'`.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_error("the shell needs a terminal: `memhouse sql -` reads queries from a pipe")
        raise typer.Exit(_WRONG_USAGE)
    if not _is_installed("harlequin"):
        print_error("the shell needs harlequin: pip install 'memhouse[shell]'")
        raise typer.Exit(1)

    # An error of the warehouse is raised here, before harlequin opens it.
    with reading(db, wait=wait):
        path = database_path(db)
    # The script forbids later SQL to open files, even a temporary file of a large sort.
    script = Path(schema.__file__).parent / "shell.sql"
    options = ["--read-only", "--init-path", str(script)]
    command = [sys.executable, "-m", "harlequin", *options, str(path or db)]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # The package was blocked: sys.modules has None for it.
        return False
