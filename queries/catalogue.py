"""The SQL of memhouse: views, macros, statements, checks and examples.

The files `schema/history/views.sql`, those of `views/` and those of `macros/` are run as they are,
in the order of their names; a name is defined before it is used. Public relations are in the schema
`main`; those that other views build on are in the schema `internal`. A view's comment states what
it answers, then what a row is, and last its key. A column's comment is next to its view if it has
a meaning there alone; otherwise it is the meaning of the column's name in `views/columns.txt` or in
METRICS. A macro's comment ends with a line `name: meaning` for each of its parameters, and for
columns of its own.

A check is a file of `checks/`; the statements of a subject are a file of `statements/`.
"""

import hashlib
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine

from ..schema.arrow import sql_name, stored_keys
from ..schema.ddl import INDEXED
from ..schema.errors import UsageError, WarehouseError
from ..schema.history import series
from ..schema.metrics import METRICS
from ..schema.readable import quoted
from ..schema.store import Store, open_file, open_store
from ..schema.tables import INTERNAL, OneOf, foreign_keys
from ..schema.tables import metadata as stored
from .result import Rows

_HERE = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
# What a name means; the lines after the first are indented.
_NOTE = re.compile(r"^([a-z_0-9]+): (.+(?:\n +.+)*)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^-- (\w+): ([^\n]+)\n(.+?);$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"'([^']*)'")
_TYPES: dict[str, TypeEngine[Any]] = {
    "BIGINT": BigInteger(),
    "INTEGER": Integer(),
    "DOUBLE": Double(),
    "VARCHAR": Text(),
    "BOOLEAN": Boolean(),
    "TIMESTAMP": DateTime(),
}
_KEY = re.compile(r"Key: ([a-z_0-9, ]+)\.$")

_VIEWS = """SELECT view_name AS name, comment FROM duckdb_views()
    WHERE schema_name = 'main' AND NOT internal ORDER BY view_name"""
_COLUMNS = """SELECT table_name AS view, column_name AS name, data_type AS type, comment
    FROM duckdb_columns()
    WHERE schema_name = 'main' AND NOT internal
        AND table_name IN (SELECT view_name FROM duckdb_views())
    ORDER BY table_name, column_index"""
_MACROS = """SELECT function_name AS name, parameters, comment FROM duckdb_functions()
    WHERE schema_name = 'main' AND NOT internal ORDER BY function_name"""


@dataclass(frozen=True)
class View:
    """A public view.

    Attributes:
        answers: the question that it answers, in a line.
        description: what a row is and how to read it; ends with the key.
        columns: the meaning of each column, in the view's order.
        sql: the statement that creates it.
    """

    name: str
    answers: str
    description: str
    columns: dict[str, str]
    sql: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        named = _KEY.search(self.description)
        return tuple(named[1].split(", ")) if named else ()


@dataclass(frozen=True)
class Macro:
    """A function of SQL.

    Attributes:
        signature: for example `live_at(module, schedule_time)`.
        answers: what it returns, in a line.
        parameters: the meaning of each parameter, in order.
        notes: the meanings of its parameters and of columns of its own.
        is_table: whether it returns rows, and not a value.
        sql: the statement that creates it.
    """

    name: str
    signature: str
    answers: str
    description: str
    parameters: dict[str, str]
    notes: dict[str, str]
    is_table: bool
    sql: str


@dataclass(frozen=True)
class Example:
    """A query that shows what a table or view is for."""

    title: str
    sql: str


@dataclass(frozen=True)
class Check:
    """Something that must hold: the rows of `sql` are breaches, module_id and breach."""

    name: str
    holds: str
    sql: str


@dataclass(frozen=True)
class _Catalogue:
    """What the scripts define, by name; `macro_columns`: of macros with rows, by macro.

    types: the SQL type of each view's columns, in order.
    """

    views: dict[str, View]
    types: dict[str, list[str]]
    macros: dict[str, Macro]
    macro_columns: dict[str, dict[str, str]]


