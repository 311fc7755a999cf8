"""What each module needs at its peak."""

from typing import Any

import pyarrow as pa

from ..schema.store import Store
from .modules import of_run_and_workload, or_no_runs, without_helpers
from .result import Rows, folded


def peaks(
    store: Store, *, run: str | None = None, workload: str | None = None, fold: bool = False
) -> Rows:
    """The rows of `Warehouse.peaks`."""
    found = of_run_and_workload(store, "peaks", run, workload)
    helpers = ""
    if fold:
        found, helpers = without_helpers(found)
        named = folded(found.to_pylist(), _program, lambda row: str(row["workload"]))
        rows = [{**row, "workload": name} for row, name in named]
        found = pa.Table.from_pylist(rows, schema=found.schema)
        if found["peak_upper_bytes"].null_count == len(found):
            found = found.drop_columns(["peak_upper_bytes"])
    shown = found.drop_columns(["platform", "status", "program_id"])
    if fold:
        shown = shown.drop_columns(["is_entry"])
    empty = or_no_runs(store, shown, "there are no such peaks")
    return Rows(shown, empty=empty, left_out=helpers)


def _program(row: dict[str, Any]) -> tuple[object, ...] | None:
    """What the rows of one program share, in one space of one run."""
    if row["program_id"] is None:
        return None
    names = ("run", "module", "platform", "status", "program_id", "memory_space")
    return tuple(row[name] for name in names)
