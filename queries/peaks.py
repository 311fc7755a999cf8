"""What each module needs at its peak."""

from typing import Any

import pyarrow as pa

from ..schema.store import Store
from .modules import of_run_and_workload, or_no_runs, without_helpers
from .questions import Run, Workload, question
from .result import Rows, folded


@question(example="memhouse peaks --workload llama-v5e", screen="peaks", tool="Peaks and headroom")
def peaks(store: Store, *, run: Run = None, workload: Workload = None, fold: bool = False) -> Rows:
    """Show each entry program's peak in each memory space, the largest first.

    Without --run, the latest of each series of runs. The same program of several workloads is
    one row. Helpers are a line: eager operations, initialisers and other programs that are small
    beside the workload's largest. csv and json have them all.

    Columns: workload, module, space (its name), peak_bytes, peak_high_bytes (of HLO text without a
    schedule: the peak in the worse of two orders, peak_bytes in the better one), total_bytes,
    headroom_bytes (of the device's memory, in memory space 0), run, padding_bytes,
    peak_instruction, memory_space (its number), is_entry (else it is a helper). With `fold`, the
    workloads of equal programs are one row, peak_high_bytes is left out where all programs are
    scheduled, and the helpers are `left_out`. Raises UsageError.
    """
    found = of_run_and_workload(store, "peaks", run, workload)
    helpers = ""
    if fold:
        found, helpers = without_helpers(found)
        named = folded(found.to_pylist(), _program, lambda row: str(row["workload"]))
        rows = [{**row, "workload": name} for row, name in named]
        found = pa.Table.from_pylist(rows, schema=found.schema)
        if found["peak_high_bytes"].null_count == len(found):
            found = found.drop_columns(["peak_high_bytes"])
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