@cache
def _catalogue() -> _Catalogue:
    """The public views and macros, as a new warehouse in memory has them."""
    with closing(open_file(":memory:", create=True)) as store:
        use_views(store)
        views = stored_views(store)
        types: dict[str, list[str]] = {name: [] for name in views}
        for row in store.rows(_COLUMNS).to_pylist():
            types[row["view"]].append(row["type"])
        macros = {
            row["name"]: new_macro(
                row["name"], row["parameters"], row["comment"], _sql_of("MACRO", row["name"])
            )
            for row in store.rows(_MACROS).to_pylist()
        }
        meanings = {name: text for view in views.values() for name, text in view.columns.items()}
        meanings |= _meanings()
        macro_columns = {}
        for macro in macros.values():
            if macro.is_table:
                nulls = ", ".join("NULL" for _ in macro.parameters)
                names = store.rows(f"DESCRIBE FROM {macro.name}({nulls})")["column_name"]
                notes = meanings | macro.notes
                macro_columns[macro.name] = {name: notes[name] for name in names.to_pylist()}
    return _Catalogue(views, types, macros, macro_columns)


def stored_views(store: Store) -> dict[str, View]:
    """The public views of a warehouse by name, also those that a user made."""
    columns: dict[str, dict[str, str]] = {}
    for row in store.rows(_COLUMNS).to_pylist():
        columns.setdefault(row["view"], {})[row["name"]] = row["comment"] or ""
    return {
        row["name"]: _view(row["name"], row["comment"] or "", columns[row["name"]])
        for row in store.rows(_VIEWS).to_pylist()
    }


def public_views() -> dict[str, View]:
    """The public views by name."""
    return _catalogue().views


@cache
def metadata() -> MetaData:
    """The public tables and views as tables of SQLAlchemy, with types, keys and comments.

    A view's columns refer to rows as the columns of the same names do in tables.
    """
    relations = MetaData()
    for table in stored.tables.values():
        if table.schema != INTERNAL:
            table.to_metadata(relations)
    references = {
        tuple(key.column_keys): key.referred_table.name
        for key in foreign_keys()
        if key.column_keys == [element.column.name for element in key.elements]
    }
    for name, view in public_views().items():
        named = zip(view.columns.items(), _catalogue().types[name], strict=True)
        Table(
            name,
            relations,
            *(
                Column(
                    column,
                    _TYPES.get(type_) or OneOf(*_WORD.findall(type_)),
                    primary_key=column in view.key,
                    comment=meaning,
                )
                for (column, meaning), type_ in named
            ),
            *(
                ForeignKeyConstraint(columns, [f"{table}.{column}" for column in columns])
                for columns, table in references.items()
                if view.columns.keys() >= {*columns}
            ),
            comment=f"{view.answers} {view.description}",
        )
    return relations


def public_names() -> list[str]:
    """The names of the public views and macros."""
    created = re.compile(r"^CREATE OR REPLACE (?:VIEW|MACRO) (\w+)(?= AS|\()", re.MULTILINE)
    return [name for script in _scripts().values() for name in created.findall(script)]


def public_macros() -> dict[str, Macro]:
    """The public macros by name."""
    return _catalogue().macros


def _view(name: str, comment: str, columns: dict[str, str]) -> View:
    answers, _, description = comment.partition("\n\n")
    return View(name, _one_line(answers), _one_line(description), columns, _sql_of("VIEW", name))


