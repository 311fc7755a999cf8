"""The two sides of a pair of dumps: all facts that causes are told from, fetched at once."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa

from .differing_pass import PassStep

Rows = Callable[[str, Sequence[object]], pa.Table]
# Figures by name, then by what they are of: see `xla/traits.py`.
Traits = Mapping[str, Mapping[str, int]]

# Labels of a run that name a version of the compiler.
VERSIONS = ("jax", "jaxlib", "libtpu", "xla")
_LAYOUT = re.compile(r"\{[^{}]*\}")
_ARRAY = re.compile(r"(\w+)\[([^]]*)\]")


@dataclass(frozen=True)
class Leaf:
    """An array in the arguments or the result.

    `name` is the framework's, None if not told; `shape` is without the layout; `donated` are
    the bytes of the argument that a result may take.
    """

    name: str | None
    number: int
    index: str
    shape: str
    layout: str
    size: int
    sharding: str | None
    donated: int

    @property
    def type(self) -> str:
        """The element type; of a tuple's shape all of it."""
        found = _ARRAY.fullmatch(self.shape)
        return found[1] if found else self.shape

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The array's dimensions, as XLA prints them."""
        found = _ARRAY.fullmatch(self.shape)
        return tuple(found[2].split(",")) if found and found[2] else ()


@dataclass(frozen=True)
class Part:
    """A part of the peak: a row of `peak_parts`, `pass_` is its column pass."""

    category: str
    role: str | None
    pass_: str | None
    owner: str | None
    operation: str | None
    shape: str | None
    source: str | None
    buffers: int
    counted_bytes: int


@dataclass(frozen=True)
class Side:
    """A dump: its row of `cause_dumps.sql`, its run's versions, its module's facts."""

    dump: Mapping[str, Any]
    versions: Mapping[str, str]
    traits: Traits
    arguments: Sequence[Leaf]
    results: Sequence[Leaf]
    parts: Sequence[Part] = ()
    passes: Sequence[PassStep] = ()

    def amount(self, trait: str, name: str = "") -> int:
        """One trait's amount; 0 if the module lacks it."""
        return self.traits.get(trait, {}).get(name, 0)


@dataclass(frozen=True)
class Flag:
    """A compiler flag that differs; a value is None where the flag is not set."""

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Pair:
    """Two dumps to compare."""

    a: Side
    b: Side
    flags: Sequence[Flag]

    def differs(self, column: str) -> bool:
        """Whether both sides know the column and differ in it."""
        values = (self.a.dump[column], self.b.dump[column])
        return None not in values and values[0] != values[1]

    @property
    def is_same_program(self) -> bool:
        """Whether both are known to be the same memory program."""
        a, b = self.a.dump, self.b.dump
        return any(a[key] is not None and a[key] == b[key] for key in ("module_id", "program_id"))

    @property
    def is_read_otherwise(self) -> bool:
        """Whether other readers read one program: XLA's own words of it are the same.

        What readers work out, such as program_id, cannot tell.
        """
        a, b = self.a.dump, self.b.dump
        said = ("reported_total_bytes", "schedule_length", "entry_signature", "compiler")
        return self.differs("reader_version") and all(
            a[key] == b[key] and (a[key] is not None or key == "compiler") for key in said
        )

    @property
    def has_modules(self) -> bool:
        """Whether both dumps could be read."""
        return None not in (self.a.dump["module_id"], self.b.dump["module_id"])

    @property
    def has_shapes(self) -> bool:
        """Whether both sides' arguments and results are known."""
        return all(side.arguments or side.results for side in (self.a, self.b))

    @property
    def has_traits(self) -> bool:
        """Whether both sides' traits are known."""
        return bool(self.a.traits and self.b.traits)

    @property
    def has_figures(self) -> bool:
        """Whether both sides' figures are known, and of one grade."""
        a, b = self.a.dump, self.b.dump
        is_known = None not in (a["peak_bytes"], b["peak_bytes"])
        return is_known and a["grade"] == b["grade"]

    @property
    def has_ledger(self) -> bool:
        """Whether both sides' figures and what they consist of are known."""
        return self.has_figures and bool(self.a.parts and self.b.parts)

    @property
    def peak(self) -> int:
        """The larger of both peaks."""
        return max(self.a.dump["peak_bytes"] or 0, self.b.dump["peak_bytes"] or 0)

    @property
    def work_ratio(self) -> float | None:
        """The work of the second side over that of the first; None if it is not known of both."""
        a, b = self.a.dump, self.b.dump
        if not a["flops"] or not b["flops"] or a["unknown_loops"] or b["unknown_loops"]:
            return None
        return float(b["flops"] / a["flops"])

    def change(self, column: str) -> int:
        """How much a figure of the main memory grew; 0 if a side lacks it."""
        values = (self.a.dump[column], self.b.dump[column])
        return 0 if None in values else values[1] - values[0]


