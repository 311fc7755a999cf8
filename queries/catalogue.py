"""The SQL of memhouse: canned views, statements and checks.

A check is a `.sql` file; the statements of a subject are one file, and so are its views, and its
macros, which are functions of DuckDB. A macro's header ends in the meanings of its parameters, and
of those columns of its rows that mean something else than in a view. A view's header is the
comment before its CREATE VIEW, in paragraphs: a line that says what the view answers; how to read
it; and last a line `column: meaning` for columns of this view alone. What a column of any view
means stands in `views/columns.txt`, by its name, or in METRICS; where a view
says `__metric__`, it is meant once for each of these. A view whose name starts with an underscore
is a helper of other views: it is not listed, and its columns have no notes.

Every other view of dumps or modules says run, workload, module and dump, and whether the dump is
the newest and of an entry program. The file need not say so: `_with_dump` adds what it leaves out.
The rows as the file has them are then a helper, such as `_module_buffers` for `buffers`, which has
a row for each module that many dumps may share. Statements of memhouse read these helpers. The
views in `tables.sql` keep their columns.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.metrics import METRICS
from ..schema.readable import quoted
from ..schema.stores import open_store
from ..schema.stores.duckdb import Store
from ..schema.tables import KEYS
from .result import Rows

_HERE = Path(__file__).parent
_VIEW = re.compile(
    r"^(?P<header>(?:--[^\n]*\n)+)CREATE VIEW (?P<name>\w+) AS\n(?P<sql>.+?);\n(?=\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MACRO = re.compile(
    r"^(?P<header>(?:--[^\n]*\n)+)CREATE MACRO (?P<name>\w+)(?P<sql>\((?P<taken>[^)]*)\) AS .+?);\n"
    r"(?=\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
# The rows of a function that have the columns of a relation.
_ROWS_OF = re.compile(
    r"AS TABLE\nSELECT\s+(?:\w+\.)?\*(?: EXCLUDE \((?P<without>[^)]*)\))?"
    r"(?P<more>.*?)\nFROM (?P<relation>\w+)",
    re.DOTALL,
)
# A column's note; the lines after the first are indented.
_NOTE = re.compile(r"^([a-z_0-9]+): (.+(?:\n +.+)*)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^-- (\w+): ([^\n]+)\n(.+?);$", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_0-9]+)")


# What `_dumped` says of a dump, where it stands in a view.
_FIRST = ("run_id", "workload", "module_name")
_LAST = ("is_latest", "is_entry", "dump_id", "module_id")
_OF_TABLES = "tables"
_KEY = re.compile(r"Key: ([a-z_0-9, ]+)\.$")


@dataclass(frozen=True)
class View:
    """A canned view: `columns` are the meanings by name, in the view's order.

    `key` are the columns that tell its rows apart; a helper has none.
    """

    name: str
    answers: str
    description: str
    columns: dict[str, str]
    sql: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that the description names as its key."""
        named = _KEY.search(self.description)
        return tuple(named[1].split(", ")) if named else ()


@dataclass(frozen=True)
class Macro:
    """A function of SQL: `parameters` are the meanings by name, in the macro's order.

    signature: for example `live_at(module, schedule_time)`; notes: all of its header; sql: all
    after the name.
    """

    name: str
    signature: str
    answers: str
    description: str
    parameters: dict[str, str]
    notes: dict[str, str]
    sql: str

    @property
    def is_table(self) -> bool:
        """It has rows, and no value."""
        return ") AS TABLE" in self.sql


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


@cache
def views() -> dict[str, View]:
    """All canned views by name: each uses only tables and views before it."""
    parsed = {
        view.name: view
        for name, family in _files("views").items()
        for written in _VIEW.finditer(family)
        for view in (
            [_view(**written.groupdict())]
            if name == _OF_TABLES
            else _with_dump(**written.groupdict())
        )
    }
    needs = {name: _used(view.sql, parsed) for name, view in parsed.items()}
    return {name: parsed[name] for name in TopologicalSorter(needs).static_order()}


