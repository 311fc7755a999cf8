"""The gate: is a run's memory within its thresholds?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.stores.base import Batch, Store
from .arguments import metric_column
from .catalogue import statement
from .lists import require_runs
from .result import Result, Rows
from .thresholds import Limits, Policy
from .trends import what_changed

_ROWS = pa.schema(
    [
        ("module", pa.string()),
        ("before_bytes", pa.int64()),
        ("now_bytes", pa.int64()),
        ("change_bytes", pa.int64()),
        ("held_against", pa.string()),
        ("changed", pa.string()),
        ("verdict", pa.string()),
    ]
)


@dataclass(frozen=True)
class Verdict:
    """What is said of one series. Sizes are bytes.

    baseline_bytes: what now_bytes is held against, None if there is nothing; held_against:
    the run that has it, or `best so far`; before_run_id: the run before; accepted_reason: why
    the baseline was accepted, where it was; changed: what else differs from the baseline;
    breaches: why the series fails, a phrase each; origin: as in `modules`.
    """

    workload: str
    module_name: str
    series_id: int
    memory_space: int
    oom: bool
    now_bytes: int | None
    baseline_bytes: int | None
    held_against: str | None
    before_run_id: str | None
    accepted_reason: str | None
    changed: tuple[str, ...]
    breaches: tuple[str, ...]
    origin: str | None

    @property
    def name(self) -> str:
        """The series as a user knows it."""
        estimated = " (estimated)" if self.origin == "estimated" else ""
        return f"{self.workload}/{self.module_name}{estimated}"

    @property
    def is_acceptable(self) -> bool:
        """There is a value to accept: not of a program that found no room, or failed."""
        return self.now_bytes is not None and not self.oom

    @property
    def change_bytes(self) -> int | None:
        """How much the metric grew over its baseline."""
        if self.now_bytes is None or self.baseline_bytes is None:
            return None
        return self.now_bytes - self.baseline_bytes


@dataclass(frozen=True)
class Check(Result):
    """What is said of a run.

    rows: a row for each series that fails or changed, with module, before_bytes, now_bytes,
    change_bytes, held_against, changed, verdict (`pass`, or why it fails); verdicts: one a
    series; missing: series of the run before that the run lacks; unused: workloads that have
    limits, but that the run lacks.
    """

    run_id: str
    metric: str
    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    rows: Rows

    @property
    def breaches(self) -> tuple[Verdict, ...]:
        """The verdicts of the series that fail."""
        return tuple(verdict for verdict in self.verdicts if verdict.breaches)

    @property
    def passes(self) -> bool:
        """Whether every series is within its thresholds."""
        return not self.breaches


def check(
    store: Store,
    run: str | None = None,
    *,
    baseline: str | None = None,
    best: bool = False,
    policy: Policy,
    metric: str = "peak",
    memory_space: int = 0,
) -> Check:
    """Judge every series of a run, the latest unless it is named.

    Each is held against the run before, or the run `baseline`, or the `best` so far. Raises
    UsageError.
    """
    column = metric_column(metric)
    require_one_baseline(baseline, best)
    runs = require_runs(store, (run, "run"), (baseline, "baseline"))
    if not runs:
        raise UsageError("there are no runs to judge: see `memhouse ingest`")
    judged = run or runs[0]
    parameters = [judged, memory_space, baseline, best, column]
    found = store.rows(statement("check"), parameters).to_pylist()
    verdicts = tuple(_verdict(row, policy.limits(row["workload"])) for row in found)
    missing = store.rows(statement("missing_series"), [judged]).to_pylist()
    fail = sum(1 for verdict in verdicts if verdict.breaches)
    result = f"{fail} of {len(verdicts)} fail" if fail else f"all {len(verdicts)} pass"
    named = column.removesuffix("_bytes")
    return Check(
        judged,
        column,
        verdicts,
        tuple(f"{row['workload']}/{row['module_name']}" for row in missing),
        tuple(sorted(policy.workloads.keys() - {verdict.workload for verdict in verdicts})),
        Rows(_rows(verdicts), f"{named} memory of {judged}: {result}", "nothing changed"),
    )


def require_one_baseline(baseline: str | None, best: bool) -> None:
    """Raises UsageError if both are given."""
    if baseline is not None and best:
        raise UsageError("give a baseline or the best, not both", "baseline")


def accept(store: Store, result: Check, reason: str) -> Check:
    """Record the values that fail as accepted, and why; what is said of the run then.

    Only values that fitted can be accepted: a program that found no room still fails.
    """
    from ..schema import arrow

    accepted = [verdict for verdict in result.breaches if verdict.is_acceptable]
    rows = [
        {
            "run_id": result.run_id,
            "series_id": verdict.series_id,
            "memory_space": verdict.memory_space,
            "metric": result.metric,
            "accepted_bytes": verdict.now_bytes,
            "reason": reason,
            "accepted_at": datetime.now(UTC),
        }
        for verdict in accepted
    ]
    if rows:
        store.write(Batch({"accepted_changes": arrow.rows("accepted_changes", rows)}))
    verdicts = tuple(
        replace(verdict, breaches=()) if verdict in accepted else verdict
        for verdict in result.verdicts
    )
    return replace(result, verdicts=verdicts, rows=replace(result.rows, table=_rows(verdicts)))


def _verdict(row: dict[str, Any], limits: Limits) -> Verdict:
    return Verdict(
        workload=row["workload"],
        module_name=row["module_name"],
        series_id=row["series_id"],
        memory_space=row["memory_space"],
        oom=row["oom"],
        now_bytes=row["now_bytes"],
        baseline_bytes=row["baseline_bytes"],
        held_against=row["held_against"],
        before_run_id=row["before_run_id"],
        accepted_reason=row["accepted_reason"],
        changed=tuple(what_changed(row)),
        breaches=tuple(_breaches(row, limits)),
        origin=row["origin"],
    )


def _breaches(row: dict[str, Any], limits: Limits) -> list[str]:
    found = []
    if row["oom"]:
        found.append("XLA ran out of memory")
    now, baseline = row["now_bytes"], row["baseline_bytes"]
    if now is None:
        # HLO text alone is a whole dump without metrics: nothing to judge.
        return [*found, f"the dump is {row['status']}"] if row["status"] != "ok" else found
    if baseline is not None:
        found += [
            f"grew by more than {threshold.text}"
            for threshold in limits.max_growth
            if now - baseline > threshold.of(baseline)
        ]
    accepted = row["accepted_bytes"]
    if limits.max_bytes is not None and (accepted is None or now > accepted):
        device = row["device_memory_bytes"]
        if limits.max_bytes.is_percent and device is None:
            found.append("the dump does not say how much memory the device has")
        elif now > limits.max_bytes.of(device or 0):
            found.append(f"is over {limits.max_bytes.text}")
    return found


def _rows(verdicts: Sequence[Verdict]) -> pa.Table:
    """The series that fail or changed, those that fail first."""
    shown = [verdict for verdict in verdicts if verdict.breaches or verdict.change_bytes]
    rows = [
        {
            "module": verdict.name,
            "before_bytes": verdict.baseline_bytes,
            "now_bytes": verdict.now_bytes,
            "change_bytes": verdict.change_bytes,
            "held_against": verdict.held_against,
            "changed": ", ".join(verdict.changed),
            "verdict": "; ".join(verdict.breaches) or "pass",
        }
        for verdict in sorted(shown, key=lambda v: (not v.breaches, -(v.change_bytes or 0)))
    ]
    return pa.Table.from_pylist(rows, schema=_ROWS)