def fetch(rows: Rows, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Pair]:
    """The pairs of dumps with their facts, each table read once for all."""
    dumps = _dumps(rows, pairs)
    known = [pair for pair in pairs if pair[0] in dumps and pair[1] in dumps]
    bare = {(a, b): Pair(_side(dumps[a]), _side(dumps[b]), ()) for a, b in known}
    modules = sorted(
        {
            side.dump["module_id"]
            for pair in bare.values()
            if pair.has_modules and pair.differs("module_id")
            for side in (pair.a, pair.b)
        }
    )
    traits, shapes = _traits(rows, modules), _shapes(rows, modules)
    parts = _parts(rows, modules)
    passes = _passes(rows, modules)
    versions = _versions(rows, sorted({dump["run_id"] for dump in dumps.values()}))
    flags = _flags(rows, bare.values())

    def side(dump: Mapping[str, Any]) -> Side:
        of_entry = shapes.get(dump["module_id"], {})
        return Side(
            dump,
            versions.get(dump["run_id"], {}),
            traits.get(dump["module_id"], {}),
            of_entry.get(False, ()),
            of_entry.get(True, ()),
            parts.get(dump["module_id"], ()),
            passes.get(dump["module_id"], ()),
        )

    return {
        (a, b): Pair(
            side(dumps[a]),
            side(dumps[b]),
            flags.get((dumps[a]["flags_id"], dumps[b]["flags_id"]), ()),
        )
        for a, b in known
    }


def _side(dump: Mapping[str, Any]) -> Side:
    return Side(dump, {}, {}, (), ())


def _dumps(rows: Rows, pairs: Sequence[tuple[int, int]]) -> dict[int, dict[str, Any]]:
    ids = sorted({dump for pair in pairs for dump in pair})
    return {dump["dump_id"]: dump for dump in rows(_sql("cause_dumps"), [ids]).to_pylist()}


def _versions(rows: Rows, runs: Sequence[str]) -> dict[str, dict[str, str]]:
    query = """SELECT * FROM run_labels
        WHERE key IN (SELECT UNNEST($1)) AND run_id IN (SELECT UNNEST($2))"""
    found: dict[str, dict[str, str]] = {}
    for row in rows(query, [list(VERSIONS), list(runs)]).to_pylist():
        found.setdefault(row["run_id"], {})[row["key"]] = row["value"]
    return found


def _traits(rows: Rows, modules: Sequence[int]) -> dict[int, dict[str, dict[str, int]]]:
    found: dict[int, dict[str, dict[str, int]]] = {}
    if modules:
        query = "SELECT * FROM internal.traits WHERE module_id IN (SELECT UNNEST($1))"
        for row in rows(query, [list(modules)]).to_pylist():
            of_module = found.setdefault(row["module_id"], {})
            of_module.setdefault(row["trait"], {})[row["name"]] = row["amount"]
    return found


def _passes(rows: Rows, modules: Sequence[int]) -> dict[int, list[PassStep]]:
    found: dict[int, list[PassStep]] = {}
    if modules:
        query = """SELECT module_id, step, pipeline, compiler_pass, digest FROM compiler_passes
            WHERE module_id IN (SELECT UNNEST($1)) ORDER BY module_id, step"""
        for row in rows(query, [list(modules)]).to_pylist():
            found.setdefault(row.pop("module_id"), []).append(PassStep(**row))
    return found


def _parts(rows: Rows, modules: Sequence[int]) -> dict[int, list[Part]]:
    parts: dict[int, list[Part]] = {}
    if modules:
        query = """SELECT module_id, category, role, pass, owner, operation, shape, source, buffers,
            counted_bytes FROM internal.peak_parts WHERE module_id IN (SELECT UNNEST($1))
            ORDER BY module_id, part"""
        columns = rows(query, [list(modules)]).to_pydict().values()
        for module_id, *values in zip(*columns, strict=True):
            parts.setdefault(module_id, []).append(Part(*values))
    return parts


def _shapes(rows: Rows, modules: Sequence[int]) -> dict[int, dict[bool, list[Leaf]]]:
    found: dict[int, dict[bool, list[Leaf]]] = {}
    if modules:
        for row in rows(_sql("cause_shapes"), [list(modules)]).to_pylist():
            leaf = Leaf(
                row["argument_name"],
                row["parameter_number"] or 0,
                "" if row["shape_index"] == "{}" else row["shape_index"],
                _LAYOUT.sub("", row["shape"]),
                row["shape"],
                row["padded_bytes"] or 0,
                row["sharding"],
                row["donated_bytes"] or 0,
            )
            found.setdefault(row["module_id"], {}).setdefault(row["is_output"], []).append(leaf)
    return found


def _flags(rows: Rows, pairs: Iterable[Pair]) -> dict[tuple[int, int], list[Flag]]:
    sets = sorted(
        {
            (pair.a.dump["flags_id"], pair.b.dump["flags_id"])
            for pair in pairs
            # Options of the call are in a file of their own. A flag that only one side can
            # know is no change.
            if pair.differs("flags_id") and not pair.differs("has_call_options")
        }
    )
    found: dict[tuple[int, int], list[Flag]] = {}
    if sets:
        columns = [list(column) for column in zip(*sets, strict=True)]
        for row in rows(_sql("cause_flags"), columns).to_pylist():
            of_sets = found.setdefault((row["a_flags_id"], row["b_flags_id"]), [])
            of_sets.append(Flag(row["flag"], row["a_value"], row["b_value"]))
    return found


@cache
def _sql(name: str) -> str:
    return (resources.files(__package__) / f"{name}.sql").read_text(encoding="utf-8")
