"""Which statements an agent may ask: one that selects, from the warehouse's own tables.

DuckDB's own parser takes the statement apart, and only what is listed here passes: a SELECT may
write too (a CTE that deletes, `enable_profiling`), and read files (`read_text`, `glob`).
"""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import duckdb

from ..schema.errors import UsageError, duckdb_says

if TYPE_CHECKING:
    from ..schema.stores.base import Store

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
_TABLE_FUNCTIONS = {"generate_series", "json_each", "json_tree", "range", "repeat", "unnest"}
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
_ALONE = "a query reads the tables and views of this warehouse alone"
_SELECT_ONLY = "only one SELECT is answered, or WITH, FROM, VALUES, DESCRIBE or SUMMARIZE"
_NAME = re.compile(r"\w+")
_TABLES = """SELECT table_name AS name, FALSE AS is_internal FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT view_name, internal FROM duckdb_views()"""


def require_harmless(query: str, store: "Store") -> None:
    """Raises UsageError if a statement is not one SELECT of the store's own tables and views."""
    nodes = _parsed(query)
    for node in nodes:
        _require_reading(node)
    defined = {
        str(entry["key"]).lower()
        for node in nodes
        for entry in node.get("cte_map", {}).get("map", ())
    }
    if odd := [name for name in defined if not _NAME.fullmatch(name)]:
        raise UsageError(f"{odd[0]!r} is no name: use letters and digits", "query")
    read = {str(node["table_name"]).lower() for node in nodes if node.get("type") == "BASE_TABLE"}
    found = store.rows(_TABLES).to_pylist()
    internal = {row["name"] for row in found if row["is_internal"]}
    there = {row["name"] for row in found} - internal
    # A WITH inside one part of a statement hides none of DuckDB's own views from the others.
    unknown = (read - defined - there) | (defined & internal)
    if unknown:
        names = ", ".join(sorted(unknown))
        raise UsageError(f"{_ALONE}, and {names} is none: the tool views lists them", "query")


def _parsed(query: str) -> list[dict[str, Any]]:
    """The objects that DuckDB's parser makes of one SELECT. Raises UsageError."""
    with duckdb.connect(config={"enable_external_access": "false"}) as parser:
        try:
            kinds = [statement.type for statement in parser.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise UsageError(_SELECT_ONLY, "query")
            ((text,),) = parser.execute("SELECT json_serialize_sql($1)", [query]).fetchall()
        except duckdb.Error as error:
            raise UsageError(duckdb_says(error), "query") from None
    tree = json.loads(text)
    if tree["error"]:
        raise UsageError(f"{_SELECT_ONLY}: {tree['error_message']}", "query")
    return list(_nodes(tree["statements"]))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a parsed statement."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _require_reading(node: dict[str, Any]) -> None:
    """Raises UsageError for a part of a statement that does more than to read the warehouse."""
    kind = str(node.get("type", ""))
    # Selects and what they read from have a sample, whatever else they are.
    if ("sample" in node or kind.endswith("_NODE")) and kind not in _SELECTS | _SOURCES:
        raise UsageError(_SELECT_ONLY, "query")
    if kind == "TABLE_FUNCTION":
        name = str(node["function"].get("function_name", kind))
        if name.lower() not in _TABLE_FUNCTIONS:
            raise UsageError(f"{_ALONE}: {name} is refused", "query")
    if kind == "SHOW_REF" and node.get("query") is None:
        raise UsageError("SHOW is refused: the tool views lists tables and views", "query")
    if kind == "BASE_TABLE" and (
        node.get("catalog_name") or node.get("schema_name") not in ("", "main")
    ):
        raise UsageError(f"{_ALONE}: {node['schema_name']} is refused", "query")
    if (name := str(node.get("function_name", "")).lower()) in _REFUSED_FUNCTIONS:
        raise UsageError(f"{_ALONE}: {name} is refused", "query")
