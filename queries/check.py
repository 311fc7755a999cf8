"""The gate: is a run's memory within its thresholds?"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from ..schema.stores.duckdb import fetch
from ..schema.tables import accepted_changes
from .catalogue import command_query
from .thresholds import Limits, Policy


@dataclass(frozen=True)
class Verdict:
    """What is said of one series: `breaches` are why it fails, a phrase each.

    row: the columns of `commands/check.sql`.
    """

    row: dict[str, Any]
    breaches: tuple[str, ...]

    @property
    def name(self) -> str:
        """The series as a user knows it."""
        return f"{self.row['workload']}/{self.row['module_name']}"

    @property
    def is_acceptable(self) -> bool:
        """There is a value to accept: not of a program that found no room, or failed."""
        return self.row["now_bytes"] is not None and not self.row["oom"]

    @property
    def change_bytes(self) -> int | None:
        """How much the figure grew over its baseline."""
        now, baseline = self.row["now_bytes"], self.row["baseline_bytes"]
        return None if now is None or baseline is None else int(now - baseline)


def check_run(
    connection: sa.Connection,
    run_id: str,
    *,
    figure: str,
    memory_space: int,
    baseline: str | None,
    best: bool,
    policy: Policy,
) -> list[Verdict]:
    """Judge every series of a run. `figure` is one of FIGURES."""
    query = command_query("check").replace("{figure}", figure)
    rows = fetch(connection, query, [run_id, memory_space, baseline, best]).to_pylist()
    return [Verdict(row, tuple(_breaches(row, policy.limits(row["workload"])))) for row in rows]


def _breaches(row: dict[str, Any], limits: Limits) -> list[str]:
    found = []
    if row["oom"]:
        found.append("XLA ran out of memory")
    now, baseline = row["now_bytes"], row["baseline_bytes"]
    if now is None:
        # HLO text alone is a whole dump without figures: nothing to judge.
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


def accept(
    connection: sa.Connection, run_id: str, figure: str, verdicts: list[Verdict], reason: str
) -> None:
    """Record the values of these series as accepted; each has one, and fitted."""
    names = ("workload", "module_name", "platform", "occurrence", "memory_space")
    rows = [
        {name: verdict.row[name] for name in names}
        | {
            "run_id": run_id,
            "figure": figure,
            "accepted_bytes": verdict.row["now_bytes"],
            "reason": reason,
            "accepted_at": datetime.now(UTC),
        }
        for verdict in verdicts
    ]
    connection.execute(accepted_changes.insert(), rows)