@cache
def macros() -> dict[str, Macro]:
    """All macros by name: each uses only views, tables, and macros before it."""
    parsed = {
        written["name"]: macro_of(**written.groupdict())
        for family in _files("macros").values()
        for written in _MACRO.finditer(family)
    }
    for macro in parsed.values():
        _require_notes(macro)
    needs = {
        name: set(re.findall(r"\b(\w+)\(", macro.sql)) & parsed.keys() - {name}
        for name, macro in parsed.items()
    }
    return {name: parsed[name] for name in TopologicalSorter(needs).static_order()}


def public_macros() -> dict[str, Macro]:
    """The macros that are listed, all but the helpers, by name."""
    return {name: macro for name, macro in sorted(macros().items()) if not name.startswith("_")}


def public_views() -> dict[str, View]:
    """The canned views that are listed, all but the helpers, by name."""
    return {name: view for name, view in sorted(views().items()) if not name.startswith("_")}


def listed_views(own: Mapping[str, Macro]) -> Rows:
    """The user's own macros with what they take, then the canned views and macros.

    Columns: view, answers.
    """
    # An agent is shown so many rows as fit in 4 KB.
    named = [(macro.signature, macro.answers) for macro in own.values()]
    named += [(view.name, view.answers) for view in public_views().values()]
    named += [(macro.signature, macro.answers) for macro in public_macros().values()]
    return Rows(pa.Table.from_pylist([{"view": name, "answers": text} for name, text in named]))


def named_view(name: str, own: Mapping[str, Macro]) -> View | Macro:
    """A canned view, or a macro, also of the user's own. Raises UsageError."""
    canned: dict[str, View | Macro] = {**own, **public_macros(), **public_views()}
    if name not in canned:
        raise UsageError(f"there is no view {name}: see `memhouse views`", "name")
    return canned[name]


def view_sql(view: View | Macro) -> str:
    """The SQL of a view, below it that of the helper with its rows, if it has one; or a macro's."""
    if isinstance(view, Macro):
        return f"CREATE MACRO {view.name}{view.sql}"
    helpers = (f"_{grain}_{view.name}" for grain in ("dump", "module"))
    below = [f"\n\n-- {name} is\n{views()[name].sql}" for name in helpers if name in views()]
    return "".join([view.sql, *below])


