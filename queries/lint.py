"""Two warnings about a user's SQL, of mistakes that its answer does not show.

A SUM counts a row once for each row that a join pairs it with, and the rows of several branches are
not one history. A query is read as DuckDB's parser represents it. The keys of tables and views say
which rows a join repeats; subqueries, CTEs and functions have no known key, and are taken to repeat
none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..schema.arrow import stored_columns, stored_keys
from ..schema.store import Store
from .catalogue import stored_views

Node = dict[str, Any]
# The alias of a relation in FROM, and the name of its column.
Column = tuple[str, str]

_SUMS = {"sum", "fsum", "kahan_sum", "sumkahan", "avg", "mean", "favg"}
_EQUAL = {"COMPARE_EQUAL", "COMPARE_NOT_DISTINCT_FROM"}
# What columns determine in addition to the keys.
_PROGRAM = {"run_id", "workload", "module_name", "platform", "occurrence"}
_DETERMINE: tuple[tuple[set[str], set[str]], ...] = (
    (_PROGRAM, {"dump_id"}),
    ({"dump_id"}, {"module_id", "is_latest", *_PROGRAM}),
    ({"series_id", "chain_index"}, {"dump_id"}),
    ({"previous_dump_id"}, {"dump_id"}),
    ({"last_dump_id"}, {"run_id", "series_id"}),
    ({"space"}, {"memory_space"}),
)
# Rows with one value of such a column are of one branch.
_OF_ONE_BRANCH = {"branch", "dump_id", "is_latest", "module_id", "run_id", "series_id"}
# They have bytes and a dump, but are no figures over time.
_NO_HISTORY = {"dumps", "oom_reports"}


@dataclass(frozen=True)
class SqlWarning:
    """A warning: the rule's name, and a sentence that says what to write instead."""

    rule: str
    advice: str


def lint(statements: Sequence[Node], store: Store) -> list[SqlWarning]:
    """The warnings about statements, as `json_serialize_sql` represents them."""
    nodes = list(descendants(statements))
    ctes = defined_names(nodes)
    known = _relations(nodes, store)
    selects = [
        _Select(node, {name: known[name] for name in known.keys() - ctes})
        for node in nodes
        if node.get("type") == "SELECT_NODE" and node.get("from_table")
    ]
    warnings = [warning for select in selects for warning in select.fan_outs()]
    if not any("branch" in _names(node) for node in nodes):
        mixed = [relation for select in selects for relation in select.mixed()]
        if mixed and _has_branches(store):
            warnings += [_branches(name, known[name]) for name in mixed]
    return list(dict.fromkeys(warnings))


