"""The gate: is a run's memory within its limits, who owns what grew, and what to change?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from ..advice.advise import advise
from ..advice.finding import Finding
from ..schema.errors import UsageError
from ..schema.store import Store
from .arguments import metric_column
from .catalogue import statement
from .checking.judge import (
    NO_FIGURES,
    PEAK,
    RESERVED,
    Verdict,
    find_against,
    is_better_higher,
    judge,
    record_accepted,
)
from .checking.policy import DEFAULT_GROWTH, DEFAULT_LOST_DONATION, Limits, Policy, parse_growth
from .modules import helpers_line
from .result import Result, Rows, counted, listed
from .runs import require_runs

# The columns of the rows and their types.
_ROWS = {
    "module": "string",
    "status": "string",
    "verdict": "string",
    "before_bytes": "int64",
    "now_bytes": "int64",
    "change_bytes": "int64",
    "change_ratio": "float64",
    "baseline_run": "string",
    "lowest_bytes": "int64",
    "lowest_run": "string",
    "cause": "string",
    "why": "string",
    "accepted": "string",
    "dump_id": "int64",
    "is_entry": "bool",
    "origin": "string",
    "metric": "string",
}
# What a notebook shows of a program; the other columns are for programs.
_TOLD = ["module", "verdict", "before_bytes", "now_bytes", "change_bytes", "change_ratio"]
_TOLD += ["why", "cause", "baseline_run", "origin"]
_Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Check(Result):
    """What is said of a run.

    rows: a row for each program, those that fail first, with module, status, verdict (pass, warn,
    fail or not judged), before_bytes, now_bytes, change_bytes, change_ratio, baseline_run,
    lowest_bytes, lowest_run, cause, why (the rules that it breaks, or why it is not judged),
    accepted (the reason), dump_id, is_entry (else a helper, which is not judged), origin, metric
    (the figure that is judged); for status and the like see Verdict. verdicts: one a
    program, in the order of the rows; notes: what else a user should know, for example that there
    is nothing to hold the run against; unused: workloads that have limits, but that the run lacks;
    rules: what the programs are held to, each with its limit and where it is set.
    """

    run_id: str
    metric: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    unused: tuple[str, ...]
    rules: tuple[str, ...]
    rows: Rows

    def tables(self) -> Sequence[Rows]:
        """The programs, with what a person asks of each."""
        rows = self.rows.table.filter(self.rows.table["is_entry"]).select(_TOLD)
        return (replace(self.rows, table=rows, left_out=self.helpers),)

    def sentences(self) -> Sequence[str]:
        """What else to know."""
        return self.notes

    @property
    def figure(self) -> str:
        """What is judged, in a word."""
        return self.metric.removesuffix("_bytes").replace("_", " ")

    @property
    def breaches(self) -> tuple[Verdict, ...]:
        """The verdicts of the programs that fail."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome == "fail")

    @property
    def helpers(self) -> str:
        """What the helpers are, in a line; empty if there are none."""
        there = [verdict for verdict in self.verdicts if verdict.dump_id is not None]
        return helpers_line([verdict.now_bytes for verdict in there if verdict.is_helper])

    @property
    def outcome(self) -> Literal["pass", "fail", "not judged"]:
        """Whether the run passes, fails, or is not judged.

        A run without a program that a rule could judge is not judged, and nor is one that lacks
        what was judged in the run that it is held against. What fails makes the run fail.
        """
        if self.breaches:
            return "fail"
        is_whole = self.is_judged and not any(verdict.is_lost for verdict in self.verdicts)
        return "pass" if is_whole else "not judged"

    @property
    def passes(self) -> bool:
        """Whether the run passes: nothing fails, and it is judged."""
        return self.outcome == "pass"

    @property
    def is_judged(self) -> bool:
        """Whether a rule could judge one of the programs, at least."""
        return any(verdict.is_judged for verdict in self.verdicts)

    @property
    def result(self) -> str:
        """The result in a few words."""
        lost = [verdict for verdict in self.verdicts if verdict.is_lost]
        hosts = {verdict.host for verdict in lost if verdict.host}
        without = sum(1 for verdict in lost if verdict.status != "missing")
        unjudged = [
            verdict
            for verdict in self.verdicts
            if verdict.not_judged
            and verdict.outcome != "fail"
            and not (verdict.is_lost or verdict.is_helper)
        ]
        entries = sum(1 for verdict in self.verdicts if not verdict.is_helper)
        new = sum(1 for verdict in unjudged if verdict.not_judged != NO_FIGURES)
        warned = sum(1 for verdict in self.verdicts if verdict.outcome == "warn")
        passing = sum(1 for v in self.verdicts if v.is_judged and v.outcome != "fail")
        told = []
        if hosts:
            told.append(f"{listed(hosts)} missing")
        if without:
            told.append(f"{without} lost their figures" if without > 1 else "1 lost its figures")
        if self.outcome == "fail":
            first = f"{len(self.breaches)} of {entries} fail"
        elif self.outcome == "not judged":
            if all(verdict.dump_id is None for verdict in self.verdicts):
                told = ["no programs"]
            first = f"not judged ({', '.join(told) or ('no baseline' if new else 'no figures')})"
            told = [f"{passing} pass"] if passing else []
        elif unjudged:
            first = f"{passing} pass"
        else:
            first = f"all {passing} pass"
            if not any(verdict.matters for verdict in self.verdicts):
                told = ["nothing changed"]
        if new:
            told.append(f"{new} new")
        if len(unjudged) > new:
            told.append(f"{len(unjudged) - new} without figures")
        if warned:
            told.append(counted(warned, "warning"))
        return ", ".join([first, *told])


