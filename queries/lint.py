"""Traps in a user's SQL: a query that runs, and whose answer is not what it seems to be.

DuckDB's own parser takes the query apart. What a relation's rows are is said by its key, so a join
is judged as dependencies are: from a row of one relation, the others' rows are known one after the
other, as soon as what is equal to known columns has their keys. Of subqueries and CTEs the keys
are not known: nothing is said of joins with them.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..schema.arrow import stored_columns, stored_keys
from ..schema.stores.base import Store
from .catalogue import macro_columns, public_macros, public_views, views

Node = dict[str, Any]
# A relation of a FROM by its alias, and a column of it.
Column = tuple[str, str]

_SUMS = {"sum", "fsum", "kahan_sum", "sumkahan", "avg", "mean", "favg"}
_NEIGHBOURS = {"lag", "lead"}
_COMPARED = {
    "COMPARE_GREATERTHAN",
    "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_LESSTHAN",
    "COMPARE_LESSTHANOREQUALTO",
}
# They leave many rows of what they compare.
_LOOSE = _COMPARED | {"COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM", "COMPARE_BETWEEN"}
_EQUAL = {"COMPARE_EQUAL", "COMPARE_NOT_DISTINCT_FROM"}
# What else a row is known by: its dump says its run and module, five names say its dump, as its
# place in a series and what it follows do, a series is gone once after a dump, and a space's name
# says its number.
_NAMES = ("run_id", "workload", "module_name", "platform", "occurrence")
_DEPEND = (
    ({*_NAMES}, {"dump_id"}),
    ({"dump_id"}, {"module_id", "is_latest", *_NAMES}),
    ({"series_id", "chain_index"}, {"dump_id"}),
    ({"previous_dump_id"}, {"dump_id"}),
    ({"last_dump_id"}, {"run_id", "series_id"}),
    ({"space"}, {"memory_space"}),
)
# One of these must be chosen or grouped by, else bytes of several programs are added.
_PROGRAMS = {"dump_id", "is_last", "is_latest", "module_id", "run_at", "run_id", "run_seq"}
_CONSTANT: Column = ("", "")
# Where the functions take a memory space, and how it is named there.
_IN_SPACE = {"buffers_at": 1, "callers_of": 2, "owners_of": 2}
_SHARED = {"peak_buffers", "buffers_at", "live_at"}
# Their bytes are of files, and of XLA's own messages.
_NEVER_ESTIMATED = {"dumps", "oom_reports", "oom_buffers"}
_OVER_TIME = {"timeline", "timeline_of", "occupancy"}

# The columns that tell figures apart which must not be added, and what to write.
_NOT_ADDED = {
    "memory_space": (
        {"memory_space", "space", "space_name"},
        "several memory spaces: write `memory_space = 0` for the main memory, or group by space",
    ),
    "depth": ({"depth"}, "the same bytes once per depth: write `depth = 2`, or group by depth"),
    "metric": ({"metric"}, "several metrics: write `metric = 'peak_bytes'`, or group by metric"),
}


@dataclass(frozen=True)
class Trap:
    """What a query falls into: the rule's name, and a sentence that says what to write instead."""

    rule: str
    advice: str


def lint(statements: Sequence[Node], store: Store) -> list[Trap]:
    """The traps in statements, as `json_serialize_sql` gives them."""
    nodes = list(descendants(statements))
    defined = defined_names(nodes)
    selects = [
        _Select(node, defined)
        for node in nodes
        if node.get("type") == "SELECT_NODE" and node.get("from_table")
    ]
    names = {name for select in selects for name in select.relations.values()}
    traps = [
        *map(_helper, sorted(name for name in names & views().keys() if name[0] == "_")),
        *(trap for select in selects for trap in select.traps()),
    ]
    mentioned = {str(node["column_names"][-1]) for node in nodes if "column_names" in node}
    if (
        any(select.compares() for select in selects)
        and not mentioned & {"origin", "grade"}
        and any(_has_figures(name) for name in names)
        and _is_mixed(store, _asked(selects))
    ):
        traps.append(
            Trap(
                "estimated",
                "the query compares figures, and some programs of the warehouse are estimated:"
                " write `origin <> 'estimated'`, or show origin beside the figures",
            )
        )
    return list(dict.fromkeys(traps))


