"""A module that was read or recorded, with its figures as values: for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..advice.advice import Advice
from ..advice.advise import advise
from ..report.cell_charts import with_timeline, with_treemap
from ..report.page import Report
from ..schema import arrow
from ..schema.readable import human_bytes
from ..schema.store import Batch, Store
from .buffers import buffers
from .diff import ModuleDiff, diff
from .donations import donations
from .kernels import kernels
from .owners import Roles, owners
from .peaks import peaks
from .result import Rows
from .timeline import timeline

# The name of the dump's run beside the module.
_RUN = "before"
# A diff does not ask for these, or the store fills them.
_LEFT_OUT = {
    *("accepted_changes", "causes", "dump_series", "file_sets"),
    *("oom_buffers", "oom_reports", "run_labels"),
}


class ReadModule:
    """One module in memory; each method returns what the warehouse's method of its name does.

    name: the HLO module's name; platform: cpu, gpu or tpu, None if nothing says it; origin:
    dumped, derived or `estimated`, without a buffer assignment; source: what the figures were
    read from; notes: what to know about them.
    """

    def __init__(self, store: Store, source: str, notes: Sequence[str] = ()) -> None:
        self._store = store
        (found,) = store.rows(
            "SELECT module_id, module_name, origin, platform"
            " FROM modules INNER JOIN dumps USING (module_id, module_name)"
        ).to_pylist()
        self._module: int = found["module_id"]
        self.name: str = found["module_name"]
        self.origin: str | None = found["origin"]
        self.platform: str | None = found["platform"]
        self.source = source
        self.notes = list(notes)

    def __repr__(self) -> str:
        peaks = ", ".join(
            f"{'≈ ' if self.origin == 'estimated' else ''}{human_bytes(row['peak_bytes'])}"
            f" of {row['space']}"
            for row in self.peaks().arrow().to_pylist()
            if row["peak_bytes"] is not None
        )
        way = "estimated from" if self.origin == "estimated" else "from"
        return f"<{self.name}: {peaks or 'nothing known'} at the peak, {way} the {self.source}>"

    def peaks(self) -> Rows:
        """What the module needs at its peak, a row a memory space."""
        return peaks(self._store)

    def owners(
        self,
        memory_space: int = 0,
        limit: int | None = None,
        *,
        by: str | None = None,
        schedule_time: int | None = None,
        callers: int = 0,
        roles: Roles | None = None,
    ) -> Rows:
        """Who owns the memory at the peak, or at a time of the schedule."""
        found = owners(
            self._store,
            self._module,
            by=by,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            roles=roles,
            limit=limit,
        )
        return with_treemap(found, self._store, self._module, None, memory_space, schedule_time)

    def buffers(
        self,
        memory_space: int = 0,
        schedule_time: int | None = None,
        limit: int | None = None,
        *,
        callers: int = 0,
    ) -> Rows:
        """The buffers that fill the memory at the peak, or at a time of the schedule."""
        return buffers(
            self._store,
            self._module,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            limit=limit,
        )

    def advise(self, memory_space: int = 0, target_saving: str | int | None = None) -> Advice:
        """What to change first, and by how much the peak would fall; see `Warehouse.advise`."""
        return advise(
            self._store, self._module, memory_space=memory_space, target_saving=target_saving
        )

    def donations(self, memory_space: int = 0, limit: int | None = None) -> Rows:
        """Which arguments could be donated, or are donated for nothing."""
        return donations(self._store, self._module, memory_space=memory_space, limit=limit)

    def kernels(self) -> Rows:
        """What kernels reserve for themselves on TPU, beside how much each may."""
        return kernels(self._store, self._module)

    def timeline(self, memory_space: int = 0) -> Rows:
        """How full the memory is over the schedule."""
        found = timeline(self._store, self._module, memory_space=memory_space)
        return with_timeline(found, self._store, self._module, None, memory_space)

    def changes_since(self, warehouse: Store, dump_id: int) -> ModuleDiff:
        """What changed since a dump of a warehouse, by buffer, and why.

        The dump is in the store in memory meanwhile, because a diff and its cause need both in one.
        """
        (dump,) = warehouse.rows(
            "SELECT module_id, run_id, flags_id FROM dumps WHERE dump_id = $1", [dump_id]
        ).to_pylist()
        if dump["module_id"] != self._module:
            rows = _rows(warehouse, {"dump_id": dump_id, **dump}, self._store)
            self._store.write(Batch(dict(rows)))
        try:
            (found,) = diff(self._store, str(dump["module_id"]), str(self._module)).modules
        finally:
            self._store.delete_runs([_RUN])
        return found

    def report(self, memory_space: int = 0) -> Report:
        """The module as charts and tables: `.save(path)` writes a page, a notebook shows it."""
        from ..report.module_report import module_report

        return module_report(self._store, self._module, None, memory_space)

    def _repr_html_(self) -> str:
        return with_timeline(self.peaks(), self._store, self._module, None, 0)._repr_html_()


def _rows(
    warehouse: Store, ids: dict[str, object], memory: Store
) -> Iterator[tuple[str, pa.Table]]:
    """The dump's rows of each table, by the first key of its that the table has."""
    for table in arrow.tables():
        names = arrow.schema(table).names
        key = next((name for name in ids if name in names), None)
        if key is None or table in _LEFT_OUT:
            continue
        if table == "compiler_flags" and _has_flags(memory, ids["flags_id"]):
            continue
        columns = ", ".join(f'"{name}"' for name in names)
        rows = warehouse.rows(
            f"SELECT {columns} FROM {arrow.sql_name(table)} WHERE {key} = $1", [ids[key]]
        )
        if "run_id" in names:
            runs = pa.array([_RUN] * len(rows), pa.string())
            rows = rows.set_column(names.index("run_id"), "run_id", runs)
        yield table, rows


def _has_flags(memory: Store, flags_id: object) -> bool:
    query = "SELECT 1 FROM compiler_flags WHERE flags_id = $1"
    return len(memory.rows(query, [flags_id])) > 0
