"""What users accepted: the values that `check` lets pass from then on."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...schema.stores.base import Batch, Store
from ..catalogue import statement
from .verdict import Verdict


@dataclass(frozen=True)
class Value:
    """An accepted value of a series; place: of its run, in the order of all runs."""

    metric: str
    series_id: int
    dump_id: int
    run_id: str
    place: int
    accepted_bytes: int
    reason: str


@dataclass(frozen=True)
class Accepted:
    """The values that were accepted up to a run, the oldest first."""

    values: tuple[Value, ...]

    def among(self, metric: str, *series: int | None) -> list[Value]:
        """The values of a metric in these series."""
        return [v for v in self.values if v.metric == metric and v.series_id in series]

    def since(self, metric: str, series: int, held: int | None, place: int) -> Value | None:
        """The value accepted last in a series after the run at `place` that it is held against.

        Another series, of another lineage, is held against: then any value of its own counts.
        """
        found = [v for v in self.among(metric, series) if held != series or v.place > place]
        return found[-1] if found else None


def read_accepted(store: Store, run: str, memory_space: int) -> Accepted:
    """What was accepted in a memory space, up to a run."""
    rows = store.rows(statement("check_accepted"), [run, memory_space]).to_pylist()
    return Accepted(tuple(Value(**row) for row in rows))


def record_accepted(store: Store, run_id: str, verdicts: Sequence[Verdict], reason: str) -> None:
    """Store why the values that break a rule are accepted."""
    from ...schema import arrow, clock
    from ...schema.journal import entries, entry

    rows = [
        {
            "dump_id": verdict.dump_id,
            "memory_space": verdict.memory_space,
            "metric": metric,
            "accepted_bytes": value,
            "reason": reason,
            "accepted_at": clock.now(),
        }
        for verdict in verdicts
        for metric, value in sorted(verdict.acceptable().items())
    ]
    if rows:
        told = entries(*(entry("accept", f"{v.name}: {reason}", run_id) for v in verdicts))
        store.write(Batch({"accepted_changes": arrow.rows("accepted_changes", rows), **told}))