def view_columns(view: View | Macro) -> Rows:
    """The columns of a canned view; or what a macro takes and has; each with its meaning.

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
    if not macro.is_table or macros().get(macro.name) is not macro:
        return {}
    notes = _shared_notes()
    if like := _ROWS_OF.search(macro.sql):
        relation = like["relation"]
        view = views()[re.sub("^_(dump|module)_", "", relation)]
        notes = notes | view.columns
        names = view.columns if view.name == relation else _columns(views()[relation].sql)
        left_out = re.findall(r"\w+", like["without"] or "")
        more = _columns(f"SELECT NULL AS every{like['more']}")[1:]
        columns = [*(name for name in names if name not in left_out), *more]
    else:
        columns = _columns(macro.sql)
    return {name: (notes | macro.notes)[name] for name in columns}


@cache
def examples() -> dict[str, list[Example]]:
    """The examples of each public table, view and macro, in `examples.sql`."""
    of_relation: dict[str, list[Example]] = {}
    for name, title, sql in _EXAMPLE.findall((_HERE / "examples.sql").read_text()):
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
    text = (_HERE / "statements" / f"{subject}.sql").read_text()
    alone, *parts = _NAME.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    named = {subject: alone, **{f"{subject}.{name}": sql for name, sql in pairs}}
    return {name: sql.rstrip(";\n") + "\n" for name, sql in named.items() if sql}


@cache
def checks() -> tuple[Check, ...]:
    """All checks that are SQL, by name: the files in `checks/`, and the one of all keys."""
    found = [Check(name, _first_line(text), text) for name, text in _files("checks").items()]
    return tuple(sorted([*found, _keys_are_unique()], key=lambda check: check.name))


def open_with_views(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """The warehouse at `db`, with its views; with `create`, what is absent is made.

    Raises WarehouseError.
    """
    store = open_store(db, create=create, read_only=read_only)
    try:
        use_views(store, read_only=read_only)
    except BaseException:
        store.close()
        raise
    return store


def use_views(store: Store, *, read_only: bool) -> None:
    """Give the warehouse the views and macros of this memhouse version.

    A file stores them with what they and their columns mean, as comments. A warehouse that another
    version wrote and that is open for reading gets temporary ones instead, which hide those that
    are stored.
    """
    folders = ((_HERE / name).iterdir() for name in ("macros", "views"))
    files = [*sorted(file for folder in folders for file in folder), Path(__file__)]
    written = b"".join(file.read_bytes() for file in files) + repr(METRICS).encode()
    digest = hashlib.sha256(written).hexdigest()
    if digest in store.rows("SELECT digest FROM view_set")["digest"].to_pylist():
        return
    temporary = "TEMPORARY " * read_only
    script = [
        f"CREATE OR REPLACE {temporary}VIEW {view.name} AS\n{view.sql}" for view in views().values()
    ]
    script += [
        f"CREATE OR REPLACE {temporary}MACRO {macro.name}{macro.sql}" for macro in macros().values()
    ]
    if not read_only:
        # To comment on a column DuckDB binds its view: 0.1 s, too much for each `read` in memory.
        if store.keeps_views:
            script += _comments()
        script += ["DELETE FROM view_set", f"INSERT INTO view_set (digest) VALUES ('{digest}')"]
    is_stored = store.keeps_views and not read_only
    (store.execute if is_stored else store.equip)(";\n".join(script))


def _comments() -> list[str]:
    """The statements that store what views, their columns, and macros mean."""
    meanings = {f"VIEW {view.name}": view.answers for view in views().values()}
    for view in public_views().values():
        for column, meaning in view.columns.items():
            meanings[f'COLUMN {view.name}."{column}"'] = meaning
    for macro in macros().values():
        kind = "MACRO TABLE" if macro.is_table else "MACRO"
        parameters = [f"{name}: {meaning}" for name, meaning in macro.parameters.items()]
        meanings[f"{kind} {macro.name}"] = "\n".join([macro.answers, "", *parameters])
    return [f"COMMENT ON {thing} IS {quoted(meaning)}" for thing, meaning in meanings.items()]


def _files(folder: str) -> dict[str, str]:
    """The texts of a folder's SQL files by name, in the names' order."""
    return {file.stem: file.read_text() for file in sorted((_HERE / folder).glob("*.sql"))}


def _with_dump(header: str, name: str, sql: str) -> list[View]:
    """A view of its parts in the file; before it the helper it needs to say all of its dump."""
    written = [] if name.startswith("_") else _columns(sql)
    shared = next((column for column in ("dump_id", "module_id") if column in written), None)
    first, last = ([c for c in side if c not in written] for side in (_FIRST, _LAST))
    if shared is None or not first + last:
        return [_view(header, name, sql)]
    helper = f"_{shared.removesuffix('_id')}_{name}"
    below = _view(header, helper, sql)
    selected = ",\n    ".join(
        [
            *(f"_dumped.{column}" for column in first),
            # DuckDB stores a view as its parser has it: each name would take 100 bytes of a file.
            f"{helper}.*",
            *(f"_dumped.{column}" for column in last),
        ]
    )
    joined = f"INNER JOIN {helper}\n    ON {helper}.{shared} = _dumped.{shared}"
    told = f"SELECT\n    {selected}\nFROM _dumped\n{joined}"
    return [below, _view(header, name, told, [*first, *_columns(below.sql), *last])]


def _view(header: str, name: str, sql: str, columns: Sequence[str] | None = None) -> View:
    """A view with its notes; its columns, else those that its SQL names.

    Raises ValueError where a column has no note.
    """
    sql = _for_each_metric(sql)
    answers, prose, own = _header(header)
    if columns is None:
        columns = [] if name.startswith("_") else _columns(sql)
    notes = _shared_notes() | own
    if columns and (wrong := own.keys() - set(columns) | set(columns) - notes.keys()):
        raise ValueError(f"view {name}: no column, or no note: {', '.join(sorted(wrong))}")
    return View(name, answers, prose, {column: notes[column] for column in columns}, sql)


def macro_of(header: str, name: str, taken: str, sql: str) -> Macro:
    """A macro with what it takes; a parameter that the header does not tell of means nothing."""
    answers, prose, notes = _header(header)
    parameters = re.findall(r"(?:^|,)\s*\W?(\w+)", taken)
    meanings = {parameter: notes.get(parameter, "") for parameter in parameters}
    return Macro(name, f"{name}({', '.join(parameters)})", answers, prose, meanings, notes, sql)


def _require_notes(macro: Macro) -> None:
    """Raises ValueError where a parameter has no meaning."""
    if not macro.name.startswith("_") and not all(macro.parameters.values()):
        raise ValueError(f"macro {macro.name}: its header does not tell of all parameters")


def _header(header: str) -> tuple[str, str, dict[str, str]]:
    """What a header says: its first line, what follows, and the notes in its last paragraph."""
    text = re.sub("^-- ?", "", header, flags=re.MULTILINE)
    answers, *description = text.strip().split("\n\n")
    own = _notes(description.pop()) if description and _NOTE.match(description[-1]) else {}
    return " ".join(answers.split()), " ".join(" ".join(description).split()), own


@cache
def _shared_notes() -> dict[str, str]:
    of_metrics = {metric.name: metric.meaning for metric in METRICS.values()}
    return of_metrics | _notes((_HERE / "views/columns.txt").read_text())


def _for_each_metric(sql: str) -> str:
    """The SQL of a view, with the metrics instead of `__metric__`.

    A SELECT of the text '__metric__' is repeated for each metric. Any other line that says
    `__metric__` stands for the metrics that the view does not name.
    """
    if "'__metric__'" in sql:
        return "\nUNION ALL\n".join(
            sql.replace("__metric__", metric.name)
            .replace("__better__", metric.better)
            .replace("__regresses__", str(metric.regresses).upper())
            for metric in METRICS.values()
        )
    unnamed = [name for name in METRICS if not re.search(rf"\b{name}\b", sql)]
    return re.sub(
        r".*\b__metric__\b.*\n",
        lambda line: "".join(line[0].replace("__metric__", name) for name in unnamed),
        sql,
    )


def _notes(text: str) -> dict[str, str]:
    """What columns mean, by name."""
    return {name: " ".join(meaning.split()) for name, meaning in _NOTE.findall(text)}


def _columns(sql: str) -> list[str]:
    """The names of a query's columns: those of the first SELECT outside of parentheses."""
    rest, bare = re.sub(r"'[^']*'|--.*", "", sql), ""
    while rest != bare:
        rest, bare = re.sub(r"\([^()]*\)", "", rest), rest
    _, _, selected = bare.partition("SELECT")
    names, _, _ = selected.partition("\nFROM")
    return [re.findall(r"\w+", column)[-1] for column in names.split(",")]


