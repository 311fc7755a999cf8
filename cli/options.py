"""What commands share: options, what memhouse.toml sets of them, and opening the warehouse."""

import glob
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer
from typer.models import OptionInfo

from ..queries.arguments import nearest
from ..queries.catalogue import open_with_views, public_names
from ..queries.own_macros import listed_macros
from ..schema.arrow import public_tables
from ..schema.compaction import DELETED_BYTES, QUICK_BYTES
from ..schema.errors import MemhouseError, UsageError, until_free
from ..schema.store import Store
from .render.text import Format, print_note

Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="MEMHOUSE_DB",
        help="The warehouse: a file's path.",
    ),
]
AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How to print the rows.", show_choices=True)
]
Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Wait at most SECONDS while another process uses the warehouse.",
    ),
]
All = Annotated[
    bool,
    typer.Option(
        "--all", help="Show helpers too, and the same program of several workloads one by one."
    ),
]
Wide = Annotated[
    bool, typer.Option("--wide", "-v", help="Show all columns, and no text cut short.")
]
Mine = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        envvar="MEMHOUSE_MINE",
        help="Files that are your code wherever they lie, for example '*/my_package/*'.",
        show_default=False,
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace the dumps of the run NAME if they differ.")
]
At = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="When the run was compiled, in ISO form, UTC unless it says otherwise; else a date in"
        " the run's name, else now.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Label the run, for example branch=main; KEY= leaves a label out.",
    ),
]
DEFAULT_DB = "memhouse.duckdb"
# A night's ingest is over by then; a prompt that someone left open may not be.
DEFAULT_WAIT = 600


def spellings(option: OptionInfo, name: str) -> tuple[str, ...]:
    """How an option is written; `name` is that of its parameter.

    Typer takes the first of those in `Annotated` for a default.
    """
    first = (option.default,) if isinstance(option.default, str) else ()
    return (*first, *(option.param_decls or ())) or (f"--{name.replace('_', '-')}",)


def parse_labels(labels: list[str]) -> dict[str, str]:
    """The labels given as KEY=VALUE; an empty value removes one.

    `entry` is that of memhouse.toml, unless it is given.
    """
    entry = ",".join(find_settings().entry)
    pairs = [label.partition("=") for label in labels]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter("a label is KEY=VALUE", param_hint="--label")
    return ({"entry": entry} if entry else {}) | {key: value for key, _, value in pairs}


# What a shell completes of a warehouse: the names behind options and arguments.

Completer = Callable[[typer.Context, str], list[str]]
_NAMES = {
    "runs": "SELECT run_id AS name FROM runs ORDER BY run_at DESC, run_seq DESC",
    "workloads": "SELECT DISTINCT workload AS name FROM dumps ORDER BY ALL",
    "modules": "SELECT DISTINCT workload || '/' || module_name AS name FROM dumps ORDER BY ALL",
    "branches": "SELECT value AS name FROM run_labels WHERE key = 'branch' GROUP BY 1 ORDER BY 1",
}
# Typer's scripts put names on the command line without quotes.
_HARMLESS = re.compile(r"[\w.+,/%@][\w.+,/%@:=-]*")