def descendants(tree: Any, *, into_queries: bool = True) -> Iterator[Node]:
    """Every object of a parsed statement; or those of an expression without its subqueries."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            if into_queries or node.get("type") != "SUBQUERY":
                waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def defined_names(nodes: Iterable[Node]) -> set[str]:
    """The names of the CTEs among the objects of a statement."""
    maps = (node.get("cte_map", {}).get("map", ()) for node in nodes)
    return {str(entry["key"]).lower() for entries in maps for entry in entries}


@cache
def _columns(relation: str) -> frozenset[str]:
    """The columns of a public table, view or function with rows; none of any other."""
    if relation in public_macros():
        return frozenset(macro_columns(public_macros()[relation]))
    if relation in public_views():
        return frozenset(public_views()[relation].columns)
    return frozenset(stored_columns().get(relation, ()))


def _key(relation: str) -> frozenset[str]:
    """The columns that tell its rows apart; none where they are not known."""
    if relation in public_views():
        return frozenset(public_views()[relation].key)
    return frozenset(stored_keys().get(relation, ()))


def _has_figures(relation: str) -> bool:
    columns = _columns(relation) if relation not in _NEVER_ESTIMATED else frozenset()
    return bool(columns & {"dump_id", "module_id"}) and any(map(_is_bytes, columns))


def _is_bytes(column: str) -> bool:
    return column.endswith("_bytes")


def _asked(selects: "Iterable[_Select]") -> list[str] | None:
    """The names of all programs whose figures are asked for; None where one is any."""
    asked: list[str] = []
    for select in selects:
        named, equal = select.named(), select.equal()
        for alias, relation in select.relations.items():
            if _has_figures(relation) and not any(
                equal.of((alias, key)) == equal.of((other, key))
                for other in named
                for key in ("workload", "module_id", "dump_id")
            ):
                return None
        asked += itertools.chain(*named.values())
    return asked


def _is_mixed(store: Store, asked: Sequence[str] | None) -> bool:
    """Whether a warehouse has estimated programs and others, of these names alone if given."""
    query = """SELECT COUNT(DISTINCT modules.origin = 'estimated') AS kinds
        FROM modules INNER JOIN dumps ON dumps.module_id = modules.module_id
        WHERE ? IS NULL OR EXISTS (
            SELECT 1 FROM (SELECT UNNEST(?) AS named)
            WHERE ENDS_WITH('/' || dumps.workload, '/' || named)
                OR ENDS_WITH('/' || dumps.workload || '/' || dumps.module_name, '/' || named))"""
    return bool(store.rows(query, [asked, asked])["kinds"][0].as_py() == 2)


def _helper(name: str) -> Trap:
    _, _, public = name[1:].partition("_")
    instead = f"`{public}`" if public in public_views() else "a view that `memhouse views` lists"
    return Trap("helper", f"`{name}` is a helper of other views, which may change: read {instead}")


@dataclass
class _Equal:
    """Which columns are equal to each other, and which to a constant."""

    parents: dict[Column, Column] = field(default_factory=dict)

    def of(self, column: Column) -> Column:
        while column in self.parents:
            column = self.parents[column]
        return column

    def join(self, left: Column, right: Column) -> None:
        left, right = self.of(left), self.of(right)
        if left != right:
            # The constant stays a root.
            (left, right) = (right, left) if left == _CONSTANT else (left, right)
            self.parents[left] = right


class _Select:
    """A SELECT of the query: its relations by alias, and what its conditions say of columns.

    `relations` are names of tables and views, or empty for what is not known.
    """

    def __init__(self, node: Node, defined: set[str]) -> None:
        self.node = node
        self.defined = defined
        self.relations: dict[str, str] = {}
        # Of a semi-join, which adds no rows.
        self.asides: set[str] = set()
        self.pairs: list[tuple[Column, Column]] = []
        self.chosen: set[Column] = set()
        self._from(node["from_table"])
        self._conditions(node.get("where_clause"))

    # What stands in the query.

    def _from(self, source: Node) -> list[str]:
        """Take in a part of FROM; its aliases."""
        if source["type"] != "JOIN":
            name = str(source.get("table_name", "")).lower()
            known = "" if name in self.defined else name
            alias = str(source.get("alias") or name).lower()
            alias = alias if alias and alias not in self.relations else f"#{len(self.relations)}"
            self.relations[alias] = known if source["type"] == "BASE_TABLE" else ""
            if source["type"] == "TABLE_FUNCTION":
                self._function(alias, source["function"])
            return [alias]
        left, right = self._from(source["left"]), self._from(source["right"])
        shared = source.get("using_columns") or ()
        if source["ref_type"] == "NATURAL":
            ours, theirs = ({c for a in side for c in self._has(a)} for side in (left, right))
            shared = sorted(ours & theirs)
        for column in map(str.lower, shared):
            one = next((a for a in left if column in self._has(a)), left[0])
            other = next((a for a in right if column in self._has(a)), right[0])
            self._same((one, column), (other, column))
        self._conditions(source.get("condition"))
        if source["join_type"] in ("SEMI", "ANTI"):
            self.asides.update(right)
            return left
        return left + right

    def _function(self, alias: str, called: Node) -> None:
        """Take in a function with rows, and the memory space that it is asked for."""
        name = _name(called)
        if not _columns(name):
            return
        self.relations[alias] = name
        for place, argument in enumerate(called["arguments"]):
            is_space = argument["name"] == "in_space" or (
                not argument["name"] and place == _IN_SPACE.get(name)
            )
            if is_space and argument["expression"].get("literal", {}).get("kind") != "NULL_LITERAL":
                self.chosen.add((alias, "memory_space"))

    def _has(self, alias: str) -> frozenset[str]:
        return _columns(self.relations[alias])

    def _same(self, left: Column, right: Column) -> None:
        self.pairs.append((left, right))
        for here, there in ((left, right), (right, left)):
            if not self._has(there[0]):
                # A subquery or CTE chooses.
                self.chosen.add(here)

    def _conditions(self, condition: Node | None) -> None:
        for part in _conjuncts(condition):
            if part["type"] in _EQUAL:
                left, right = (self.column(part[side]) for side in ("left", "right"))
                if left and right:
                    self._same(left, right)
                    continue
                for column, other in ((left, part["right"]), (right, part["left"])):
                    if column and not list(self.columns(other)):
                        self.pairs.append((column, _CONSTANT))
            self.chosen.update(self._chosen(part))

    def _chosen(self, part: Node) -> Iterator[Column]:
        """The columns of a condition of which it leaves the rows with one value, or a few."""
        if part.get("type") in _LOOSE | {"SUBQUERY"}:
            return
        if column := self.column(part):
            yield column
        for child in _children(part):
            yield from self._chosen(child)

    def column(self, node: Node) -> Column | None:
        """The relation's column that an expression is; None if it is no column of this FROM."""
        names = [str(name).lower() for name in node.get("column_names", ())]
        if not names:
            return None
        *qualifiers, name = names
        for alias in self.relations:
            if qualifiers[-1:] == [alias] or (not qualifiers and name in self._has(alias)):
                return alias, name
        unknown = [alias for alias in self.relations if not self._has(alias)]
        return (unknown[0], name) if unknown and not qualifiers else None

    def columns(self, tree: Any) -> Iterator[Column]:
        """The columns of this FROM in an expression, without those in its subqueries."""
        for node in descendants(tree, into_queries=False):
            if column := self.column(node):
                yield column

    def _expressions(self) -> Iterator[Node]:
        parts = [
            value for name, value in self.node.items() if name not in ("from_table", "cte_map")
        ]
        return descendants(parts, into_queries=False)

    def _groups(self) -> Iterator[Column]:
        """The columns that the rows are grouped by."""
        selected = self.node["select_list"]
        named = {str(item.get("alias")).lower(): item for item in selected if item.get("alias")}
        if self.node.get("aggregate_handling") == "FORCE_AGGREGATES":
            for item in selected:
                if not any(map(_is_aggregate, descendants(item))):
                    yield from self.columns(item)
        for group in self.node.get("group_expressions") or ():
            place = group.get("literal", {}).get("text", "")
            if place.isdigit() and 0 < int(place) <= len(selected):
                group = selected[int(place) - 1]
            elif len(group.get("column_names", ())) == 1 and self.column(group) is None:
                group = named.get(str(group["column_names"][0]).lower(), group)
            yield from self.columns(group)

    # What is wrong with it.

    def traps(self) -> Iterator[Trap]:
        """The traps of sums and joins."""
        grouped = set(self._groups())
        repeats = False
        for node in self._expressions():
            if not (_name(node) in _SUMS and ("arguments" in node)):
                continue
            own = set(grouped) if node["class"] != "WINDOW" else set()
            own |= set(self.columns(node.get("partitions")))
            for part in _conjuncts(node.get("filter")):
                own |= set(self._chosen(part))
            summed = list(self.columns(node["arguments"]))
            if trap := self._weighed(_name(node), summed):
                yield trap
            for alias, column in summed:
                if not _is_bytes(column) or not self.relations[alias]:
                    continue
                written = f"{_name(node).upper()}({column})"
                repeated = self._repeated(alias, own)
                yield from self._added(alias, written, column, own | set(summed), repeated)
                repeats |= bool(repeated)
        if not repeats and (trap := self._multiplied()):
            yield trap
        yield from self._unlike()

    def _weighed(self, name: str, summed: Sequence[Column]) -> Trap | None:
        """The trap of a sum that leaves out how often, or for how long, a row counts."""
        columns = {column for _, column in summed}
        for alias, column in summed:
            relation = self.relations[alias]
            if (relation, column) == ("instructions", "flops") and "executions" not in columns:
                return Trap(
                    "executions",
                    f"{name.upper()}(flops) of `instructions` counts an instruction in a loop once:"
                    " multiply by executions of `computations`, or read `work_by_scope`",
                )
            is_level = column in ("occupied_bytes", "live_bytes")
            if relation in _OVER_TIME and is_level and not columns & {"start_time", "end_time"}:
                return Trap(
                    "stretches",
                    f"{name.upper()}({column}) of `{relation}` counts a long stretch of the"
                    f" schedule like a short one: for the mean write SUM({column} * (end_time -"
                    " start_time + 1)) / SUM(end_time - start_time + 1) of `timeline`",
                )
            if relation in _SHARED and column == "size_bytes":
                return Trap(
                    "shared",
                    f"{name.upper()}(size_bytes) of `{relation}` adds bytes that several values"
                    " share once for each of them: sum counted_bytes",
                )
        return None

    def _unlike(self) -> Iterator[Trap]:
        """The traps of two columns that look alike and are not."""
        for ends in self.pairs:
            sides = {(self.relations.get(alias), column) for alias, column in ends}
            if sides == {("dumps", "host"), ("run_parts", "host")}:
                yield Trap(
                    "host",
                    "host is null without --host, and null equals nothing: write"
                    " dumps.host IS NOT DISTINCT FROM run_parts.host",
                )
        shown = {column for node in self._expressions() if (column := self.column(node))}
        if {"peak_bytes", "reported_peak_bytes"} <= {column for _, column in shown}:
            yield Trap(
                "reported",
                "reported_peak_bytes is XLA's own sum of logical sizes, without padding, over all"
                " memory spaces: it is no measure of peak_bytes, which is of one space",
            )

    def _added(
        self, alias: str, written: str, column: str, own: set[Column], repeated: Sequence[str]
    ) -> Iterator[Trap]:
        """The traps of one sum of a relation's bytes; `own` are chosen or grouped by."""
        relation = self.relations[alias]
        equal = self.equal()
        roots = {equal.of(c) for c in (*self.chosen, *own)} | {_CONSTANT}
        chosen = {(a, c) for a in self.relations for c in self._has(a) if equal.of((a, c)) in roots}
        for name, (words, instead) in _NOT_ADDED.items():
            if name in self._has(alias) and not any((alias, word) in chosen for word in words):
                rule = "spaces" if name == "memory_space" else name
                yield Trap(rule, f"{written} of `{relation}` adds {instead}")
        if "live_ranges" in self.relations.values():
            yield Trap(
                "live_ranges",
                f"{written} with `live_ranges` adds values while they are live, but memory is taken"
                " for longer: sum counted_bytes of `peak_buffers`, or at another time of"
                " `live_at(module, time)`",
            )
        is_chosen = any(c in _PROGRAMS for _, c in chosen) or "latest" in self.relations.values()
        programs = _key(relation) & {"dump_id", "module_id"}
        if programs and not is_chosen and "change" not in column:
            instead = (
                "write `is_latest`" if "dump_id" in programs else "join `latest` USING (module_id)"
            )
            yield Trap(
                "runs",
                f"{written} of `{relation}` adds programs of several runs: {instead},"
                " or group by run_id",
            )
        if repeated:
            others = " and ".join(f"`{self.relations[other]}`" for other in repeated)
            yield Trap(
                "fan-out",
                f"{written} adds a row of `{relation}` once for each row of {others}:"
                " sum before the join, or join on the whole key of"
                f" {' and '.join(self._keyed(other) for other in repeated)}",
            )

    def _keyed(self, alias: str) -> str:
        relation = self.relations[alias]
        return f"`{relation}` ({', '.join(sorted(_key(relation)))})"

    def equal(self, constants: Iterable[Column] = ()) -> _Equal:
        equal = _Equal()
        for left, right in (*self.pairs, *((column, _CONSTANT) for column in constants)):
            equal.join(left, right)
        return equal

    def _repeated(self, start: str, constants: Iterable[Column] = ()) -> list[str]:
        """The relations of which a row of this one may meet several."""
        equal = self.equal(constants)
        joined = [alias for alias in self.relations if alias not in self.asides]
        known = {start, *(alias for alias in joined if not _key(self.relations[alias]))}
        while True:
            roots = {equal.of((a, c)) for a in known for c in self._has(a) or self._named(a)}
            found = {
                alias
                for alias in joined
                if alias not in known and self._is_known(alias, roots | {_CONSTANT}, equal)
            }
            if not found:
                return [alias for alias in joined if alias not in known]
            known |= found

    def _named(self, alias: str) -> set[str]:
        """The columns that are named of a subquery or CTE."""
        return {c for pair in self.pairs for a, c in pair if a == alias}

    def _is_known(self, alias: str, roots: set[Column], equal: _Equal) -> bool:
        """Whether the columns that are known have the key of a relation."""
        return _key(self.relations[alias]) <= self._given(alias, roots, equal)

    def _given(self, alias: str, roots: set[Column], equal: _Equal) -> set[str]:
        """The columns of a relation that are known by those that are equal to known ones."""
        given = {column for column in self._has(alias) if equal.of((alias, column)) in roots}
        for names, more in _DEPEND:
            given |= more if names <= given else set()
        return given

    def _multiplied(self) -> Trap | None:
        """A join without a relation of which each row is kept as it is."""
        joined = [alias for alias in self.relations if alias not in self.asides]
        keyed = [alias for alias in joined if _key(self.relations[alias])]
        grouped = set(self._groups())
        repeated: Mapping[str, list[str]] = {a: self._repeated(a, grouped) for a in keyed}
        if len(keyed) < 2 or not all(repeated.values()):
            return None
        left = min(keyed, key=lambda alias: len(repeated[alias]))
        right = repeated[left][0]
        here, there = self.relations[left], self.relations[right]
        if here == there:
            others = ", ".join(_NAMES[1:])
            return Trap(
                "fan-out",
                f"the join may repeat rows of `{here}`: of two runs, join on {others} and the rest"
                " of the key, or read `trends`",
            )
        equal = self.equal(grouped)
        open_keys = [
            f"one {', '.join(missing)} of `{self.relations[alias]}`"
            for alias, other in ((left, right), (right, left))
            if (missing := self._open(alias, other, equal))
        ]
        return Trap(
            "fan-out",
            f"the join repeats rows of `{here}` and of `{there}`:"
            f" choose {' or '.join(open_keys)}, or group by it",
        )

    def _open(self, alias: str, other: str, equal: _Equal) -> list[str]:
        """The columns of a relation's key that a row of the other leaves open."""
        roots = {equal.of((other, column)) for column in self._has(other)} | {_CONSTANT}
        given = self._given(alias, roots, equal)
        return sorted(_key(self.relations[alias]) - given)

    def named(self) -> dict[str, list[str]]:
        """The names of programs that its WHERE chooses, as workload or module('NAME'), by alias."""
        found: dict[str, list[str]] = {}
        for part in _conjuncts(self.node.get("where_clause")):
            if part.get("type") not in _EQUAL | {"COMPARE_IN"}:
                continue
            chosen, *others = part.get("children") or (part["left"], part["right"])
            if (column := self.column(chosen)) is None:
                continue
            for other in others:
                calls = [node for node in descendants(other) if _name(node) == "module"]
                of_module = calls[0]["arguments"][0]["expression"] if calls else {}
                literal = (other if column[1] == "workload" else of_module).get("literal", {})
                if literal.get("kind") == "STRING":
                    found.setdefault(column[0], []).append(literal["text"])
        return found

    def compares(self) -> bool:
        """Whether it sets bytes of one program against bytes of another."""
        equal = self.equal()
        for node in self._expressions():
            name = _name(node)
            if name in _NEIGHBOURS and any(_is_bytes(c) for _, c in self.columns(node)):
                return True
            if name in ("-", "/") and len(node.get("arguments", ())) == 2:
                left, right = node["arguments"]
            elif node.get("type") in _COMPARED:
                left, right = node["left"], node["right"]
            else:
                continue
            ours, theirs = _figures(left, self), _figures(right, self)
            for (here, column), (there, other) in ((a, b) for a in ours for b in theirs):
                same = ("dump_id", "module_id")
                is_one = here == there or any(
                    equal.of((here, key)) == equal.of((there, key)) for key in same
                )
                is_summary = _is_summary(left) and _is_summary(right) and column == other
                if not is_one or is_summary:
                    return True
        return False


