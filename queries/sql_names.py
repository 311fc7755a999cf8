"""Names that a user's SQL gives to memhouse's functions: one that is unknown would find no rows."""

from collections.abc import Iterable, Iterator
from typing import Any

from ..schema.arrow import closed_lists
from ..schema.errors import QueryError
from ..schema.stores.base import Store
from .arguments import nearest

Node = dict[str, Any]

# What the parameters of each function name, in order; None names nothing in the warehouse.
_NAMED: dict[str, dict[str, str | None]] = {
    "module": {"named": "module"},
    "history_of": {"series": "series_id"},
    "callers_of": {"module": "module_id", "at_line": "line"},
    "buffers_at": {"module": "module_id", "in_space": "memory space"},
    "live_at": {"module": "module_id"},
    "timeline_of": {"module": "module_id"},
    "owners_of": {"module": "module_id", "by": None, "in_space": "memory space"},
    "diff_buffers": {"a": "module_id", "b": "module_id"},
}
_KNOWN = {
    "module": "SELECT DISTINCT UNNEST([workload, module_name, workload || '/' || module_name])"
    " AS name FROM dumps",
    "series_id": "SELECT DISTINCT CAST(series_id AS VARCHAR) AS name FROM history",
    "module_id": "SELECT CAST(module_id AS VARCHAR) AS name FROM modules",
    "line": "SELECT DISTINCT file || ':' || line AS name FROM stack_frames WHERE file IS NOT NULL",
    "memory space": "SELECT DISTINCT CAST(memory_space AS VARCHAR) AS name FROM memory_spaces",
}


def require_known(nodes: Iterable[Node], store: Store) -> None:
    """Raises QueryError for a constant that names nothing, with the name that is most like it."""
    known: dict[str, list[str]] = {}
    for kind, given in _constants(nodes):
        if kind not in known:
            known[kind] = store.rows(_KNOWN[kind])["name"].to_pylist()
            known[kind] += closed_lists()["space"] if kind == "memory space" else []
        names = known[kind]
        if kind == "line":
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
