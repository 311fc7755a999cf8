"""Judges the programs of a run: which rules each breaks, and what is said of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...schema import arrow, clock
from ...schema.causes.changes import READER_CHANGED
from ...schema.errors import UsageError
from ...schema.journal import entries, entry
from ...schema.metrics import METRICS
from ...schema.readable import command, human_bytes
from ...schema.store import Batch, Store
from ..catalogue import statement
from ..result import cause_of
from ..runs import default_branch
from .policy import DEFAULT_DRIFT, Limits, Policy, Threshold, Thresholds
from .policy import Outcome as Failing

# What `check` says of a program.

# Why a program without figures is not judged.
NO_FIGURES = "no figures"
# Why a program is not judged for which the workload is not run.
HELPER = "helper"
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
    did. breaches: the rules that it breaks. baseline_run: the run with before_bytes: the one
    before, or where only a drift breaks a rule, the lowest;
    lowest_bytes, lowest_run_id: the lowest since the last accepted growth; cause: why the
    program differs from the one it is held against; accepted_reason: why it passes though it
    breaks a rule; names_platform: another platform has a program of this name; metric: the figure
    that is judged; is_by_peak: it is the peak, because what the program reserves is not known.
    """

    workload: str
    module_name: str
    series_id: int
    series_number: int
    memory_space: int
    status: Status
    metric: str
    is_by_peak: bool = False
    host: str | None = None
    platform: str | None = None
    names_platform: bool = False
    breaches: tuple[Breach, ...] = ()
    dump_id: int | None = None
    module_id: int | None = None
    program_id: int | None = None
    now_bytes: int | None = None
    before_bytes: int | None = None
    baseline_run: str | None = None
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
    def is_helper(self) -> bool:
        """Whether neither it nor what it is held against is an entry program of its workload."""
        return self.not_judged == HELPER

    @property
    def is_judged(self) -> bool:
        """Whether a rule could judge the program's figures."""
        return self.not_judged is None and self.status != "gone"

    @property
    def is_lost(self) -> bool:
        """Whether the program had figures in what it is held against, but cannot be judged now."""
        return (
            self.outcome == "not judged"
            and not self.is_helper
            and (
                self.before_bytes is not None
                or self.status == "missing"
                # What XLA dumped before is only estimated now: its figures are not compared.
                or (self.status == "unmeasured" and self.origin == "estimated")
            )
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
        return not self.is_helper and bool(
            self.breaches
            or self.accepted_reason
            or self.cause
            or self.not_judged == NO_FIGURES
            or self.status not in ("unchanged", "first", "changed")
        )

    @property
    def said(self) -> str:
        """The outcome and why, in words: `fail: grew by more than 1% (max_growth)`."""
        why = [breach.text for breach in self.breaches]
        if self.accepted_reason is not None:
            why.append(f"accepted: {self.accepted_reason}")
        if not why and (self.not_judged or self.status in ("new", "first", "renamed")):
            why.append(self.not_judged or self.status)
        if self.is_by_peak:
            why.append("judged by its peak, as what it reserves is not known")
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
    rows = store.rows(statement("check.accepted"), [run, memory_space]).to_pylist()
    return Accepted(tuple(Value(**row) for row in rows))


def record_accepted(store: Store, run_id: str, verdicts: Sequence[Verdict], reason: str) -> None:
    """Store why the values that break a rule are accepted."""
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


# What a run is held against: its programs before, a run, another lineage, or the lowest.

_BRANCH = "branch="
_Row = dict[str, Any]


@dataclass(frozen=True)
class Against:
    """What the programs of a run are held against.

    held: the dump that each dump of the run follows, by dump_id, None if it is new; gone: the
    dumps that nothing of the run follows; is_first: there is nothing to hold the run against;
    run_id: the run that all are held against, None if each has its own; falls_back: a dump
    without figures stands for the last one before it that has figures; has_drift: the lowest is
    held against too, even if nobody asks; gone_fails: what is gone fails, unless limits.toml says
    otherwise; base_branch: the default lineage's branch, if the run is of another one; notes: what
    the user should know.
    """

    held: dict[int, int | None]
    gone: tuple[int, ...] = ()
    is_first: bool = False
    run_id: str | None = None
    falls_back: bool = True
    has_drift: bool = True
    gone_fails: bool = False
    base_branch: str | None = None
    notes: tuple[str, ...] = ()


def find_against(
    store: Store,
    run: str,
    programs: Sequence[_Row],
    baseline: str | None,
    named_default: str | None,
) -> Against:
    """What a run is held against; programs: the rows of `check.now`.

    baseline: a run, or `branch=NAME` for the newest run of a branch before this one. Without
    it, a run of the default lineage is held against the programs before, and any other run
    against its base: the default lineage's newest run before it. Raises UsageError.
    """
    lineages = store.rows(statement("check.lineages"), [run]).to_pylist()
    newest = {row["branch"]: row["newest_run_id"] for row in lineages}
    own = next(row["branch"] for row in lineages if row["is_judged"])
    if baseline is not None:
        named = _named(baseline, run, newest)
        against = _against_run(store, run, named, has_drift=False)
        if not against.gone and not any(against.held.values()):
            return _nothing(programs, f"run {named} has no programs")
        return against
    if named_default is not None:
        _require_branch(store, named_default)
    default = default_branch(newest, own) if named_default is None else named_default
    if own != default:
        base = newest.get(default)
        if base is not None:
            found = _against_run(store, run, base, falls_back=True)
            asleep = _asleep(store, base, programs, found.held)
            return replace(found, held={**found.held, **asleep}, base_branch=default)
        return _nothing(programs, f"there is no run of {_branch(default)} before it")
    last = newest[own]
    if last is None:
        # The branch with the most runs before it may be this one under its name of then.
        before = next((row for row in lineages if row["newest_run_id"] is not None), None)
        hints = [] if before is None else [_joining(run, own, before["branch"])]
        return _nothing(programs, f"first run of {_branch(own)}" if own else "first run", *hints)
    held = {
        row["dump_id"]: None
        if row["is_new"]
        else row["compared_dump_id"] or row["previous_dump_id"]
        for row in programs
    }
    gone = store.rows(statement("check.gone"), [run, last])["dump_id"].to_pylist()
    return Against(held, tuple(gone), gone_fails=True)


def _named(baseline: str, run: str, newest: dict[str, str | None]) -> str:
    """The run that a user's baseline means."""
    if not baseline.startswith(_BRANCH):
        if baseline == run:
            raise UsageError(f"{run} is the run to judge: name another run", "baseline")
        return baseline
    branch = baseline.removeprefix(_BRANCH)
    found = newest.get(branch)
    if found is None:
        raise UsageError(f"there is no run of {_branch(branch)} before {run}", "baseline")
    return found


def _against_run(
    store: Store, run: str, base: str, *, falls_back: bool = False, has_drift: bool = True
) -> Against:
    pairs = store.pairs(base, run).to_pylist()
    return Against(
        held={pair["b_dump_id"]: pair["a_dump_id"] for pair in pairs if pair["b_dump_id"]},
        gone=tuple(pair["a_dump_id"] for pair in pairs if pair["b_dump_id"] is None),
        run_id=base,
        falls_back=falls_back,
        has_drift=has_drift,
    )


def _asleep(
    store: Store, base: str, programs: Sequence[_Row], held: dict[int, int | None]
) -> dict[int, int]:
    """What programs follow that the base lacks, but its lineage has in an earlier run.

    A program is paired only if it is the only new one of its group, and one series of the group
    is left.
    """
    new = _by_group(row for row in programs if held.get(row["dump_id"]) is None)
    if not new:
        return {}
    paired = set(held.values())
    last = store.rows(statement("check.asleep"), [base]).to_pylist()
    left = _by_group(row for row in last if row["dump_id"] not in paired)
    return {
        dumps[0]: left[group][0]
        for group, dumps in new.items()
        if len(dumps) == 1 and len(left.get(group, [])) == 1
    }


def _by_group(rows: Iterable[_Row]) -> dict[tuple[str, str, str | None], list[int]]:
    found = defaultdict(list)
    for row in rows:
        found[row["workload"], row["module_name"], row["platform"]].append(row["dump_id"])
    return found


def _require_branch(store: Store, branch: str) -> None:
    """Raises UsageError if the branch that limits.toml names has no run."""
    there = store.rows(statement("runs.branches"))["branch"].to_pylist()
    if branch not in there:
        named = ", ".join(name for name in there if name) or "no run has the label branch"
        raise UsageError(f"baseline: there is no branch {branch!r}: {named}", "limits")


def _nothing(programs: Sequence[_Row], why: str, *hints: str) -> Against:
    said = f"{why}: nothing to hold it against; --baseline RUN names a run"
    held = dict.fromkeys(row["dump_id"] for row in programs)
    return Against(held, is_first=True, notes=(said, *hints))


def _joining(run: str, branch: str, before: str) -> str:
    """How a branch's first run gets the history of another branch."""
    if not branch:
        joining = command("label", run, f"{_BRANCH}{before}")
        return f"runs of {before}: {joining} joins them"
    rename = command("label", "--rename", f"{_BRANCH}{before}:{branch}")
    if not before:
        return f"runs without a branch are a history of their own: {rename} joins them"
    return f"if branch {branch} was called {before} before: {rename} carries its history over"


def _branch(name: str) -> str:
    return f"branch {name}" if name else "the runs without a branch"


# The rules of `check`: which of them a program breaks.

ALIAS, PEAK, RESERVED = "alias_bytes", "peak_bytes", "reserved_bytes"


def is_better_higher(metric: str) -> bool:
    """Whether more of a metric is better: then a fall breaks the rules."""
    return METRICS[metric].better == "higher"


@dataclass(frozen=True)
class Judged:
    """A program to judge. now: its row of `check.now`; held: what it is held against, a row of
    `check.held`; drift_is_on: a drift is judged even if the limits do not ask for it;
    base_branch: the default lineage's branch, if the program is held against its base."""

    now: _Row
    held: _Row | None
    metric: str
    limits: Limits
    accepted: Accepted
    drift_is_on: bool
    base_branch: str | None = None

    @property
    def has_baseline(self) -> bool:
        """Whether there are figures to hold the program against."""
        return self.held is not None and self.held["value"] is not None

    def floor(self, metric: str) -> Value | None:
        """The value accepted since the run that the program is held against."""
        if self.held is None:
            return None
        held_series, place = self.held["series_id"], self.held["place"]
        return self.accepted.since(metric, self.now["series_id"], held_series, place)

    def most_accepted(self, metric: str) -> Value | None:
        """The largest value that was ever accepted: it is within all limits."""
        held_series = None if self.held is None else self.held["series_id"]
        found = self.accepted.among(metric, self.now["series_id"], held_series)
        return max(found, key=lambda value: value.accepted_bytes, default=None)


def find_breaches(judged: Judged) -> tuple[list[Breach], bool]:
    """The rules that a program breaks, and whether only its drift breaks one."""
    now, limits = judged.now, judged.limits
    found = [Breach("XLA ran out of memory")] if now["oom"] else []
    if now["value"] is None and now["status"] != "ok":
        return [*found, Breach(f"the dump is {now['status']}")], False
    if (
        limits.new != "pass"
        and not judged.has_baseline
        and judged.most_accepted(judged.metric) is None
    ):
        found.append(Breach("new", judged.metric, now["value"], limits.new))
    if now["value"] is None:
        # HLO text alone is a whole dump without figures: nothing to judge.
        return found, False
    growth = _growth(judged)
    drift = [] if growth else _drift(judged)
    found += growth + drift
    absolute = _absolute(judged)
    if judged.metric != ALIAS:
        absolute += _lost_donation(judged)
    return found + absolute, bool(drift)


def find_waiver(judged: Judged, breaches: Sequence[Breach]) -> str | None:
    """Why the program passes though it breaks a rule: the reasons that were accepted."""
    if breaches or not judged.accepted.values:
        return None
    waived, _ = find_breaches(replace(judged, accepted=Accepted(())))
    reasons = [
        value.reason
        for metric in dict.fromkeys(breach.metric for breach in waived if breach.metric)
        if (value := judged.floor(metric) or judged.most_accepted(metric))
    ]
    return "; ".join(dict.fromkeys(reasons)) or None


def _growth(judged: Judged) -> list[Breach]:
    """Over the run that it is held against, or what was accepted since."""
    now, held, metric = judged.now["value"], judged.held, judged.metric
    if held is None or held["value"] is None:
        return []
    before = held["value"]
    if floor := judged.floor(metric):
        before = _worse(metric, before, floor.accepted_bytes)
    if is_better_higher(metric):
        peak = judged.now["peak_bytes"] or 0
        return [
            Breach(f"fell by more than {_of(limit, 'the peak')} (lost_donation)", metric, now)
            for limit in judged.limits.lost_donation
            if before - now > limit.of(peak)
        ]
    return [
        Breach(f"grew by more than {limit.text} (max_growth)", metric, now)
        for limit in judged.limits.max_growth
        if now - before > limit.of(before)
    ]


def _drift(judged: Judged) -> list[Breach]:
    """Over the lowest since the last accepted growth."""
    now, held, metric = judged.now["value"], judged.held, judged.metric
    if held is None or None in (held["least_bytes"], held["value"]):
        return []
    before, lowest, run = held["value"], held["least_bytes"], held["least_run_id"]
    if floor := judged.floor(metric):
        lowest, run = floor.accepted_bytes, floor.run_id
    verb = "fell" if is_better_higher(metric) else "grew"
    sign = -1 if is_better_higher(metric) else 1
    found = []
    for limit in _drift_limits(judged, lowest):
        text = f"{verb} by more than {limit.text} since {run} (max_drift)"
        if sign * (now - lowest) <= limit.of(lowest):
            continue
        # A pull request does not answer for what its base has.
        if judged.base_branch is not None and sign * (before - lowest) > limit.of(lowest):
            base = judged.base_branch or "the base"
            found.append(Breach(f"{base} already {text}", metric, now, "warn"))
        else:
            found.append(Breach(text, metric, now))
    return found


def _drift_limits(judged: Judged, lowest: int) -> Thresholds:
    """What a drift is held to. The default is never stricter than the limits of growth."""
    limits = judged.limits
    if limits.max_drift is not None:
        return limits.max_drift
    if not judged.drift_is_on or not limits.max_growth:
        return ()
    growth = min(limits.max_growth, key=lambda limit: limit.of(lowest))
    return (max(*DEFAULT_DRIFT, growth, key=lambda limit: limit.of(lowest)),)


def _lost_donation(judged: Judged) -> list[Breach]:
    """Arguments that were donated and are still there, but are no longer donated.

    Smaller arguments are donated less: that is not lost. So what counts is also how much more of
    the arguments is not donated.
    """
    now, held = judged.now, judged.held
    if held is None or None in (held[ALIAS], now[ALIAS], now["peak_bytes"]):
        return []
    donated, kept = held[ALIAS], held["argument_bytes"] - held[ALIAS]
    if floor := judged.floor(ALIAS):
        donated = min(donated, floor.accepted_bytes)
    lost = min(donated - now[ALIAS], now["argument_bytes"] - now[ALIAS] - kept)
    return [
        Breach(f"lost the donation of {human_bytes(lost)} (lost_donation)", ALIAS, now[ALIAS])
        for limit in judged.limits.lost_donation
        if lost > limit.of(now["peak_bytes"])
    ]


def _absolute(judged: Judged) -> list[Breach]:
    """Rules that need nothing to hold the program against."""
    now, limits, metric = judged.now, judged.limits, judged.metric
    found = []
    if not is_better_higher(metric):
        device = now["device_memory_bytes"]
        for limit in limits.max_bytes:
            if limit.is_percent and device is None:
                found.append(
                    Breach(
                        "the device's memory is not known (max_bytes): "
                        "see memhouse ingest --device-memory"
                    )
                )
            elif (
                limit.is_percent
                and metric in (PEAK, RESERVED)
                and now["reserved_bytes"] is not None
            ):
                # A program has to fit with all its allocations, not only with its peak.
                text = f"reserves more than {limit.text} (max_bytes)"
                most = limit.of(device or 0)
                found += _over(judged, RESERVED, now["reserved_bytes"], most, text)
            else:
                text = f"is over {limit.text} (max_bytes)"
                found += _over(judged, metric, now["value"], limit.of(device or 0), text)
    for limit in limits.max_padding:
        text = f"padding is over {_of(limit, 'the peak')} (max_padding)"
        most = limit.of(now["peak_bytes"] or 0)
        found += _over(judged, "padding_bytes", now["padding_bytes"], most, text)
    for limit in limits.max_scoped_bytes:
        text = f"a kernel takes more than {limit.text} (max_scoped_bytes)"
        found += _over(judged, "scoped_bytes", now["scoped_bytes"], limit.amount, text)
    return found


def _over(judged: Judged, metric: str, value: int | None, most: float, text: str) -> list[Breach]:
    """A breach if a value is over a limit, and over all that was accepted."""
    accepted = judged.most_accepted(metric)
    if (
        value is None
        or value <= most
        or (accepted is not None and value <= accepted.accepted_bytes)
    ):
        return []
    return [Breach(text, metric, value)]


def _worse(metric: str, a: int, b: int) -> int:
    return min(a, b) if is_better_higher(metric) else max(a, b)


def _of(limit: Threshold, whole: str) -> str:
    return f"{limit.text} of {whole}" if limit.is_percent else limit.text


# Why the programs of a run differ from those that they are held against.


def with_causes(
    store: Store, verdicts: Sequence[Verdict], programs: Sequence[dict[str, Any]]
) -> list[Verdict]:
    """The verdicts with their causes, each for the dump that it is held against.

    programs: the rows of `check.now`, which have the cause against the dump before.
    """
    told: dict[tuple[int, int], str | None] = {
        (row["compared_dump_id"], row["dump_id"]): row["cause"]
        for row in programs
        if row["compared_dump_id"] is not None
    }
    pairs = list(map(_pair, verdicts))
    asked = [pair for pair in pairs if pair is not None and pair not in told]
    if asked:
        rows = store.causes(asked).to_pylist()
        told |= {(row["a_dump_id"], row["b_dump_id"]): row["cause"] for row in rows}
    return [
        verdict if pair is None else replace(verdict, cause=told[pair])
        for verdict, pair in zip(verdicts, pairs, strict=True)
    ]


def _pair(verdict: Verdict) -> tuple[int, int] | None:
    """What a program is held against, and its dump; None if the two do not differ."""
    if verdict.status not in ("grown", "shrunk", "changed", "renamed"):
        return None
    if verdict.held_dump_id is None or verdict.dump_id is None:
        return None
    return verdict.held_dump_id, verdict.dump_id


# Judges the programs of a run: what each is held against, and which rules it breaks.


def judge(
    store: Store,
    run: str,
    programs: Sequence[_Row],
    against: Against,
    policy: Policy,
    column: str,
    memory_space: int,
    *,
    best: bool,
    judges_helpers: bool,
    fallback: str | None,
) -> list[Verdict]:
    """What is said of the programs of a run, and of those that are gone.

    programs: the rows of `check.now`, each with the metric that its value is of: `column`, or
    `fallback` where that is not known. No rule holds for a helper that stays one, comes or goes,
    unless `judges_helpers`.
    """
    held = _held(store, programs, against, column, memory_space, best=best, fallback=fallback)
    moved_by_reader = _moved_by_reader(store, programs, against, held)
    accepted = read_accepted(store, run, memory_space)
    has_drift = against.has_drift and not best
    _add_scoped(store, programs, policy)
    found = []
    for now in programs:
        limits = policy.limits(now["workload"])
        before = against.held.get(now["dump_id"])
        against_row = None if before is None else held[before]
        if against_row is not None:
            against_row = _as_read_now(now, against_row, moved_by_reader)
        judged = Judged(
            now, against_row, now["metric"], limits, accepted, has_drift, against.base_branch
        )
        verdict = _verdict(judged, memory_space, is_first=against.is_first)
        verdict = replace(verdict, is_by_peak=fallback == now["metric"])
        if judges_helpers or now["is_entry"] or (against_row and against_row["is_entry"]):
            found.append(verdict)
        else:
            found.append(replace(verdict, breaches=(), accepted_reason=None, not_judged=HELPER))
    found = [
        # What is reserved is the peak and what packing adds: said once of all.
        replace(verdict, cause=cause_of(verdict.cause, PEAK, memory_space))
        if verdict.metric == RESERVED
        else replace(verdict, cause=cause_of(verdict.cause, verdict.metric, memory_space))
        for verdict in with_causes(store, found, programs)
    ]
    hosts = set(store.rows(statement("runs.hosts"), [run])["host"].to_pylist())
    for dump_id in against.gone:
        gone = held[dump_id]
        if memory_space == 0 or gone["value"] is not None:
            limits = policy.limits(gone["workload"])
            missing = None if programs else "no programs"
            if gone["host"] is not None and gone["host"] not in hosts:
                missing = "its host is missing"
            verdict = _gone(gone, limits, memory_space, missing, fails=against.gone_fails)
            if not (judges_helpers or gone["is_entry"]):
                verdict = replace(verdict, breaches=(), not_judged=HELPER)
            found.append(verdict)
    return _with_platforms(found)


def _moved_by_reader(
    store: Store, programs: Sequence[_Row], against: Against, held: dict[int, _Row]
) -> set[tuple[int, int]]:
    """The pairs of dumps, held and now, whose figures differ only because readers did."""
    if len(store.rows(statement("check.reader_versions"))) < 2:
        return set()
    pairs = {
        (dump_id, now["dump_id"])
        for now in programs
        if (row := held.get(against.held.get(now["dump_id"]) or -1))
        for dump_id in (row["dump_id"], row["least_dump_id"])
        if dump_id is not None
    }
    causes = store.causes(sorted(pairs)).to_pylist()
    return {
        (row["a_dump_id"], row["b_dump_id"])
        for row in causes
        if any(term["kind"] == READER_CHANGED.kind for term in row["terms"])
    }


def _as_read_now(now: _Row, held: _Row, moved_by_reader: set[tuple[int, int]]) -> _Row:
    """What a program is held against; a figure that only a reader moved is today's."""
    if (held["dump_id"], now["dump_id"]) in moved_by_reader:
        held = held | {name: now[name] for name in ("value", ALIAS, "argument_bytes")}
    if (held["least_dump_id"], now["dump_id"]) in moved_by_reader:
        held = held | {"least_bytes": now["value"]}
    return held


def _with_platforms(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts; those of one name on several platforms name theirs."""
    platforms = defaultdict(set)
    for verdict in verdicts:
        platforms[verdict.workload, verdict.module_name].add(verdict.platform)
    return [
        replace(verdict, names_platform=True)
        if len(platforms[verdict.workload, verdict.module_name]) > 1
        else verdict
        for verdict in verdicts
    ]


def _held(
    store: Store,
    programs: Sequence[_Row],
    against: Against,
    column: str,
    memory_space: int,
    *,
    best: bool,
    fallback: str | None,
) -> dict[int, _Row]:
    """The rows of `check.held` by the dumps that are named, each with its metric."""
    asked: dict[str, dict[int, int | None]] = {column: dict.fromkeys(against.gone)}
    alone = set(against.gone)
    for row in programs:
        dump_id = against.held.get(row["dump_id"])
        if dump_id is not None:
            asked.setdefault(row["metric"], {})[dump_id] = row["grade"]
            if row["value"] is None:
                alone.add(dump_id)

    def ask(metric: str, dumps: dict[int, int | None]) -> dict[int, _Row]:
        parameters = [
            list(dumps),
            memory_space,
            metric,
            against.falls_back,
            best,
            is_better_higher(metric),
            list(dumps.values()),
        ]
        rows = store.rows(statement("check.held"), parameters).to_pylist() if dumps else []
        return {row["named_dump_id"]: {**row, "metric": metric} for row in rows}

    found = {id_: row for metric, of in asked.items() for id_, row in ask(metric, of).items()}
    if fallback is not None:
        # Nothing is compared with these.
        unknown = [id_ for id_ in alone if id_ in found and found[id_]["value"] is None]
        found |= ask(fallback, {id_: asked[column].get(id_) for id_ in unknown})
    return found


def _add_scoped(store: Store, programs: Sequence[_Row], policy: Policy) -> None:
    """Add scoped_bytes to the programs: the most that a kernel takes, if there is a limit on it."""
    asked = {
        row["module_id"] for row in programs if policy.limits(row["workload"]).max_scoped_bytes
    } - {None}
    rows = store.rows(statement("check.scoped"), [sorted(asked)]).to_pylist() if asked else []
    scoped = {row["module_id"]: row["scoped_bytes"] for row in rows}
    for row in programs:
        row["scoped_bytes"] = scoped.get(row["module_id"])


def _verdict(judged: Judged, memory_space: int, *, is_first: bool) -> Verdict:
    now, held = judged.now, judged.held
    status = _status(now, held, is_first=is_first)
    breaches, only_drift = find_breaches(judged)
    reason = find_waiver(judged, breaches)
    before = defaultdict(lambda: None) if held is None else held
    prefix = "least_" if only_drift else ""
    value = "least_bytes" if only_drift else "value"
    if only_drift:
        status = "grown" if now["value"] > before["least_bytes"] else "shrunk"
    return Verdict(
        workload=now["workload"],
        module_name=now["module_name"],
        platform=now["platform"],
        series_id=now["series_id"],
        series_number=now["series_number"],
        memory_space=memory_space,
        status=status,
        metric=judged.metric,
        breaches=tuple(breaches),
        dump_id=now["dump_id"],
        module_id=now["module_id"],
        program_id=now["program_id"],
        now_bytes=now["value"],
        before_bytes=before[value],
        baseline_run=before[f"{prefix}run_id"],
        held_dump_id=before[f"{prefix}dump_id"],
        held_module_id=before[f"{prefix}module_id"],
        held_program_id=before[f"{prefix}program_id"],
        lowest_bytes=before["least_bytes"],
        lowest_run_id=before["least_run_id"],
        accepted_reason=reason,
        origin=now["origin"],
        not_judged=None if now["oom"] or reason is not None else _not_judged(judged, status),
    )


def _not_judged(judged: Judged, status: Status) -> str | None:
    """Why no rule can judge a program."""
    if judged.now["value"] is None:
        return NO_FIGURES
    if judged.has_baseline or judged.limits.need_no_baseline:
        return None
    return "no figures before" if status == "unmeasured" else status


def _status(now: _Row, held: _Row | None, *, is_first: bool) -> Status:
    if now["oom"] or (now["value"] is None and now["status"] != "ok"):
        return "failed"
    if held is None:
        return "first" if is_first else "new"
    if None in (now["value"], held["value"]):
        return "unmeasured"
    if now["value"] != held["value"]:
        return "grown" if now["value"] > held["value"] else "shrunk"
    if now["module_id"] != held["module_id"] and (
        now["program_id"] is None or now["program_id"] != held["program_id"]
    ):
        return "changed"
    names = [(row["workload"], row["module_name"]) for row in (now, held)]
    return "unchanged" if names[0] == names[1] else "renamed"


def _gone(
    held: _Row, limits: Limits, memory_space: int, missing: str | None, *, fails: bool
) -> Verdict:
    """What is said of a program that the run lacks; missing: why it cannot be there."""
    if limits.gone is None and missing is not None:
        outcome: Failing = "pass"
    else:
        missing, outcome = None, limits.gone or ("fail" if fails else "warn")
    return Verdict(
        workload=held["workload"],
        module_name=held["module_name"],
        platform=held["platform"],
        series_id=held["series_id"],
        series_number=held["series_number"],
        memory_space=memory_space,
        status="gone" if missing is None else "missing",
        metric=held["metric"],
        host=held["host"],
        breaches=() if outcome == "pass" else (Breach("gone", outcome=outcome),),
        before_bytes=held["value"],
        # The last dump may have no figures: they are of the run before it that has them.
        baseline_run=held["run_id"] or held["named_run_id"],
        program_id=held["program_id"],
        origin=held["origin"],
        not_judged=missing,
    )
