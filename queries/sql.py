"""The user's own SQL: the one door to a warehouse for text that somebody else wrote.

Two walls stand behind each other. DuckDB's own parser takes a statement apart, and only what is
listed here passes: a SELECT may write too (a CTE that deletes or copies, `enable_profiling`), and
read files (`read_text`, `glob`). And the connection opens no file but the warehouse, whatever the
warehouse's views and macros say (`schema/store.py`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..schema.arrow import closed_lists
from ..schema.errors import QueryError, RefusedError, duckdb_says
from ..schema.metrics import WORK
from ..schema.store import Store
from .arguments import nearest
from .lint import defined_names, descendants, lint
from .result import Rows

_SELECTS = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {
    "BASE_TABLE",
    "EMPTY",
    "EXPRESSION_LIST",
    "JOIN",
    "PIVOT",
    "SHOW_REF",
    "SUBQUERY",
    "TABLE_FUNCTION",
}
_TABLE_FUNCTIONS = {
    "duckdb_columns",
    "duckdb_tables",
    "duckdb_views",
    "generate_series",
    "json_each",
    "json_tree",
    "pragma_table_info",
    "range",
    "repeat",
    "unnest",
}
# Functions that act, wait, or tell of the process and not of the warehouse.
_REFUSED_FUNCTIONS = {
    "current_query",
    "current_setting",
    "getenv",
    "getvariable",
    "json_serialize_plan",
    "nextval",
    "sleep_ms",
    "write_log",
}
_COMPARISONS = {
    "COMPARE_EQUAL",
    "COMPARE_NOTEQUAL",
    "COMPARE_DISTINCT_FROM",
    "COMPARE_NOT_DISTINCT_FROM",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
}
_SHOWN = {'"tables"', "__show_tables_expanded"}
_WRITES = {"INSERT", "UPDATE", "DELETE", "CREATE", "CREATE_FUNC", "DROP", "ALTER", "MERGE_INTO"}
_ALONE = "a query reads the tables and views of this warehouse alone"
_SELECT_ONLY = (
    "only one SELECT is answered, or WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES, EXPLAIN"
)
_TO_FILES = (
    "--files (in Python files=True) lets it open files, and `memhouse export` writes a view to one"
)
_CONFINED = "disabled by configuration", "disabled through configuration"
_AFTER_A_COLUMN = set(",).;=<>+-*/%|:[") | {""}
_NAME = re.compile(r"\w+")
_AMBIGUOUS = re.compile(r'Ambiguous reference to column name "(\w+)"')
_EXPLAIN = re.compile(r"\A\s*EXPLAIN\s+(?:ANALYZE\s+)?", re.IGNORECASE)
_TABLES = """SELECT table_name AS name, FALSE AS is_internal FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT view_name, internal FROM duckdb_views()"""
_MACROS = """SELECT DISTINCT LOWER(function_name) AS name FROM duckdb_functions()
    WHERE NOT internal AND function_type = 'table_macro'"""
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'"


def sql(
    store: Store,
    query: str,
    parameters: Sequence[object] = (),
    *,
    write: bool = False,
    files: bool = False,
) -> Rows:
    """The rows of a query; `$1` and so on in it are the parameters.

    With `write` its statements may change the warehouse, all of it or nothing; with `files` they
    may open files. Raises QueryError, and RefusedError for what does more than it may.
    """
    try:
        query.encode()
    except UnicodeEncodeError:
        raise QueryError("the query is no text: not all of its bytes are UTF-8") from None
    if files:
        if not write:
            _require_other_files(query, store)
        with store.opened_to_files(writes=write) as opened:
            if write:
                return Rows(opened.change(query, parameters), empty="done")
            return Rows(opened.rows(query, parameters))
    if write:
        _require_tables_only(query)
        warnings: tuple[str, ...] = ()
    else:
        statements = require_harmless(query, store)
        warnings = tuple(each.advice for each in lint(statements, store))
    try:
        if write:
            return Rows(store.change(query, parameters), empty="done")
        return Rows(store.ask(query, parameters), warnings=warnings)
    except QueryError as error:
        if any(words in str(error) for words in _CONFINED):
            raise RefusedError(_ALONE, _TO_FILES) from error
        if column := _AMBIGUOUS.search(str(error)):
            raise QueryError(f"{error}; or join USING (…, {column[1]})") from error
        raise


def sql_warnings(store: Store, query: str) -> Rows:
    """The warnings about a query, which is not run. Columns: rule, advice.

    Raises what `sql` raises of the query.
    """
    statements = require_harmless(query, store)
    store.ask(f"EXPLAIN {_unexplained(query)}")
    schema = pa.schema([("rule", pa.string()), ("advice", pa.string())])
    warnings = [asdict(each) for each in lint(statements, store)]
    return Rows(pa.Table.from_pylist(warnings, schema), empty="no warnings")


def require_harmless(query: str, store: Store) -> list[dict[str, Any]]:
    """The statements of a query, as DuckDB's parser takes them apart.

    Raises RefusedError if it is not one SELECT of the store's own tables and views.
    """
    statements = _parsed(query, store.how_sql_changes)
    nodes = list(descendants(statements))
    functions = _TABLE_FUNCTIONS
    if any(node.get("type") == "TABLE_FUNCTION" for node in nodes):
        # Of a macro, as of a view, the body is the warehouse's own.
        functions = functions | {*store.rows(_MACROS)["name"].to_pylist()}
    for node in nodes:
        _require_reading(node, store.how_sql_changes, functions)
    defined = defined_names(nodes)
    if odd := [name for name in defined if not _NAME.fullmatch(name)]:
        raise QueryError(f"{odd[0]!r} is no name: use letters and digits")
    read = {str(node["table_name"]).lower() for node in nodes if node.get("type") == "BASE_TABLE"}
    found = store.rows(_TABLES).to_pylist()
    internal = {row["name"].lower() for row in found if row["is_internal"]}
    there = {row["name"].lower() for row in found} - internal
    if read <= defined | there:
        _require_words(nodes)
        require_known(nodes, store)
    # A WITH inside one part of a statement hides none of DuckDB's own views from the others.
    for name in sorted((read - defined - there) | (defined & internal)):
        what = f"{_ALONE}, and {name} is none"
        if name in internal or not _NAME.fullmatch(name):
            raise RefusedError(what, _TO_FILES)
        raise QueryError(f"{what}: {nearest(name, there) or 'see `memhouse views`'}")
    return statements


def _require_words(nodes: Sequence[dict[str, Any]]) -> None:
    """Raises QueryError for a word that a column of a closed list never has: it finds no row.

    A name that the statement itself gives to a column is not looked at.
    """
    given = {str(node.get("alias")) for node in nodes}
    given.update(name for node in nodes for name in node.get("column_name_alias") or ())
    for node in nodes:
        # The type of a constant is an object.
        if str(node.get("type")) not in _COMPARISONS:
            continue
        sides = node.get("children") or [node["left"], node["right"]]
        columns = {
            str(side["column_names"][-1]).lower() for side in sides if "column_names" in side
        }
        for column in columns & closed_lists().keys() - given:
            # Trends follow the work of a program as well, whose growth `check` does not accept.
            words = closed_lists()[column] + [WORK] * (column == "metric")
            for side in sides:
                literal = side.get("literal", {})
                if literal.get("kind") == "STRING" and literal["text"] not in words:
                    raise QueryError(
                        f"{column} is never {literal['text']!r}: it is one of {', '.join(words)}"
                    )


def _parsed(query: str, to_write: str) -> list[dict[str, Any]]:
    """What DuckDB's parser makes of one SELECT. Raises QueryError."""
    explained = _unexplained(query)
    with duckdb.connect(config={"enable_external_access": "false"}) as parser:
        kinds = _kinds(parser, explained)
        if not kinds:
            raise QueryError(_SELECT_ONLY)
        if kinds == ["MULTI"]:
            _require_pivot(parser, explained)
            return []
        if kinds != ["SELECT"]:
            writes = _WRITES.issuperset(kinds)
            raise RefusedError(_SELECT_ONLY, to_write if writes else _TO_FILES)
        try:
            ((text,),) = parser.execute("SELECT json_serialize_sql($1)", [explained]).fetchall()
        except duckdb.Error as error:
            raise QueryError(duckdb_says(error)) from None
    tree = json.loads(text)
    if tree["error"]:
        raise QueryError(f"{_SELECT_ONLY}: {tree['error_message']}")
    statements: list[dict[str, Any]] = tree["statements"]
    return statements


