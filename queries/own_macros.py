"""Functions of SQL that a project or an installed package brings, beside those of memhouse.

A project names files, in memhouse.toml or in Python; a package has the entry point group
`memhouse.macros`, whose values are packages with `.sql` files. A file holds CREATE MACRO statements
and nothing else. They are temporary: the user's own SQL sees them, and no warehouse stores them.
"""

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import duckdb

from ..schema.errors import QueryError, WarehouseError, duckdb_says
from ..schema.store import Store
from .catalogue import Macro, new_macro, public_names

_GROUP = "memhouse.macros"
_CREATE = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?(?:MACRO|FUNCTION)\s+"
    r"(?P<name>\w+)\s*(?P<sql>\((?P<taken>(?:[^()]|\([^()]*\))*)\).*?)[;\s]*",
    re.IGNORECASE | re.DOTALL,
)
_HEADER = re.compile(r"(?:^--[^\n]*\n)+\Z", re.MULTILINE)
_LEADING = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_TRAILING = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z))+\Z")
_TAKEN = "SELECT DISTINCT LOWER(function_name) AS name FROM duckdb_functions() WHERE internal"


@dataclass(frozen=True)
class OwnMacro:
    """A macro of a project or a package; file: where it stands, as messages name it."""

    file: str
    macro: Macro


def own_macros(patterns: Sequence[str]) -> dict[str, OwnMacro]:
    """The macros of installed packages, then those of these files, by name: the last one holds.

    Raises QueryError for a file that cannot be read or holds something else.
    """
    found = [
        OwnMacro(shown, macro) for shown, file in _files(patterns) for macro in _macros(shown, file)
    ]
    return {each.macro.name.lower(): each for each in found}


def listed_macros(patterns: Sequence[str]) -> dict[str, Macro]:
    """The same, but for helpers, whose names begin with `_`."""
    return {
        each.macro.name: each.macro
        for name, each in own_macros(patterns).items()
        if not name.startswith("_")
    }


def use_macros(store: Store, patterns: Sequence[str]) -> None:
    """Let the user's SQL on a store call these macros, and those of installed packages.

    Raises QueryError for one that DuckDB refuses, or that has the name of another function.
    """
    own = own_macros(patterns)
    if not own:
        return
    taken = {*store.rows(_TAKEN)["name"].to_pylist(), *public_names()}
    for name, each in own.items():
        if name in taken:
            raise QueryError(f"{each.file}: {name} is a function already: give it another name")
        try:
            made = each.macro.sql.removeprefix("CREATE ")
            store.equip(f"CREATE OR REPLACE TEMPORARY {made}")
        except WarehouseError as error:
            raise QueryError(f"{each.file}: {name}: {error}") from None


def _files(patterns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The files, each with its name in messages. Raises QueryError."""
    for point in sorted(entry_points(group=_GROUP)):
        # Only what holds the package is imported.
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        folders = (spec and spec.submodule_search_locations) or ()
        files = sorted(file for folder in folders for file in Path(folder).glob("*.sql"))
        if not files:
            raise QueryError(f"{_GROUP}: {point.value} is no package that has .sql files")
        yield from ((f"{point.value}/{file.name}", file) for file in files)
    for pattern in patterns:
        names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - it may begin with a folder.
        if not names:
            raise QueryError(f"macros: no file fits {pattern!r}")
        yield from ((name, Path(name)) for name in names)


def _macros(shown: str, file: Path) -> Iterator[Macro]:
    """The macros of a file. Raises QueryError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise QueryError(f"{shown}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise QueryError(f"{shown}: it is no text in UTF-8") from None
    try:
        with duckdb.connect() as parser:
            statements = [statement.query for statement in parser.extract_statements(text)]
    except duckdb.Error as error:
        raise QueryError(f"{shown}: {duckdb_says(error)}") from None
    except ValueError:  # A statement that DuckDB's own Python package does not know.
        raise QueryError(f"{shown}: only CREATE MACRO name(…) AS … may stand there") from None
    place = 0
    for statement in statements:
        # DuckDB 2.0.1 counts comments before a statement to it, 2.0.0 to the one before.
        comments = _LEADING.match(statement)
        assert comments is not None
        place = text.index(statement, place)
        created = _CREATE.fullmatch(_TRAILING.sub("", statement[comments.end() :]))
        if created is None:
            words = " ".join(statement.split())
            raise QueryError(
                f"{shown}: only CREATE MACRO name(…) AS … may stand there, not {words[:40]!r}"
            )
        header = _HEADER.search(text[: place + comments.end()])
        comment = re.sub("^-- ?", "", header[0] if header else "", flags=re.MULTILINE)
        parameters = re.findall(r"(?:^|,)\s*\W?(\w+)", created["taken"])
        yield new_macro(
            created["name"], parameters, comment, f"CREATE MACRO {created['name']}{created['sql']}"
        )
        place += len(statement)
