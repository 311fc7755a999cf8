"""The answers of the tool `diff`: one module in full, or a row per module."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ..queries.diff import ModuleDiff, largest_changes
from .answer import Answer, Part, exact_size
from .rows import in_memory_space, pick, without_layouts

_MAX_CAUSES = 4
_MAX_CHANGES = 12


def modules_answer(modules: Sequence[ModuleDiff], memory_space: int, notes: list[str]) -> Answer:
    """The change of the peak and the cause, a row per module, the largest change first."""
    changes = [(_peak_change(module, memory_space), module) for module in modules]
    changes.sort(key=lambda change: -abs(change[0] or 0))
    columns = {
        "module": pa.array([module.name for _, module in changes], pa.string()),
        "peak_change_bytes": pa.array([change for change, _ in changes], pa.int64()),
        "cause": pa.array([module.cause for _, module in changes], pa.string()),
    }
    return Answer(notes, {"modules": Part(pa.table(columns), "nothing differs")}, "give workload")


def module_answer(module: ModuleDiff, by: str, memory_space: int, notes: list[str]) -> Answer:
    """Causes, changes, totals and flags of one module.

    Args:
        by: what the changes are summed by; "buffer" for single tensors.
    """
    parts = {"causes": Part(module.causes.table.slice(0, _MAX_CAUSES))} if module.causes else {}
    parts["changes"] = _changes(module, by, memory_space)
    if len(module.metrics):
        columns = ["metric", "a_bytes", "b_bytes", "change_bytes"]
        parts["figures"] = pick(in_memory_space(module.metrics, memory_space), columns)
    if len(module.flags):
        parts["flags"] = Part(module.flags.table)
    sentences = [module.name, module.cause]
    if (change := _peak_change(module, memory_space)) is not None:
        sentences.append(f"the peak changes by {exact_size(change)}")
    return Answer([*sentences, *notes], parts, "sum them with by=source or by=pass")


def _changes(module: ModuleDiff, by: str, memory_space: int) -> Part:
    """The largest changes at the peak, in a row each, and the sum of the others."""
    rows = in_memory_space(module.rows, memory_space)
    rows = replace(rows, table=largest_changes(rows.table, _MAX_CHANGES))
    if by == "buffer":
        columns = ["change_bytes", "what", "shape", "source"]
        return pick(without_layouts(rows), [*columns, "operation", "pass", "role", "category"])
    return pick(rows, [name for name in rows.table.column_names if name != "memory_space"])


def _peak_change(module: ModuleDiff, memory_space: int) -> int | None:
    """The change of the peak; 0 if only other metrics change, None if none is known to change."""
    metrics = module.metrics.table.to_pylist()
    for row in metrics:
        if row["metric"] == "peak_bytes" and row["memory_space"] == memory_space:
            return row["change_bytes"]  # type: ignore[no-any-return]
    return 0 if metrics else None