def completer(kind: str) -> Completer:
    """Completes names of a kind: of `_NAMES`, tables, views, or views and tables as `exported`."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            names = _names(kind, str(ctx.params.get("db") or DEFAULT_DB))
        except MemhouseError:
            names = []
        return [each for each in names if each.startswith(incomplete) and _HARMLESS.fullmatch(each)]

    return complete


def _names(kind: str, db: str) -> list[str]:
    if kind in _NAMES:
        with reading(db) as store:
            return list(store.rows(_NAMES[kind])["name"].to_pylist())
    views = [*listed_macros(find_settings().macros), *public_names()]
    of_kind = {
        "tables": public_tables(),
        "views": views,
        "exported": [*public_names(), *public_tables()],
    }
    return sorted(of_kind[kind])


# memhouse.toml: what a project sets once for all commands.
#
# The nearest file counts, from the working directory upwards. An option comes before an environment
# variable, and that before the file; paths in it start at its folder.
#
# db = "nights.duckdb"            # --db
# mine = ["*/our_package/*"]      # --mine
# entry = ["jit_generate"]        # --label entry=jit_generate
# limits = "limits.toml"          # --limits
# macros = ["*.sql"]              # functions for `memhouse sql`

_FILE = "memhouse.toml"
_PATHS = ("db", "limits")
_EXAMPLES = {
    "db": '"nights.duckdb"',
    "mine": '["*/our_package/*"]',
    "entry": '["jit_generate"]',
    "limits": '"limits.toml"',
    "macros": '["*.sql"]',
}
_LONGEST_VALUE = 40


@dataclass(frozen=True)
class Settings:
    """What the file sets; file: None if there is none.

    db: the warehouse; mine: patterns of files that are the user's code; entry: names of entry
    programs; limits: the file with the rules of `check`; macros: files with functions of SQL, or
    patterns of them. Paths are from the working directory.
    """

    file: Path | None = None
    db: str | None = None
    mine: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    limits: str | None = None
    macros: tuple[str, ...] = ()

    @property
    def defaults(self) -> dict[str, Any]:
        """What options are that are not given, by the name of their parameter."""
        given = {"db": self.db, "mine": list(self.mine), "limits": self.limits}
        return {name: value for name, value in given.items() if value}


_KEYS = tuple(field.name for field in fields(Settings) if field.name != "file")


def find_settings() -> Settings:
    """The settings of the working directory. Raises UsageError for a file that is wrong."""
    here = Path.cwd()
    file = next((f for folder in (here, *here.parents) if (f := folder / _FILE).is_file()), None)
    return Settings() if file is None else _read(file)


def _read(file: Path) -> Settings:
    shown = os.path.relpath(file)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown}: {error}") from None
    settings = {name: _value(shown, name, value) for name, value in given.items()}
    for name in _PATHS:
        if name in settings and "://" not in settings[name]:
            settings[name] = os.path.relpath(file.parent / settings[name])
    if "macros" in settings:
        folder = glob.escape(os.path.relpath(file.parent))
        settings["macros"] = tuple(str(Path(folder, each)) for each in settings["macros"])
    return Settings(file, **settings)


def _shown(value: Any) -> str:
    """A value as TOML has it, in a few characters."""
    if isinstance(value, bool):
        return str(value).lower()
    text = "a table" if isinstance(value, dict) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _value(file: str, name: str, value: Any) -> Any:
    if name not in _KEYS:
        hint = nearest(name, _KEYS) or f"use one of {', '.join(_KEYS)}"
        raise UsageError(f"{file}: {name}: unknown; {hint}")
    if name in _PATHS:
        if not isinstance(value, str) or not value:
            raise UsageError(
                f"{file}: {name}: {_shown(value)} is no path: write {name} = {_EXAMPLES[name]}"
            )
        return value
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        example = json.dumps([value]) if isinstance(value, str) else _EXAMPLES[name]
        raise UsageError(
            f"{file}: {name}: {_shown(value)} is no list of strings: write {name} = {example}"
        )
    return tuple(value)


# Opening the warehouse for a command: tables by `schema`, views by `queries`.


@contextmanager
def reading(db: str, *, wait: float = 0) -> Iterator[Store]:
    """The warehouse, to read only; waits `wait` seconds while another process uses it."""
    store = _opened(db, wait, read_only=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def writing(db: str, *, wait: float = 0) -> Iterator[Store]:
    """The warehouse, to write; waits `wait` seconds while another process uses it."""
    store = _opened(db, wait)
    try:
        yield store
        store.tidy()
    finally:
        store.close()


@contextmanager
def ingesting(db: str, *, wait: float = 0, deletes: bool = False) -> Iterator[Store]:
    """The warehouse to ingest into: opened, or made, when it is first needed.

    At the end it is tidied if that is quick; where rows were deleted, it may take longer.
    """

    most_bytes = DELETED_BYTES if deletes else QUICK_BYTES
    opened: list[Store] = []

    def connect() -> duckdb.DuckDBPyConnection:
        store = _opened(db, wait, create=True)
        assert isinstance(store, Store)
        opened.append(store)
        return opened[0].connection

    is_new = "://" not in db and not Path(db).exists()
    try:
        yield Store(db, connect, is_new=is_new)
        for store in opened:
            store.tidy(most_bytes)
    finally:
        for store in opened:
            store.close()


def _opened(db: str, wait: float, *, create: bool = False, read_only: bool = False) -> Store:
    """The warehouse with its views; the user is told whom it is waited for."""
    return until_free(
        lambda: open_with_views(db, create=create, read_only=read_only),
        wait,
        lambda busy: print_note(f"{busy.in_use}: waiting up to {wait:g} s for it"),
    )