def _figures(tree: Any, select: _Select) -> set[Column]:
    """The columns of bytes in an expression; those of its subqueries are of the relation `?`."""
    ours = set(select.columns(tree))
    names = [str(node["column_names"][-1]) for node in descendants(tree) if "column_names" in node]
    inner = {("?", name) for name in names if not any(name == column for _, column in ours)}
    is_inner = any(node.get("type") == "SUBQUERY" for node in descendants(tree))
    return {column for column in ours | (inner if is_inner else set()) if _is_bytes(column[1])}


def _is_summary(tree: Any) -> bool:
    return any(map(_is_aggregate, descendants(tree)))


def _is_aggregate(node: Node) -> bool:
    return node.get("class") == "WINDOW" or _name(node) in _SUMS | {
        "any_value", "arg_max", "arg_min", "count", "count_star", "first", "last", "list", "max",
        "max_by", "median", "min", "min_by", "mode", "quantile_cont", "string_agg",
    }  # fmt: skip


def _name(node: Node) -> str:
    return str(node.get("function_name", "")).lower()


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    """The conditions that all must hold."""
    if condition is None:
        return
    if condition["type"] == "CONJUNCTION_AND":
        for child in condition["children"]:
            yield from _conjuncts(child)
    else:
        yield condition


def _children(node: Node) -> Iterator[Node]:
    for value in node.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict):
                yield child