def descendants(tree: Any, *, into_queries: bool = True) -> Iterator[Node]:
    """Every object of a parsed statement; or those of an expression without its subqueries."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += [part for name, part in node.items() if into_queries or name != "subquery"]
        elif isinstance(node, list):
            stack += node


def defined_names(nodes: Iterable[Node]) -> set[str]:
    """The names of the CTEs among the objects of a statement."""
    maps = (node.get("cte_map", {}).get("map", ()) for node in nodes)
    return {str(entry["key"]).lower() for entries in maps for entry in entries}


def _names(node: Node) -> list[str]:
    """The column that an expression names, or the text that it is."""
    literal = node.get("literal") or {}
    return [str(name).lower() for name in (*node.get("column_names", ()), literal.get("text"))]


def _conjuncts(condition: Node | None) -> list[Node]:
    """The conditions that all must hold."""
    if condition is not None and condition["type"] == "CONJUNCTION_AND":
        return [part for child in condition["children"] for part in _conjuncts(child)]
    return [] if condition is None else [condition]


@dataclass(frozen=True)
class _Relation:
    """A table or view: the names of its columns, and those that identify a row."""

    columns: set[str]
    key: set[str]


def _relations(nodes: Iterable[Node], store: Store) -> dict[str, _Relation]:
    """The tables and views that a statement reads, by name."""
    names = {str(node["table_name"]).lower() for node in nodes if node.get("table_name")}
    views = stored_views(store) if names - stored_columns().keys() else {}
    found = {}
    for name in names:
        if name in views:
            found[name] = _Relation(set(views[name].columns), set(views[name].key))
        elif name in stored_columns():
            found[name] = _Relation(set(stored_columns()[name]), set(stored_keys()[name]))
    return found


def _has_branches(store: Store) -> bool:
    counted = store.rows("SELECT COUNT(DISTINCT branch) AS branches FROM internal.lineages")
    return bool(counted["branches"][0].as_py() > 1)


def _fan_out(written: str, relation: str, repeating: Mapping[str, _Relation]) -> SqlWarning:
    others = " and ".join(f"`{name}`" for name in repeating)
    keys = " and ".join(
        f"`{name}` ({', '.join(sorted(repeated.key))})" for name, repeated in repeating.items()
    )
    return SqlWarning(
        "fan-out",
        f"{written} adds a row of `{relation}` once for each row of {others}:"
        f" sum before the join, or join on the whole key of {keys}",
    )


def _branches(name: str, relation: _Relation) -> SqlWarning:
    of = "" if "branch" in relation.columns else " of `runs_summary`"
    return SqlWarning(
        "branches",
        f"the rows of `{name}` are of several branches: choose or group by `branch`{of},"
        " choose a run_id, or write `is_latest`",
    )


class _Select:
    """A SELECT: its relations by alias, and what its conditions say of their columns.

    known: the tables and views with a key, by name; relations: their names by alias, empty for
    anything else; joined: the aliases but
    those of semi-joins; equal: pairs of columns; fixed: columns that are equal to a constant or to
    what has no known key; chosen: columns of other conditions.
    """

    def __init__(self, node: Node, known: Mapping[str, _Relation]) -> None:
        self.node = node
        self.known = known
        self.relations: dict[str, str] = {}
        self.equal: list[tuple[Column, Column]] = []
        self.fixed: set[Column] = set()
        self.chosen: set[Column] = set()
        self.joined = self._from(node["from_table"])
        self._where(node.get("where_clause"))
        self.groups = set(self._groups())

    def _from(self, source: Node) -> list[str]:
        """Add a part of FROM; its aliases."""
        if source["type"] != "JOIN":
            name = str(source.get("table_name", "")).lower()
            alias = str(source.get("alias") or name).lower()
            alias = alias if alias and alias not in self.relations else f"#{len(self.relations)}"
            has_key = name in self.known and self.known[name].key
            self.relations[alias] = name if has_key else ""
            return [alias]
        left, right = self._from(source["left"]), self._from(source["right"])
        shared = set(map(str.lower, source.get("using_columns") or ()))
        if source["ref_type"] == "NATURAL":
            shared = {n for a in left for n in self._of(a)} & {
                n for a in right for n in self._of(a)
            }
        for name in shared:
            ends = [[a for a in side if name in self._of(a)] or side for side in (left, right)]
            self._equate((ends[0][0], name), (ends[1][0], name))
        self._where(source.get("condition"))
        return left if source["join_type"] in ("SEMI", "ANTI") else left + right

    def _of(self, alias: str) -> set[str]:
        relation = self.relations[alias]
        return self.known[relation].columns if relation else set()

    def _equate(self, left: Column, right: Column) -> None:
        self.equal.append((left, right))
        self.fixed |= {c for c, (of, _) in ((left, right), (right, left)) if not self.relations[of]}

    def _where(self, condition: Node | None) -> None:
        """Add a condition of a join, or of all rows."""
        for part in _conjuncts(condition):
            if part["type"] in _EQUAL:
                left, right = self._column(part["left"]), self._column(part["right"])
                if left and right:
                    self._equate(left, right)
                elif left and not any(self._in(part["right"])):
                    self.fixed.add(left)
                elif right and not any(self._in(part["left"])):
                    self.fixed.add(right)
            else:
                self.chosen.update(self._in(part))

    def _column(self, node: Node) -> Column | None:
        """The relation's column that an expression is; None if it is no column of this FROM."""
        *qualifiers, name = [str(name).lower() for name in node.get("column_names") or [""]]
        for alias in self.relations:
            if qualifiers[-1:] == [alias] or (not qualifiers and name in self._of(alias)):
                return alias, name
        unknown = [alias for alias, relation in self.relations.items() if not relation]
        return (unknown[0], name) if name and unknown and not qualifiers else None

    def _in(self, tree: Any) -> Iterator[Column]:
        """The columns of this FROM in an expression, outside of subqueries."""
        for node in descendants(tree, into_queries=False):
            if column := self._column(node):
                yield column

    def _groups(self) -> Iterator[Column]:
        """The columns that the rows are grouped by."""
        selected = self.node["select_list"]
        groups = self.node.get("group_expressions") or []
        if self.node.get("aggregate_handling") == "FORCE_AGGREGATES":
            groups = [item for item in selected if item["class"] == "COLUMN_REF"]
        by_name = {str(item.get("alias")).lower(): item for item in selected}
        by_name |= {str(place): item for place, item in enumerate(selected, start=1)}
        for group in groups:
            is_column = self._column(group) is not None
            yield from self._in(group if is_column else by_name.get(_names(group)[0], group))

    def fan_outs(self) -> Iterator[SqlWarning]:
        """The sums of bytes that count rows several times."""
        parts = [part for name, part in self.node.items() if name not in ("from_table", "cte_map")]
        for node in descendants(parts, into_queries=False):
            if str(node.get("function_name", "")).lower() not in _SUMS:
                continue
            is_window = node["class"] == "WINDOW"
            groups = {*self._in(node["partitions"])} if is_window else self.groups
            within = groups | {*self._in(node.get("filter"))}
            for alias, column in self._in(node["arguments"]):
                relation = self.relations[alias]
                is_sum = column.endswith("_bytes") and relation
                if is_sum and (repeating := self._repeating(alias, within)):
                    written = f"{node['function_name'].upper()}({column})"
                    yield _fan_out(
                        written, relation, {name: self.known[name] for name in repeating}
                    )

    def _repeating(self, start: str, within: set[Column]) -> list[str]:
        """The relations of which several rows may meet one row of `start`."""
        single = {start, *(alias for alias, relation in self.relations.items() if not relation)}
        known = {*self.fixed, *within, *((start, name) for name in self._of(start))}
        size = 0
        while len(known) > size:
            size = len(known)
            known |= {column for pair in self.equal if known & {*pair} for column in pair}
            for alias in {*self.joined} - single:
                names = {name for of, name in known if of == alias}
                for determining, determined in _DETERMINE:
                    names |= determined if determining <= names else set()
                relation = self.relations[alias]
                if (self.known[relation].key if relation else set()) <= names:
                    single.add(alias)
                    known |= {(alias, name) for name in self._of(alias)}
        return [self.relations[alias] for alias in self.joined if alias not in single]

    def mixed(self) -> Iterator[str]:
        """The relations with figures of runs, where neither a branch nor a run is chosen."""
        names = {name for _, name in self.chosen | self.fixed | self.groups}
        if names & _OF_ONE_BRANCH or "latest" in self.relations.values():
            return
        for relation in self.relations.values():
            is_history = relation and relation not in _NO_HISTORY
            columns = self.known[relation].columns if is_history else set()
            is_figures = "series_id" in columns or any(name.endswith("_bytes") for name in columns)
            if is_figures and "dump_id" in columns:
                yield relation