def check(
    store: Store,
    run: str | None = None,
    *,
    baseline: str | None = None,
    best: bool = False,
    max_growth: Sequence[str] | None = None,
    limits: str | PathLike[str] | None = None,
    metric: str | None = None,
    memory_space: int = 0,
    require_baseline: bool = False,
    module: str | None = None,
) -> Check:
    """See `Warehouse.check`."""
    named_metric = None if metric is None else metric_column(metric)
    require_one_baseline(baseline, best)
    policy = read_policy(max_growth, limits, require_baseline=require_baseline)
    column = named_metric or policy.metric or RESERVED
    falls_back = (named_metric or policy.metric) is None
    named = None if baseline is None or baseline.startswith("branch=") else baseline
    require_runs(store, (run, "run"), (named, "baseline"))
    # A run of logs alone has no programs.
    has_dumps = set(store.rows("SELECT run_id FROM internal.lineages")["run_id"].to_pylist())
    if not has_dumps:
        raise UsageError("there are no runs to judge: see `memhouse ingest`", "run")
    judged = run or store.rows(statement("runs.entered_last"))["run_id"][0].as_py()
    if judged not in has_dumps:
        raise UsageError(f"run {judged!r} has no dumps to judge, only a log", "run")
    programs = store.rows(statement("check.now"), [judged, memory_space, column]).to_pylist()
    for row in programs:
        row["metric"] = column
        if falls_back and row["value"] is None and row["peak_bytes"] is not None:
            # What an estimate reserves is not known.
            row |= {"metric": PEAK, "value": row["peak_bytes"]}
    against = find_against(store, judged, programs, baseline, policy.baseline)
    found = judge(
        store,
        judged,
        programs,
        against,
        policy,
        column,
        memory_space,
        best=best,
        judges_helpers=module is not None,
        fallback=PEAK if falls_back else None,
    )
    if module is not None:
        found = _only(module, found)
    # The largest growth first, of those that fail, then of the others.
    order = {"fail": 0, "not judged": 1, "warn": 2, "pass": 3}
    found.sort(key=lambda v: (order[v.outcome], not v.matters, -(v.change_bytes or 0)))
    unused = sorted(policy.workloads.keys() - {verdict.workload for verdict in found})
    rules = policy.rules(
        has_drift=against.has_drift and not best,
        gone="fail" if against.gone_fails else "warn",
        better_higher=is_better_higher(column),
    )
    return _check(
        judged, column, found, against.notes, unused if module is None else [], tuple(rules)
    )


def require_one_baseline(baseline: str | None, best: bool) -> None:
    """Raises UsageError if both are given."""
    if baseline is not None and best:
        raise UsageError("give a baseline or the best, not both", "baseline")


def require_reason(reason: str) -> None:
    """Raises UsageError if a growth would be accepted without a word."""
    if not reason.strip():
        raise UsageError("say why it is accepted", "accept")


def accept(store: Store, result: Check, reason: str) -> Check:
    """Record the values that fail as accepted, and why; what is said of the run then.

    Only values that fitted can be accepted: a program that found no room still fails. Raises
    UsageError without a reason.
    """
    require_reason(reason)

    accepted = [verdict for verdict in result.breaches if verdict.acceptable()]
    record_accepted(store, result.run_id, accepted, reason)
    verdicts = [
        replace(verdict, breaches=(), accepted_reason=reason, not_judged=None)
        if verdict in accepted
        else verdict
        for verdict in result.verdicts
    ]
    return _check(result.run_id, result.metric, verdicts, result.notes, result.unused, result.rules)


def _check(
    run: str,
    column: str,
    verdicts: Sequence[Verdict],
    notes: Sequence[str],
    unused: Sequence[str],
    rules: tuple[str, ...],
) -> Check:
    schema = pa.schema([pa.field(name, type_) for name, type_ in _ROWS.items()])
    table = pa.Table.from_pylist([_row(verdict) for verdict in verdicts], schema=schema)
    found = Check(
        run,
        column,
        tuple(verdicts),
        tuple(notes),
        tuple(unused),
        rules,
        Rows(table, empty="no programs"),
    )
    caption = f"{found.figure} memory of {run}: {found.result}"
    return replace(found, rows=replace(found.rows, caption=caption))


