"""What `check` says of a program, and what users accepted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...schema.stores.base import Batch, Store
from ..catalogue import statement
from .policy import Outcome as Failing

# What `check` says of a program.

# Why a program without figures is not judged.
NO_FIGURES = "no figures"
Outcome = Literal["pass", "warn", "fail", "not judged"]
Status = Literal[
    "grown",
    "shrunk",
    "changed",
    "unchanged",
    "renamed",
    "new",
    "first",
    "gone",
    "missing",
    "failed",
    "unmeasured",
]


@dataclass(frozen=True)
class Breach:
    """A rule that a program breaks.

    metric, value: what `--accept` records, so that the program passes; None if nothing helps.
    """

    text: str
    metric: str | None = None
    value: int | None = None
    outcome: Failing = "fail"


@dataclass(frozen=True)
class Verdict:
    """What is said of one program. Sizes are bytes.

    status: grown, shrunk; changed (another program of the same size), unchanged, renamed; new,
    first (there is nothing to hold it against), gone, missing (with its host, or with all
    programs of the run), failed, or unmeasured (it has no figures, or what it is held against has
    none); host: of a program that is missing; not_judged: why no rule could judge it, None if one
    did. breaches: the rules that it breaks. held_against: the run with before_bytes: the one
    before, or where only a creep breaks a rule, the lowest;
    lowest_bytes, lowest_run_id: the lowest since the last accepted growth; cause: why the
    program differs from the one it is held against; accepted_reason: why it passes though it
    breaks a rule; names_platform: another platform has a program of this name.
    """

    workload: str
    module_name: str
    series_id: int
    series_number: int
    memory_space: int
    status: Status
    host: str | None = None
    platform: str | None = None
    names_platform: bool = False
    breaches: tuple[Breach, ...] = ()
    dump_id: int | None = None
    module_id: int | None = None
    program_id: int | None = None
    now_bytes: int | None = None
    before_bytes: int | None = None
    held_against: str | None = None
    held_dump_id: int | None = None
    held_module_id: int | None = None
    held_program_id: int | None = None
    lowest_bytes: int | None = None
    lowest_run_id: str | None = None
    cause: str | None = None
    accepted_reason: str | None = None
    origin: str | None = None
    not_judged: str | None = None

    @property
    def name(self) -> str:
        """The program as a user knows it."""
        number = f" #{self.series_number}" if self.series_number > 1 else ""
        estimated = " (estimated)" if self.origin == "estimated" else ""
        return f"{self.workload}/{self.module_name}{number}{self.platform_suffix}{estimated}"

    @property
    def platform_suffix(self) -> str:
        """The platform, as the name shows it: nothing if it tells nothing apart."""
        return f" ({self.platform})" if self.names_platform and self.platform else ""

    def fits(self, given: str, *, exactly: bool) -> bool:
        """Whether a user can mean the program by this name, or by a part of one."""
        whole = f"{self.workload}/{self.module_name}"
        names = {self.workload, self.module_name, whole, self.name, f"{whole} ({self.platform})"}
        return given in names if exactly else given in self.name

    @property
    def outcome(self) -> Outcome:
        """Whether the program passes, passes with a warning, fails, or is not judged."""
        found = {breach.outcome for breach in self.breaches}
        if found - {"pass"}:
            return "fail" if "fail" in found else "warn"
        return "pass" if self.not_judged is None else "not judged"

    @property
    def is_judged(self) -> bool:
        """Whether a rule could judge the program's figures."""
        return self.not_judged is None and self.status != "gone"

    @property
    def is_lost(self) -> bool:
        """Whether the program had figures in what it is held against, but cannot be judged now."""
        return self.outcome == "not judged" and (
            self.before_bytes is not None
            or self.status == "missing"
            # What XLA dumped before is only estimated now: its figures are not compared.
            or (self.status == "unmeasured" and self.origin == "estimated")
        )

    @property
    def change_bytes(self) -> int | None:
        """How much the figure grew."""
        if self.now_bytes is None or self.before_bytes is None:
            return None
        return self.now_bytes - self.before_bytes

    @property
    def matters(self) -> bool:
        """Whether there is something to say of the program."""
        return bool(
            self.breaches
            or self.accepted_reason
            or self.cause
            or self.not_judged == NO_FIGURES
            or self.status not in ("unchanged", "first", "changed")
        )

    @property
    def said(self) -> str:
        """The outcome and why, in words: `fail: grew by more than 1%`."""
        why = [breach.text for breach in self.breaches]
        if self.accepted_reason is not None:
            why.append(f"accepted: {self.accepted_reason}")
        if not why and (self.not_judged or self.status in ("new", "first", "renamed")):
            why.append(self.not_judged or self.status)
        return f"{self.outcome}: {'; '.join(why)}" if why else self.outcome

    def acceptable(self) -> dict[str, int]:
        """What `--accept` records of the program, by metric; nothing if it fails all the same.

        A program that found no room, or has no figures, cannot be accepted.
        """
        failing = [breach for breach in self.breaches if breach.outcome == "fail"]
        if any(breach.metric is None or breach.value is None for breach in failing):
            return {}
        return {b.metric: b.value for b in failing if b.metric is not None and b.value is not None}


# What users accepted: the values that `check` lets pass from then on.


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
