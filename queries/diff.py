"""What differs between two runs, or two modules: metrics, buffers, and the likely cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.errors import UsageError
from ..schema.store import Store
from .arguments import nearest
from .catalogue import statement
from .modules import find_module, helpers_line
from .owners import OWNERS
from .result import Result, Rows, counted
from .runs import run_names

BUFFER = "buffer"
# What the change can be summed by.
KINDS = (BUFFER, *OWNERS)
# What is shown of a flag that a side does not set, as causes say it.
UNSET = "unset"
# Columns of changed_buffers that are not shown.
_MEMBERS = ("a_members", "b_members")

_DUMPS = """SELECT dump_id, run_id, workload, module_name, module_number, occurrence,
        dumps.module_id, flags_id, is_entry, peak_bytes
    FROM dumps INNER JOIN internal.entry_programs USING (dump_id)
    LEFT JOIN module_memory
        ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
    WHERE dump_id IN (SELECT UNNEST($1))"""


@dataclass(frozen=True)
class Dump:
    """A dump as `diff` compares it; the columns are those of `dumps`, and of `peaks` for HBM."""

    dump_id: int
    run_id: str
    workload: str
    module_name: str
    module_number: int | None
    occurrence: int
    module_id: int | None
    flags_id: int | None
    is_entry: bool
    peak_bytes: int | None

    @property
    def name(self) -> str:
        """The series as a user knows it."""
        number = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.workload}/{self.module_name}{number}"


@dataclass(frozen=True, repr=False)
class ModuleDiff(Result):
    """A module in A and in B; either is None where it is missing.

    rows: what changes at the peaks, in all memory spaces: memory_space and change_bytes, which
    add up to the change of peak_bytes, and more. By buffer: what (grew, came and so on), a_bytes,
    b_bytes, shape, source, op_name, scope, operation, pass, role, category, residuals and layers
    (of what is now kept for backward, or now rematerialised), value (B's, if B has it), a_value,
    opcode, the times of both lives, is_guess. By anything else: the owner, a_bytes, b_bytes,
    a_buffers, b_buffers (counts).
    metrics: memory_space, metric, a_bytes, b_bytes, change_bytes; flags: flag, a_value, b_value;
    cause: why it changed in one line, as `trends` and `check` say it; causes: its ledger, the rows
    of the table `causes`: change_bytes, term, source, role, kind.
    """

    name: str
    a: Dump | None
    b: Dump | None
    rows: Rows
    metrics: Rows
    flags: Rows
    cause: str
    causes: Rows

    @property
    def is_helper(self) -> bool:
        """No entry program of its workload, neither in A nor in B."""
        return not any(dump.is_entry for dump in (self.a, self.b) if dump is not None)

    @property
    def peak_bytes(self) -> int:
        """The larger peak of the two in main memory; 0 if neither is known."""
        return max((dump.peak_bytes or 0 for dump in (self.a, self.b) if dump), default=0)

    @property
    def is_same(self) -> bool:
        """Both are there and could be read, and are the same module."""
        return (
            self.a is not None
            and self.b is not None
            and self.a.module_id is not None
            and self.a.module_id == self.b.module_id
            and not len(self.flags)
        )

    @property
    def is_unchanged(self) -> bool:
        """The same, or the same but for what takes no memory."""
        return self.is_same or (
            self.cause == _SAME_BUT and not any(map(len, (self.flags, self.metrics, self.rows)))
        )

    @property
    def said(self) -> str:
        """What differs, in a line."""
        return "the same" if self.is_same else self.cause

    def tables(self) -> tuple[Rows, ...]:
        """What differs: causes, flags, metrics, buffers."""
        title = Rows(pa.table({}), f"{self.name}: {self.said}", "")
        parts = (self.causes, self.flags, self.metrics, self.rows)
        return (title, *(part for part in parts if len(part)))


# More modules that are unchanged are a count: a script compiles dozens beside its own program.
_MOST_UNCHANGED = 5
_SAME_BUT = "same but for names, lines or constants, or read from another source"
_Pair = tuple[Dump | None, Dump | None]


@dataclass(frozen=True, repr=False)
class Diff(Result):
    """What differs from A to B: `modules`, the largest first, and what changes in them as `rows`.

    rows has the columns of ModuleDiff.rows, and before them the module's name, and last whether it
    is_entry; by: see `diff`.
    """

    modules: tuple[ModuleDiff, ...]
    rows: Rows
    by: str

    @property
    def entries(self) -> tuple[ModuleDiff, ...]:
        """The modules that are an entry program in A or in B, or that were named."""
        return tuple(module for module in self.modules if not module.is_helper)

    @property
    def helpers(self) -> str:
        """What the other modules are, in a line; empty if there are none."""
        return helpers_line([each.peak_bytes for each in self.modules if each.is_helper])

    def sentences(self) -> tuple[str, ...]:
        """How many modules are unchanged, where they are too many to be listed, and the helpers."""
        unchanged = sorted(self._many().items())
        counts = [f"{counted(count, 'module')}: {said}" for said, count in unchanged]
        return (*counts, *filter(None, [self.helpers]))

    def listed(self) -> tuple[ModuleDiff, ...]:
        """The modules that `sentences` does not count."""
        many = self._many()
        return tuple(each for each in self.entries if not (each.is_unchanged and each.said in many))

    def tables(self) -> tuple[Rows, ...]:
        """What differs, module by module."""
        return tuple(table for module in self.listed() for table in module.tables())

    def _many(self) -> dict[str, int]:
        unchanged = Counter(module.said for module in self.entries if module.is_unchanged)
        return {said: count for said, count in unchanged.items() if count > _MOST_UNCHANGED}


def diff(store: Store, a: str, b: str, *, workload: str | None = None, by: str = BUFFER) -> Diff:
    """See `Warehouse.diff`."""
    if by not in KINDS:
        raise UsageError(f"invalid owner {by!r}: use {', '.join(KINDS)}", "by")
    pairs = _pairs(store, a, b, workload)
    both = [(a.dump_id, b.dump_id) for a, b in pairs if a is not None and b is not None]
    told = {(row["a_dump_id"], row["b_dump_id"]): row for row in store.causes(both).to_pylist()}
    # Asked once: the query takes 0.1 s to plan even where nothing differs.
    empty = _changes(store, -1, -1, by)
    found = [
        _diff_dumps(store, a, b, by, told.get((a and a.dump_id, b and b.dump_id)), empty)
        for a, b in pairs
    ]
    tables = [
        table.add_column(0, "module", pa.array([name] * len(table), pa.string())).append_column(
            "is_entry", pa.array([is_entry] * len(table), pa.bool_())
        )
        for name, is_entry, table in [
            ("", True, empty),
            *((module.name, not module.is_helper, module.rows.arrow()) for module in found),
        ]
    ]
    return Diff(tuple(found), Rows(pa.concat_tables(tables)), by)


def _pairs(store: Store, a: str, b: str, workload: str | None) -> list[_Pair]:
    """The dumps of A beside those of B, the largest first."""
    runs = set(run_names(store))
    if {a, b} <= runs:
        pairs = store.pairs(a, b).select(["a_dump_id", "b_dump_id"]).to_pylist()
        found = _dumps(store, [tuple(pair.values()) for pair in pairs])
        chosen = [
            pair
            for pair in found
            if workload is None or workload in {dump.workload for dump in pair if dump}
        ]
        if found and not chosen:
            named = sorted({dump.workload for pair in found for dump in pair if dump})
            known = ", ".join(named)
            raise UsageError(f"these runs have no workload {workload!r}: {known}", "workload")
        return sorted(chosen, key=_size_and_place)
    if workload is not None:
        raise UsageError("--workload needs two runs")
    for name, other in ((a, b), (b, a)):
        if name in runs:
            hint = nearest(other, runs) or "give two runs or two modules"
            raise UsageError(f"{name} is a run and {other} is not: {hint}")
    pairs = _dumps(store, [(find_module(store, a).dump_id, find_module(store, b).dump_id)])
    # What a user names is no helper.
    return [(replace(a, is_entry=True), replace(b, is_entry=True)) for a, b in pairs if a and b]


def _dumps(store: Store, pairs: Sequence[tuple[int | None, int | None]]) -> list[_Pair]:
    ids = sorted({dump for pair in pairs for dump in pair if dump is not None})
    found: dict[int | None, Dump | None] = {None: None}
    found |= {row["dump_id"]: Dump(**row) for row in store.rows(_DUMPS, [ids]).to_pylist()}
    return [(found[a], found[b]) for a, b in pairs]


def _size_and_place(pair: _Pair) -> tuple[int, str, int, int]:
    a, b = pair
    dump = b or a
    assert dump is not None
    peak = max(each.peak_bytes or 0 for each in pair if each is not None)
    return -peak, dump.workload, dump.module_number or 0, dump.dump_id


def _diff_dumps(
    store: Store,
    a: Dump | None,
    b: Dump | None,
    by: str,
    told: dict[str, Any] | None,
    unchanged: pa.Table,
) -> ModuleDiff:
    """One module in A and B; `told` is its row of `Store.causes`.

    unchanged: `_changes` where nothing differs.
    """
    names = dict.fromkeys(dump.name for dump in (a, b) if dump is not None)
    flags = metrics = None
    changes = unchanged
    if a is not None and b is not None:
        if None not in (a.flags_id, b.flags_id):
            flags = store.rows(
                statement("diff.flags"), [a.flags_id, b.flags_id, a.dump_id, b.dump_id]
            )
        if a.module_id is not None and b.module_id is not None and a.module_id != b.module_id:
            metrics = store.rows(statement("diff.metrics"), [a.module_id, b.module_id])
            if _lacks_figures(metrics, "a_bytes") or _lacks_figures(metrics, "b_bytes"):
                # What is not known is not 0: nothing grew or shrank to it.
                metrics = None
            else:
                changes = _changes(store, a.module_id, b.module_id, by)
    cause = _without_cause(a, b) if told is None or told["cause"] is None else told["cause"]
    return ModuleDiff(
        " → ".join(names),
        a,
        b,
        Rows(changes),
        Rows(pa.table({}) if metrics is None else metrics),
        Rows(pa.table({}) if flags is None else flags),
        cause,
        Rows(_ledger(told["terms"] if told is not None else None)),
    )


def _ledger(terms: Sequence[dict[str, Any]] | None) -> pa.Table:
    """The rows of `causes`, the columns in the order in which they are shown."""
    texts = [(name, pa.string()) for name in ("term", "source", "role", "kind")]
    return pa.Table.from_pylist(terms or [], pa.schema([("change_bytes", pa.int64()), *texts]))


def _lacks_figures(metrics: pa.Table, side: str) -> bool:
    """Whether one side has no peak in any memory space; `metrics` has what differs."""
    peaks = metrics.filter(pc.equal(metrics["metric"], "peak_bytes"))
    return len(peaks) > 0 and peaks[side].null_count == len(peaks)


def _without_cause(a: Dump | None, b: Dump | None) -> str:
    """What is to be said of dumps that differ in nothing that a cause could name."""
    if a is None or b is None:
        return "".join(f"only in {dump.run_id}" for dump in (a, b) if dump is not None)
    if a.module_id is None and b.module_id is None:
        return "both dumps failed"
    if a.module_id == b.module_id:
        return "the same program"
    return _SAME_BUT


def changed_buffers(store: Store, a_module_id: int, b_module_id: int) -> pa.Table:
    """What changes at the peaks by buffer: the columns of ModuleDiff.rows, and who is in a row.

    a_members, b_members: the row's buffers of A and of B, each allocation_index and value_id
    (null if nothing says what an allocation is for); a list that is empty is null.
    """
    return store.rows(statement("diff.buffers"), [a_module_id, b_module_id])


def with_sides(changes: pa.Table) -> pa.Table:
    """The rows with A and B in the columns' names as a person calls them."""
    return changes.rename_columns(
        [name.capitalize() if name[:2] in ("a_", "b_") else name for name in changes.column_names]
    )


def compared_figures(module: ModuleDiff) -> pa.Table:
    """The figures that differ, of A beside those of B, in all memory spaces."""
    rows = module.metrics.arrow()
    if not len(rows):
        return pa.table({"memory_space": pa.array([], pa.int64())})
    change, before = (rows[name].cast(pa.float64()) for name in ("change_bytes", "a_bytes"))
    ratio = pc.divide(change, pc.if_else(pc.equal(before, 0), None, before))
    return pa.table(
        {
            "memory_space": rows["memory_space"],
            "figure": pc.replace_substring_regex(rows["metric"], "_bytes$", ""),
            "A_bytes": rows["a_bytes"],
            "B_bytes": rows["b_bytes"],
            "change_bytes": rows["change_bytes"],
            "change_ratio": ratio,
        }
    )


def largest_changes(changes: pa.Table, most: int) -> pa.Table:
    """The first changes, and the others summed in one row, so that all still add up.

    Its first column that is not summed says how many they are. One more is a row of its own.
    """
    if len(changes) <= most + 1:
        return changes
    rest = changes.slice(most).to_pylist()
    last = pa.Table.from_pylist(summed_changes(rest), schema=changes.schema)
    return pa.concat_tables([changes.slice(0, most), last])


def summed_changes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for many changes; none for none."""
    if not rows:
        return []
    sums = {
        name: sum(row[name] or 0 for row in rows)
        for name in rows[0]
        if name.endswith(("_bytes", "_buffers"))
    }
    named = next(name for name in rows[0] if name not in ("memory_space", *sums))
    return [{**sums, named: counted(len(rows), "smaller change")}]


def changed_owners(
    store: Store, a_module_id: int, b_module_id: int, kinds: Sequence[str]
) -> dict[str, pa.Table]:
    """What changes at the peaks by each of `kinds`, all but buffer: the columns of ModuleDiff.rows.

    One query for all kinds: who is at the peaks takes longer to find than to sum.
    """
    rows = store.rows(statement("diff.groups"), [a_module_id, b_module_id, list(kinds)])
    return {
        by: rows.filter(pc.equal(rows["owned_by"], by))
        .drop_columns(["owned_by"])
        .rename_columns([OWNERS[by] if name == "owner" else name for name in rows.column_names[1:]])
        for by in kinds
    }


def _changes(store: Store, a_module_id: int, b_module_id: int, by: str) -> pa.Table:
    """What changes at the peaks from one module to another; nothing if their ids are -1."""
    if by == BUFFER:
        return changed_buffers(store, a_module_id, b_module_id).drop_columns(list(_MEMBERS))
    return changed_owners(store, a_module_id, b_module_id, [by])[by]