def new_macro(name: str, parameters: list[str], comment: str, sql: str) -> Macro:
    """A macro with what its comment says; a parameter that it does not name means nothing."""
    answers, *paragraphs = comment.strip().split("\n\n")
    notes = {}
    if paragraphs and _NOTE.match(paragraphs[-1]):
        notes = _notes(paragraphs.pop())
    return Macro(
        name,
        f"{name}({', '.join(parameters)})",
        _one_line(answers),
        _one_line(" ".join(paragraphs)),
        {parameter: notes.get(parameter, "") for parameter in parameters},
        notes,
        ") AS TABLE" in sql,
        sql,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _notes(text: str) -> dict[str, str]:
    """What names mean, of lines `name: meaning`."""
    return {name: _one_line(meaning) for name, meaning in _NOTE.findall(text)}


def _meanings() -> dict[str, str]:
    """What a column's name means wherever it has no comment of its own."""
    meanings = {metric.name: metric.meaning for metric in METRICS.values()}
    return meanings | _notes((_HERE / "views/columns.txt").read_text(encoding="utf-8"))


@cache
def _scripts() -> dict[str, str]:
    """The files that define views and macros, in the order in which they are run."""
    files = [*sorted(_HERE.glob("views/*.sql")), *sorted(_HERE.glob("macros/*.sql"))]
    scripts = {
        f"{file.parent.name}/{file.name}": file.read_text(encoding="utf-8") for file in files
    }
    return {"history/views.sql": series.VIEWS, **scripts}


def _sql_of(kind: str, name: str) -> str:
    """The statement that creates a view or macro; before it that of its internal view, if any."""
    found = []
    for full_name in (f"internal.{name}", name):
        for script in _scripts().values():
            _, opening, rest = script.partition(f"CREATE OR REPLACE {kind} {full_name}")
            if opening and not rest[0].isalnum() and rest[0] != "_":
                found.append(opening + rest.partition(";\n")[0])
    return "\n\n".join(found)


def listed_views(own: Mapping[str, Macro]) -> Rows:
    """The user's own macros, then the views and macros of memhouse.

    Columns: view, answers.
    """
    # An agent is shown so many rows as fit in 4 KB.
    named = [(macro.signature, macro.answers) for macro in own.values()]
    named += [(view.name, view.answers) for view in public_views().values()]
    named += [(macro.signature, macro.answers) for macro in public_macros().values()]
    return Rows(pa.Table.from_pylist([{"view": name, "answers": text} for name, text in named]))


def named_view(name: str, own: Mapping[str, Macro]) -> View | Macro:
    """A public view or macro, or a macro of the user's own. Raises UsageError."""
    known: dict[str, View | Macro] = {**own, **public_macros(), **public_views()}
    if name not in known:
        raise UsageError(f"there is no view {name}: see `memhouse views`", "name")
    return known[name]


def view_columns(view: View | Macro) -> Rows:
    """The columns of a view; or the parameters and columns of a macro; each with its meaning.

    Columns: column, meaning; of a macro kind, name, meaning.
    """
    if isinstance(view, View):
        rows = [{"column": name, "meaning": text} for name, text in view.columns.items()]
    else:
        parts = {"parameter": view.parameters, "column": macro_columns(view)}
        rows = [
            {"kind": kind, "name": name, "meaning": text}
            for kind, notes in parts.items()
            for name, text in notes.items()
        ]
    return Rows(pa.Table.from_pylist(rows))


def macro_columns(macro: Macro) -> dict[str, str]:
    """The columns of a macro's rows by name, each with its meaning.

    None of a macro that has a value, and of the user's own, which may be any SQL.
    """
    is_ours = public_macros().get(macro.name) is macro
    return _catalogue().macro_columns.get(macro.name, {}) if is_ours else {}


@cache
def examples() -> dict[str, list[Example]]:
    """The examples of each public table, view and macro, in `examples.sql`."""
    of_relation: dict[str, list[Example]] = {}
    for name, title, sql in _EXAMPLE.findall((_HERE / "examples.sql").read_text(encoding="utf-8")):
        of_relation.setdefault(name, []).append(Example(title, sql))
    return of_relation


def statement(name: str) -> str:
    """The statement behind a command or an analysis.

    `peaks` is a file in `statements/`, up to its first line `-- name:`; `advise.memory` is the part
    of `advise.sql` that follows the line `-- name: memory`.
    """
    subject, _, _ = name.partition(".")
    return statements(subject)[name]


@cache
def statements(subject: str) -> dict[str, str]:
    """The statements of a file in `statements/` by name."""
    text = (_HERE / "statements" / f"{subject}.sql").read_text(encoding="utf-8")
    alone, *parts = _NAME.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    named = {subject: alone, **{f"{subject}.{name}": sql for name, sql in pairs}}
    return {name: sql.rstrip(";\n") + "\n" for name, sql in named.items() if sql}


@cache
def checks() -> tuple[Check, ...]:
    """All checks that are SQL, by name: the files in `checks/`, and those of all keys."""
    found = [
        Check(file.stem, _first_line(text), text)
        for file in _HERE.glob("checks/*.sql")
        for text in [file.read_text(encoding="utf-8")]
    ]
    found += [_keys_are_unique(), _references_lead_to_rows()]
    return tuple(sorted(found, key=lambda check: check.name))


def open_with_views(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """The warehouse at `db`, with its views; with `create`, what is absent is made.

    Raises WarehouseError.
    """
    store = open_store(db, create=create, read_only=read_only)
    try:
        if read_only and not _has_views(store):
            store.close()
            _renew_views(db)
            store = open_store(db, read_only=True)
        elif not read_only:
            use_views(store)
    except BaseException:
        store.close()
        raise
    return store


def _renew_views(db: str) -> None:
    """Store the views of this memhouse in a warehouse that another version filled."""
    try:
        with closing(open_store(db)) as store:
            use_views(store)
    except WarehouseError as error:
        raise WarehouseError(
            f"the views of {db} are of another version of memhouse, and cannot be renewed: {error}"
        ) from error


def use_views(store: Store) -> None:
    """Store the views and macros of this memhouse, with comments, unless they are stored."""
    if _has_views(store):
        return
    store.execute("\n".join(_scripts().values()))
    meanings = _meanings()
    comments, ours = [], set(public_names())
    for row in store.rows(_COLUMNS).to_pylist():
        if row["comment"] is None and row["view"] in ours:
            meaning = quoted(meanings[row["name"]])
            comments.append(f'COMMENT ON COLUMN {row["view"]}."{row["name"]}" IS {meaning};')
    digest = quoted(_digest())
    comments.append("DELETE FROM internal.view_set;")
    comments.append(f"INSERT INTO internal.view_set (digest) VALUES ({digest});")
    store.execute("\n".join(comments))


def _has_views(store: Store) -> bool:
    return _digest() in store.rows("SELECT digest FROM internal.view_set")["digest"].to_pylist()


@cache
def _digest() -> str:
    """A hash of everything that defines views and their comments."""
    written = [
        *_scripts().values(),
        (_HERE / "views/columns.txt").read_text(encoding="utf-8"),
        repr(METRICS),
    ]
    return hashlib.sha256("".join(written).encode()).hexdigest()


def _first_line(text: str) -> str:
    return text.splitlines()[0].removeprefix("--").strip()


def _keys_are_unique() -> Check:
    """The check of the primary keys that a file lacks."""
    keys = stored_keys().items()
    sql = "\nUNION ALL\n".join(_repeated(*key) for key in keys if key[0] not in INDEXED)
    return Check("keys_are_unique", "Each key occurs once in its table.", sql)


def _repeated(table: str, key: tuple[str, ...]) -> str:
    named = [column for column in key if column != "module_id"] or list(key)
    shown = " || ', ' || ".join(f"COALESCE(CAST({name} AS VARCHAR), 'null')" for name in named)
    if "module_id" in key:
        module, source = "module_id", sql_name(table)
    elif "dump_id" in key:
        module = "ANY_VALUE(module_id)"
        source = (
            f"{sql_name(table)} LEFT JOIN (SELECT dump_id, module_id FROM dumps) USING (dump_id)"
        )
    else:
        module, source = "NULL", sql_name(table)
    return (
        f"SELECT {module} AS module_id, '{table} ' || {shown} || ' occurs twice' AS breach\n"
        f"FROM {source} GROUP BY {', '.join(key)} HAVING COUNT(*) > 1"
    )


def _references_lead_to_rows() -> Check:
    """The check of the foreign keys, of which a file has none."""
    sql = "\nUNION ALL\n".join(map(_dangling, foreign_keys()))
    return Check("references_lead_to_rows", "The row that a foreign key refers to is stored.", sql)


def _dangling(key: ForeignKeyConstraint) -> str:
    table, column, other = key.table.name, key.column_keys[-1], key.referred_table.name
    module = "referring.module_id" if "module_id" in key.table.c else "NULL"
    pairs = zip(key.column_keys, key.elements, strict=True)
    condition = " AND ".join(f"referring.{a} = referred.{b.column.name}" for a, b in pairs)
    return (
        f"SELECT {module} AS module_id,"
        f" '{table}: {column} ' || referring.{column} || ' is not in {other}' AS breach\n"
        f"FROM {sql_name(table)} AS referring\n"
        f"ANTI JOIN {sql_name(other)} AS referred ON {condition}\n"
        f"WHERE referring.{column} IS NOT NULL"
    )
