"""What changed in a module in memory since a dump of a warehouse."""

from collections.abc import Iterator

import pyarrow as pa

from ..schema import arrow
from ..schema.stores.base import Batch, Store
from .diff import ModuleDiff, diff

# The name of the dump's run beside the module.
_RUN = "before"
# A diff does not ask for these, or the store works them out anew.
_LEFT_OUT = {
    *("accepted_changes", "causes", "dump_files", "gone", "history", "lineages"),
    *("oom_buffers", "oom_reports", "run_labels"),
}


def changes_since(memory: Store, module_id: int, warehouse: Store, dump_id: int) -> ModuleDiff:
    """What differs from a dump of a warehouse to the module of a store in memory, by buffer.

    The dump is in the store in memory meanwhile, because a diff and its cause need both in one.
    """
    (dump,) = warehouse.rows(
        "SELECT module_id, run_id, flags_id FROM dumps WHERE dump_id = $1", [dump_id]
    ).to_pylist()
    if dump["module_id"] != module_id:
        memory.write(Batch(dict(_rows(warehouse, {"dump_id": dump_id, **dump}, memory))))
    try:
        (found,) = diff(memory, str(dump["module_id"]), str(module_id)).modules
    finally:
        memory.delete_runs([_RUN])
    return found


def _rows(
    warehouse: Store, ids: dict[str, object], memory: Store
) -> Iterator[tuple[str, pa.Table]]:
    """The dump's rows of each table, by the first key of its that the table has."""
    for table in arrow.stored_columns():
        names = arrow.schema(table).names
        key = next((name for name in ids if name in names), None)
        if key is None or table in _LEFT_OUT:
            continue
        if table == "compiler_flags" and _has_flags(memory, ids["flags_id"]):
            continue
        columns = ", ".join(f'"{name}"' for name in names)
        rows = warehouse.rows(f'SELECT {columns} FROM "{table}" WHERE {key} = $1', [ids[key]])
        if "run_id" in names:
            runs = pa.array([_RUN] * len(rows), pa.string())
            rows = rows.set_column(names.index("run_id"), "run_id", runs)
        yield table, rows


def _has_flags(memory: Store, flags_id: object) -> bool:
    query = "SELECT 1 FROM compiler_flags WHERE flags_id = $1"
    return len(memory.rows(query, [flags_id])) > 0