def _used(sql: str, views: Iterable[str]) -> list[str]:
    """The views that a view reads."""
    return sorted(set(_REFERENCE.findall(sql)) & set(views))


def _first_line(text: str) -> str:
    return text.splitlines()[0].removeprefix("--").strip()


def _keys_are_unique() -> Check:
    """The check of the keys that `schema/tables.py` lists."""
    sql = "\nUNION ALL\n".join(_repeated(table, key) for table, key in KEYS.items())
    return Check("keys_are_unique", "Each key occurs once in its table.", sql)


def _repeated(table: str, key: tuple[str, ...]) -> str:
    named = [column for column in key if column != "module_id"] or list(key)
    shown = " || ', ' || ".join(f"COALESCE(CAST({name} AS VARCHAR), 'null')" for name in named)
    if "module_id" in key:
        module, source = "module_id", f'"{table}"'
    elif "dump_id" in key:
        module = "ANY_VALUE(module_id)"
        source = f'"{table}" LEFT JOIN (SELECT dump_id, module_id FROM dumps) USING (dump_id)'
    else:
        module, source = "NULL", f'"{table}"'
    return (
        f"SELECT {module} AS module_id, '{table} ' || {shown} || ' occurs twice' AS breach\n"
        f"FROM {source} GROUP BY {', '.join(key)} HAVING COUNT(*) > 1"
    )
