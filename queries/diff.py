"""What differs between two runs, or two modules: metrics, buffers, and the likely cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .catalogue import statement
from .diff_causes import Dump, causes
from .find_module import find_module
from .lists import run_names
from .owners import OWNERS
from .result import Result, Rows

BUFFER = "buffer"
# What the change can be summed by.
KINDS = (BUFFER, *OWNERS)


@dataclass(frozen=True)
class ModuleDiff(Result):
    """A module in A and in B; either is None where it is missing.

    rows: what changes at the peaks, in all memory spaces: memory_space and change_bytes, which
    add up to the change of peak_bytes, and more. By buffer: what (grew, came and so on), a_bytes,
    b_bytes, shape, source, op_name, scope, operation, pass, role, category, residuals and layers
    (of what is now kept for backward, or now rematerialised), value (B's, if B has it), a_value,
    opcode, the times of both lives, is_guess. By anything else: the owner, a_bytes, b_bytes,
    a_buffers, b_buffers (counts).
    metrics: memory_space, metric, a_bytes, b_bytes, change_bytes; flags: flag, a_value, b_value;
    causes: what else differs, a sentence each.
    """

    name: str
    a: Dump | None
    b: Dump | None
    rows: Rows
    metrics: Rows
    flags: Rows
    causes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Both are there, and are the same module."""
        return (
            self.a is not None
            and self.b is not None
            and self.a.module_id == self.b.module_id
            and not len(self.flags)
        )

    def tables(self) -> tuple[Rows, ...]:
        """What differs: flags, metrics, buffers."""
        said = "the same" if self.is_same else "; ".join(self.causes)
        title = Rows(pa.table({}), f"{self.name}: {said}", "")
        return (title, *(part for part in (self.flags, self.metrics, self.rows) if len(part)))


@dataclass(frozen=True)
class Diff(Result):
    """What differs from A to B: `modules`, and what changes in all of them as `rows`.

    rows has the columns of ModuleDiff.rows, and before them the module's name; by: see `diff`.
    """

    modules: tuple[ModuleDiff, ...]
    rows: Rows
    by: str

    def tables(self) -> tuple[Rows, ...]:
        """What differs, module by module."""
        return tuple(table for module in self.modules for table in module.tables())


def diff(store: Store, a: str, b: str, workload: str | None = None, by: str = BUFFER) -> Diff:
    """What differs from A to B, two runs (of one workload) or two modules.

    `by` is buffer, source, scope, op, dtype, pass, category or role. Raises UsageError.
    """
    if by not in KINDS:
        raise UsageError(f"invalid owner {by!r}: use {', '.join(KINDS)}", "by")
    found = [_diff_dumps(store, *pair, by) for pair in _pairs(store, a, b, workload)]
    empty = _changes(store, -1, -1, by)
    tables = [
        table.add_column(0, "module", pa.array([name] * len(table), pa.string()))
        for name, table in [("", empty), *((module.name, module.rows.arrow()) for module in found)]
    ]
    return Diff(tuple(found), Rows(pa.concat_tables(tables)), by)


def _pairs(
    store: Store, a: str, b: str, workload: str | None
) -> list[tuple[int | None, int | None]]:
    """The dumps of A beside those of B."""
    runs = set(run_names(store))
    if {a, b} <= runs:
        pairs = store.rows(statement("diff_pairs"), [a, b, workload]).to_pylist()
        return [(pair["a_dump_id"], pair["b_dump_id"]) for pair in pairs]
    if workload is not None:
        raise UsageError("--workload needs two runs")
    for name, other in ((a, b), (b, a)):
        if name in runs:
            raise UsageError(f"{name} is a run and {other} is not: give two runs or two modules")
    return [(find_module(store, a).dump_id, find_module(store, b).dump_id)]


def _diff_dumps(store: Store, a_dump_id: int | None, b_dump_id: int | None, by: str) -> ModuleDiff:
    """One module in A and B."""
    a, b = _dump(store, a_dump_id), _dump(store, b_dump_id)
    names = dict.fromkeys(dump.name for dump in (a, b) if dump is not None)
    flags = metrics = None
    a_module_id = b_module_id = -1
    if a is not None and b is not None:
        if None not in (a.flags_id, b.flags_id):
            flags = store.rows(statement("diff_flags"), [a.flags_id, b.flags_id])
        if a.module_id is not None and b.module_id is not None and a.module_id != b.module_id:
            a_module_id, b_module_id = a.module_id, b.module_id
            metrics = store.rows(statement("diff_metrics"), [a_module_id, b_module_id])
    buffers = _changes(store, a_module_id, b_module_id, BUFFER)
    rows = buffers if by == BUFFER else _changes(store, a_module_id, b_module_id, by)
    return ModuleDiff(
        " → ".join(names),
        a,
        b,
        Rows(rows),
        Rows(pa.table({}) if metrics is None else metrics),
        Rows(pa.table({}) if flags is None else flags),
        tuple(causes(a, b, _dicts(metrics), len(_dicts(flags)), buffers.to_pylist())),
    )


def _changes(store: Store, a_module_id: int, b_module_id: int, by: str) -> pa.Table:
    """What changes at the peaks from one module to another; nothing if their ids are -1."""
    if by == BUFFER:
        return store.rows(statement("diff_buffers"), [a_module_id, b_module_id])
    rows = store.rows(statement("diff_groups"), [a_module_id, b_module_id, by])
    return rows.rename_columns([OWNERS[by] if n == "owner" else n for n in rows.column_names])


def _dicts(rows: pa.Table | None) -> Sequence[dict[str, Any]]:
    return () if rows is None else rows.to_pylist()


def _dump(store: Store, dump_id: int | None) -> Dump | None:
    if dump_id is None:
        return None
    row = store.rows(statement("diff_dump"), [dump_id]).to_pylist()[0]
    return Dump(**{name: row[name] for name in Dump.__dataclass_fields__})
