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
from .result import Result, Rows


@dataclass(frozen=True)
class ModuleDiff(Result):
    """A module in A and in B; either is None where it is missing.

    rows: the buffers at the peaks that differ, in all memory spaces, with memory_space,
    change_bytes (they add up to the change of peak_bytes), what (grew, came and so on),
    a_bytes, b_bytes, category, value, source, op_name, shape, opcode, and the times of both
    lives; metrics: memory_space, metric, a_bytes, b_bytes, change_bytes; flags: flag, a_value,
    b_value; causes: what else differs, a sentence each.
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
    """What differs from A to B: `modules`, and the buffers of all of them as `rows`.

    rows has the columns of ModuleDiff.rows, and before them the module's name.
    """

    modules: tuple[ModuleDiff, ...]
    rows: Rows

    def tables(self) -> tuple[Rows, ...]:
        """What differs, module by module."""
        return tuple(table for module in self.modules for table in module.tables())


def diff(store: Store, a: str, b: str, workload: str | None = None) -> Diff:
    """What differs from A to B, two runs (of one workload) or two modules.

    Raises UsageError.
    """
    no_buffers = store.rows(statement("diff_buffers"), [-1, -1, 0])
    schema = pa.schema([("memory_space", pa.int32()), *no_buffers.schema])
    found = [_diff_dumps(store, *pair, schema) for pair in _pairs(store, a, b, workload)]
    rows = [
        {"module": module.name, **row}
        for module in found
        for row in module.rows.arrow().to_pylist()
    ]
    named = pa.schema([("module", pa.string()), *schema])
    return Diff(tuple(found), Rows(pa.Table.from_pylist(rows, schema=named)))


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


def _diff_dumps(
    store: Store, a_dump_id: int | None, b_dump_id: int | None, schema: pa.Schema
) -> ModuleDiff:
    """One module in A and B. `schema` is that of its buffers."""
    a, b = _dump(store, a_dump_id), _dump(store, b_dump_id)
    names = dict.fromkeys(dump.name for dump in (a, b) if dump is not None)
    flags = metrics = None
    buffers: list[dict[str, Any]] = []
    if a is not None and b is not None:
        if None not in (a.flags_id, b.flags_id):
            flags = store.rows(statement("diff_flags"), [a.flags_id, b.flags_id])
        modules = [a.module_id, b.module_id]
        if None not in modules and modules[0] != modules[1]:
            metrics = store.rows(statement("diff_metrics"), modules)
            for space in sorted(set(metrics["memory_space"].to_pylist())):
                found = store.rows(statement("diff_buffers"), [*modules, space])
                buffers += [{"memory_space": space, **row} for row in found.to_pylist()]
    return ModuleDiff(
        " → ".join(names),
        a,
        b,
        Rows(pa.Table.from_pylist(buffers, schema=schema)),
        Rows(pa.table({}) if metrics is None else metrics),
        Rows(pa.table({}) if flags is None else flags),
        tuple(causes(a, b, _dicts(metrics), len(_dicts(flags)))),
    )


def _dicts(rows: pa.Table | None) -> Sequence[dict[str, Any]]:
    return () if rows is None else rows.to_pylist()


def _dump(store: Store, dump_id: int | None) -> Dump | None:
    if dump_id is None:
        return None
    row = store.rows(statement("diff_dump"), [dump_id]).to_pylist()[0]
    return Dump(**{name: row[name] for name in Dump.__dataclass_fields__})