def _only(module: str, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts of the one module that a user means, none if the run lacks it.

    Several that are one program, on several hosts for example, are no doubt: all are meant. A
    workload means its largest program, of this run or of what the run is held against.
    """
    there = [verdict for verdict in verdicts if verdict.dump_id is not None]
    exact = [verdict for verdict in there if verdict.fits(module, exactly=True)]
    found = exact or [verdict for verdict in there if verdict.fits(module, exactly=False)]
    programs = {verdict.program_id or verdict.module_id for verdict in found} - {None}
    modules = {(verdict.module_name, verdict.platform) for verdict in found}
    is_one = len(found) <= 1 or (len(programs) <= 1 and len(modules) <= 1)
    of_workload = [verdict for verdict in verdicts if verdict.workload == module]
    if of_workload and not is_one:
        largest = max(of_workload, key=lambda v: max(v.now_bytes or 0, v.before_bytes or 0))
        return [] if largest.dump_id is None else [largest]
    if not is_one:
        names = ", ".join(verdict.name for verdict in found)
        raise UsageError(f"several modules fit {module!r}: {names}", "module")
    # The dump of one host that failed says nothing of the program.
    return [verdict for verdict in found if verdict.is_judged] or found


def _row(verdict: Verdict) -> _Row:
    change, before = verdict.change_bytes, verdict.before_bytes
    return {
        "module": verdict.name,
        "status": verdict.status,
        "verdict": verdict.outcome,
        "before_bytes": before,
        "now_bytes": verdict.now_bytes,
        "change_bytes": change,
        "change_ratio": change / before if change is not None and before else None,
        "baseline_run": verdict.baseline_run,
        "lowest_bytes": verdict.lowest_bytes,
        "lowest_run": verdict.lowest_run_id,
        "cause": verdict.cause,
        "why": "; ".join(breach.text for breach in verdict.breaches) or verdict.not_judged,
        "accepted": verdict.accepted_reason,
        "dump_id": verdict.dump_id,
        "is_entry": not verdict.is_helper,
        "origin": verdict.origin,
        "metric": verdict.metric,
    }


def read_policy(
    max_growth: Sequence[str] | None = None,
    limits: str | PathLike[str] | None = None,
    *,
    require_baseline: bool = False,
) -> Policy:
    """The policy of these growths, 1% if there are none, and of a TOML file.

    With `require_baseline` each new program fails. Raises UsageError.
    """
    try:
        growth = tuple(map(parse_growth, max_growth)) if max_growth else DEFAULT_GROWTH
    except ValueError as error:
        raise UsageError(str(error), "max_growth") from None
    default = Limits(max_growth=growth, lost_donation=DEFAULT_LOST_DONATION)
    policy = Policy(default)
    if limits is not None:
        # It takes pydantic, which is slow to import.
        from .checking.limits_file import read_limits

        policy = read_limits(limits, default)
    option = {"max_growth": "--max-growth"} if max_growth else {}
    required = {"new": "--require-baseline"} if require_baseline else {}
    sources = option | policy.sources | required
    return replace(policy, requires_baseline=require_baseline, sources=sources)


# The source lines that own what grew: where an annotation on a pull request belongs.


@dataclass(frozen=True)
class Line:
    """A line of a source file, as the dump names it, and by how much its buffers grew."""

    file: str
    number: int
    change_bytes: int


def owning_lines(store: Store, verdicts: Sequence[Verdict]) -> dict[int, Line]:
    """Of each program that breaks a rule, by dump_id: the line whose buffers grew most.

    It is counted at the peaks. A program without a module before has the line with the most.
    """
    found: dict[int, Line] = {}
    known: dict[tuple[int | None, int], Line | None] = {}
    for verdict in verdicts:
        if not verdict.breaches or verdict.dump_id is None or verdict.module_id is None:
            continue
        pair = verdict.held_module_id, verdict.module_id
        if pair not in known:
            rows = store.rows(statement("check.line"), [*pair, verdict.memory_space]).to_pylist()
            known[pair] = Line(*rows[0].values()) if rows else None
        if line := known[pair]:
            found[verdict.dump_id] = line
    return found


# What to change in the programs that fail, so that they fit again.

# Working out the advice of a large program takes seconds.
_PROGRAMS = 3
_FINDINGS = 3


@dataclass(frozen=True)
class Changes:
    """What to change in a program: its name, and at most three findings with a saving."""

    name: str
    findings: tuple[Finding, ...]


def what_to_change(store: Store, verdicts: Sequence[Verdict]) -> list[Changes]:
    """Of the first programs that fail: what would lower their peak most, if anything is known."""
    failing: dict[int, Verdict] = {}
    for verdict in verdicts:
        # What a program takes of another memory is the compiler's choice.
        if verdict.outcome == "fail" and verdict.module_id is not None and not verdict.memory_space:
            failing.setdefault(verdict.module_id, verdict)
    return list(_changes(store, list(failing.values())[:_PROGRAMS]))


def _changes(store: Store, failing: Sequence[Verdict]) -> Iterator[Changes]:
    for verdict in failing:
        assert verdict.module_id is not None
        try:
            found = advise(store, verdict.module_id)
        except UsageError:
            # The dump has no live ranges: nothing can be replayed.
            continue
        if found.followed:
            yield Changes(verdict.name, found.followed[:_FINDINGS])