def _require_pivot(parser: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raises RefusedError for several statements in one that do more than a PIVOT reads.

    DuckDB first asks for the values of the column that becomes columns. It shows no such statement
    in parts: of its functions the words tell.
    """
    words = _words(query)
    lowered = [word.strip('"').lower() for word in words]
    if "pivot" not in lowered or lowered[0] not in ("pivot", "from", "select", "with"):
        raise RefusedError(_SELECT_ONLY, _TO_FILES)
    functions = {name for (name,) in parser.execute(_FUNCTIONS).fetchall()} - _TABLE_FUNCTIONS
    for name, following in zip(lowered, [*words[1:], ""], strict=True):
        is_file = name in ("from", "join", "pivot") and following.startswith("'")
        if is_file or (following == "(" and name in functions | _REFUSED_FUNCTIONS):
            refused = following if is_file else name
            raise RefusedError(f"{_ALONE}, and {refused} is refused", _TO_FILES)


def _unexplained(query: str) -> str:
    return _EXPLAIN.sub("", query, count=1)


def _kinds(parser: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Which kinds of statements a text has, in DuckDB's words. Raises QueryError."""
    try:
        return [statement.type.name for statement in parser.extract_statements(query)]
    except duckdb.Error as error:
        raise QueryError(duckdb_says(error)) from None
    except ValueError:  # One that DuckDB's own Python package does not know.
        return ["UNKNOWN"]


def _require_reading(node: dict[str, Any], to_write: str, functions: Set[str]) -> None:
    """Raises RefusedError for a part of a statement that does more than to read the warehouse.

    functions: the table functions that it may call
    """
    kind = str(node.get("type", ""))
    # Selects and what they read from have a sample, whatever else they are.
    if ("sample" in node or kind.endswith("_NODE")) and kind not in _SELECTS | _SOURCES:
        raise RefusedError(_SELECT_ONLY, _TO_FILES if "COPY" in kind else to_write)
    if kind == "TABLE_FUNCTION":
        name = str(node["function"].get("function_name", kind))
        if name.lower() not in functions:
            raise RefusedError(f"{_ALONE}, and {name} is refused", _TO_FILES)
    if kind == "SHOW_REF" and node.get("query") is None and node["table_name"] not in _SHOWN:
        raise RefusedError("SHOW is refused, but for SHOW TABLES", _TO_FILES)
    if kind == "BASE_TABLE" and (
        node.get("catalog_name") or node.get("schema_name") not in ("", "main")
    ):
        raise RefusedError(f"{_ALONE}, and {node['schema_name']} is refused", _TO_FILES)
    if (name := str(node.get("function_name", "")).lower()) in _REFUSED_FUNCTIONS:
        raise RefusedError(f"{_ALONE}, and {name} is refused", _TO_FILES)


def _require_tables_only(query: str) -> None:
    """Raises RefusedError if statements do more than to read and change tables and views.

    DuckDB shows only a SELECT in parts. Of other statements the words tell: of a confined
    connection's own files, COPY and the functions of files are not kept away.
    """
    with duckdb.connect(config={"enable_external_access": "false"}) as parser:
        if not (statements := _kinds(parser, query)):
            raise QueryError("there is no statement")
        if odd := set(statements) - _WRITES - {"SELECT"}:
            kinds = ", ".join(sorted(odd)).replace("_", " ")
            raise RefusedError(
                f"--write changes tables and views, and {kinds} is refused", _TO_FILES
            )
        functions = {name for (name,) in parser.execute(_FUNCTIONS).fetchall()}
    tokens = _words(query)
    for word, following in zip(tokens, [*tokens[1:], ""], strict=True):
        name = word.strip('"').lower()
        # A column of this name is followed by a sign or by nothing.
        is_copy = word.lower() in ("copy", "secret") and following[:1] not in _AFTER_A_COLUMN
        if is_copy or (name in functions - _TABLE_FUNCTIONS and following == "("):
            raise RefusedError(f"--write opens no files, and {name} is refused", _TO_FILES)


def _require_other_files(query: str, store: Store) -> None:
    """Raises RefusedError if a text names a file of the warehouse: COPY may write to it."""
    for word in _words(query):
        if word[:1] == "'" and store.holds(Path(word.strip("'"))):
            raise RefusedError(
                f"--files opens other files, and {word} is of this warehouse", store.how_sql_changes
            )


def _words(query: str) -> list[str]:
    """The words and signs of a text of SQL without its comments."""
    tokens = duckdb.tokenize(query)
    if not tokens:
        return []
    text = query.encode()
    ends = [offset for offset, _ in tokens[1:]] + [len(text)]
    return [
        text[offset:end].decode(errors="replace").strip()
        for (offset, kind), end in zip(tokens, ends, strict=True)
        if kind.name != "comment"
    ]


# Names that a user's SQL gives to memhouse's functions: one that is unknown would find no rows.

Node = dict[str, Any]

# What the parameters of each function name, in order; None names nothing in the warehouse.
_NAMED: dict[str, dict[str, str | None]] = {
    "module": {"named": "module"},
    "history_of": {"series": "series_id"},
    "callers_of": {"module": "module_id", "at_line": "line", "in_space": "memory space"},
    "buffers_at": {"module": "module_id", "in_space": "memory space"},
    "live_at": {"module": "module_id"},
    "holes_at": {"module": "module_id", "in_space": "memory space"},
    "timeline_of": {"module": "module_id"},
    "owners_of": {"module": "module_id", "by": None, "in_space": "memory space"},
    "diff_buffers": {"a": "module_id", "b": "module_id"},
}
_KNOWN = {
    "module": "SELECT DISTINCT UNNEST([workload, module_name, workload || '/' || module_name])"
    " AS name FROM dumps",
    "series_id": "SELECT DISTINCT CAST(series_id AS VARCHAR) AS name FROM dump_series",
    "module_id": "SELECT CAST(module_id AS VARCHAR) AS name FROM modules",
    "line": "SELECT DISTINCT file || ':' || line AS name FROM stack_frames WHERE file IS NOT NULL",
    "memory space": "SELECT DISTINCT CAST(memory_space AS VARCHAR) AS name FROM module_memory",
}


def require_known(nodes: Iterable[Node], store: Store) -> None:
    """Raises QueryError for a constant that names nothing, with the name that is most like it."""
    known: dict[str, list[str]] = {}
    for kind, given in _constants(nodes):
        if kind not in known:
            known[kind] = store.rows(_KNOWN[kind])["name"].to_pylist()
            known[kind] += closed_lists()["space"] if kind == "memory space" else []
        names = known[kind]
        if kind in ("line", "module"):
            # Of a path any last part will do.
            parts = given.count("/") + 1
            names = ["/".join(name.split("/")[-parts:]) for name in names]
        if given not in names:
            where = "modules" if kind in ("module", "module_id") else None
            hint = nearest(given, set(names)) or (f"see `memhouse {where}`" if where else "")
            raise QueryError(f"there is no {kind} {given!r}{': ' * bool(hint)}{hint}")


def _constants(nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """What the functions are given as constants: the kind of name, and the name."""
    for node in nodes:
        kinds = _NAMED.get(str(node.get("function_name", "")).lower(), {})
        in_order = iter(kinds)
        for argument in node.get("arguments", ()) if kinds else ():
            name = argument["name"].lower() or next(in_order, "")
            literal = argument["expression"].get("literal", {})
            kind = kinds.get(name)
            if kind is not None and literal.get("kind") in ("STRING", "INTEGER"):
                yield kind, literal["text"]
