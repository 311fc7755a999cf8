"""Why a module differs from one run to another, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .cells import counted, human_bytes

# A change of what is kept for backward is a cause from this share of all changes on.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Dump:
    """A dump as `diff` compares it; the columns are those of `dumps` and `modules`."""

    run_id: str
    workload: str
    module_name: str
    occurrence: int
    status: str
    oom: bool
    module_id: int | None
    flags_id: int | None
    compiler: str | None
    device_kind: str | None
    entry_signature: str | None

    @property
    def name(self) -> str:
        """The series as a user knows it."""
        number = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.workload}/{self.module_name}{number}"


def causes(
    a: Dump | None,
    b: Dump | None,
    metrics: Sequence[dict[str, Any]],
    flags: int,
    buffers: Sequence[dict[str, Any]],
) -> list[str]:
    """What else differs between the two, the likeliest cause first.

    metrics: memory_space, metric, a_bytes, b_bytes, change_bytes; flags: how many differ;
    buffers: those of `ModuleDiff`.
    """
    if a is None or b is None:
        return [f"only in {dump.run_id}" for dump in (a, b) if dump is not None]
    found = []
    for dump in (a, b):
        if dump.oom:
            found.append(f"in {dump.run_id} XLA ran out of memory")
        if dump.status != "ok":
            found.append(f"the dump of {dump.run_id} is {dump.status}: see `dump_files`")
    # A dump that failed has no signature to differ.
    if None not in (a.module_id, b.module_id) and a.entry_signature != b.entry_signature:
        found.append("the shapes of arguments or results differ")
    found += _donation(metrics)
    found += _rematerialisation(buffers)
    if a.compiler != b.compiler:
        found.append(f"the compiler differs: {a.compiler} and {b.compiler}")
    if flags:
        found.append(f"{flags} compiler flags differ")
    if a.device_kind != b.device_kind:
        found.append(f"the device differs: {a.device_kind} and {b.device_kind}")
    if not found and a.module_id != b.module_id:
        found.append("the program differs; arguments, results, compiler and flags do not")
    return found


def _donation(metrics: Sequence[dict[str, Any]]) -> list[str]:
    """Whether arguments came to be donated, or are no longer: that shows in alias_bytes."""
    for row in metrics:
        if row["memory_space"] == 0 and row["metric"] == "alias_bytes":
            if not row["b_bytes"]:
                return ["the arguments are no longer donated"]
            if not row["a_bytes"]:
                return ["the arguments are now donated"]
            return [f"{'more' if row['change_bytes'] > 0 else 'less'} of the arguments is donated"]
    return []


def _rematerialisation(buffers: Sequence[dict[str, Any]]) -> list[str]:
    """How many residuals are now kept for backward, or now rematerialised, if that matters."""
    found = []
    there = [row for row in buffers if row["memory_space"] == 0]
    least = _LEAST_SHARE * sum(abs(row["change_bytes"]) for row in there)
    for what in ("now kept for backward", "now rematerialised"):
        rows = [row for row in there if row["what"] == what]
        change = sum(row["change_bytes"] for row in rows)
        if rows and abs(change) >= least:
            residuals = counted(sum(row["residuals"] for row in rows), "residual")
            sign = "+" if change > 0 else ""
            found.append(f"{what}: {residuals}, {sign}{human_bytes(change)}")
    return found
