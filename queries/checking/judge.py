"""Judges the programs of a run: what each is held against, and which rules it breaks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...schema.causes.changes import READER_CHANGED
from ...schema.stores.base import Store
from ..catalogue import statement
from .accepted import read_accepted
from .comparison import Against
from .rules import ALIAS, Judged, find_breaches, find_waiver, is_better_higher
from .thresholds import Limits, Outcome, Policy
from .told_causes import with_causes
from .verdict import NO_FIGURES, Breach, Status, Verdict

_Row = dict[str, Any]


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
) -> list[Verdict]:
    """What is said of the programs of a run, and of those that are gone."""
    held = _held(store, programs, against, column, memory_space, best=best)
    moved_by_reader = _moved_by_reader(store, programs, against, held)
    accepted = read_accepted(store, run, memory_space)
    has_creep = against.has_creep and not best
    _add_scoped(store, programs, policy)
    found = []
    for now in programs:
        limits = policy.limits(now["workload"])
        before = against.held.get(now["dump_id"])
        against_row = None if before is None else held[before]
        if against_row is not None:
            against_row = _as_read_now(now, against_row, moved_by_reader)
        judged = Judged(now, against_row, column, limits, accepted, has_creep, against.base_branch)
        found.append(_verdict(judged, memory_space, is_first=against.is_first))
    found = with_causes(store, found, programs)
    hosts = set(store.rows(statement("hosts_of_run"), [run])["host"].to_pylist())
    for dump_id in against.gone:
        gone = held[dump_id]
        if memory_space == 0 or gone["value_bytes"] is not None:
            limits = policy.limits(gone["workload"])
            missing = None if programs else "no programs"
            if gone["host"] is not None and gone["host"] not in hosts:
                missing = "its host is missing"
            found.append(_gone(gone, limits, memory_space, missing, fails=against.gone_fails))
    return _with_platforms(found)


def _moved_by_reader(
    store: Store, programs: Sequence[_Row], against: Against, held: dict[int, _Row]
) -> set[tuple[int, int]]:
    """The pairs of dumps, held and now, whose figures differ only because readers did."""
    if len(store.rows(statement("reader_versions"))) < 2:
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
        if row["cause"] == READER_CHANGED.text
    }


def _as_read_now(now: _Row, held: _Row, moved_by_reader: set[tuple[int, int]]) -> _Row:
    """What a program is held against; a figure that only a reader moved is today's."""
    if (held["dump_id"], now["dump_id"]) in moved_by_reader:
        held = held | {name: now[name] for name in ("value_bytes", ALIAS, "argument_bytes")}
    if (held["least_dump_id"], now["dump_id"]) in moved_by_reader:
        held = held | {"least_bytes": now["value_bytes"]}
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
) -> dict[int, _Row]:
    """The rows of `check_held` by the dumps that are named."""
    asked: dict[int, bool | None] = dict.fromkeys(against.gone)
    for row in programs:
        dump_id = against.held.get(row["dump_id"])
        if dump_id is not None:
            asked[dump_id] = None if row["origin"] is None else row["origin"] == "estimated"
    parameters = [
        list(asked),
        memory_space,
        column,
        against.falls_back,
        best,
        is_better_higher(column),
        list(asked.values()),
    ]
    rows = store.rows(statement("check_held"), parameters).to_pylist() if asked else []
    return {row["named_dump_id"]: row for row in rows}


def _add_scoped(store: Store, programs: Sequence[_Row], policy: Policy) -> None:
    """Add scoped_bytes to the programs: what their kernels reserve, if there is a limit on it."""
    asked = {
        row["module_id"] for row in programs if policy.limits(row["workload"]).max_scoped_bytes
    } - {None}
    rows = store.rows(statement("check_scoped"), [sorted(asked)]).to_pylist() if asked else []
    scoped = {row["module_id"]: row["scoped_bytes"] for row in rows}
    for row in programs:
        row["scoped_bytes"] = scoped.get(row["module_id"])


def _verdict(judged: Judged, memory_space: int, *, is_first: bool) -> Verdict:
    now, held = judged.now, judged.held
    status = _status(now, held, is_first=is_first)
    breaches, only_creep = find_breaches(judged)
    reason = find_waiver(judged, breaches)
    before = defaultdict(lambda: None) if held is None else held
    prefix = "least_" if only_creep else ""
    value = "least_bytes" if only_creep else "value_bytes"
    if only_creep:
        status = "grown" if now["value_bytes"] > before["least_bytes"] else "shrunk"
    return Verdict(
        workload=now["workload"],
        module_name=now["module_name"],
        platform=now["platform"],
        series_id=now["series_id"],
        series_number=now["series_number"],
        memory_space=memory_space,
        status=status,
        breaches=tuple(breaches),
        dump_id=now["dump_id"],
        module_id=now["module_id"],
        program_id=now["program_id"],
        now_bytes=now["value_bytes"],
        before_bytes=before[value],
        held_against=before[f"{prefix}run_id"],
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
    if judged.now["value_bytes"] is None:
        return NO_FIGURES
    if judged.has_baseline or judged.limits.need_no_baseline:
        return None
    return "no figures before" if status == "unmeasured" else status


def _status(now: _Row, held: _Row | None, *, is_first: bool) -> Status:
    if now["oom"] or (now["value_bytes"] is None and now["status"] != "ok"):
        return "failed"
    if held is None:
        return "first" if is_first else "new"
    if None in (now["value_bytes"], held["value_bytes"]):
        return "unmeasured"
    if now["value_bytes"] != held["value_bytes"]:
        return "grown" if now["value_bytes"] > held["value_bytes"] else "shrunk"
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
        outcome: Outcome = "pass"
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
        host=held["host"],
        breaches=() if outcome == "pass" else (Breach("gone", outcome=outcome),),
        before_bytes=held["value_bytes"],
        # The last dump may have no figures: they are of the run before it that has them.
        held_against=held["run_id"] or held["named_run_id"],
        program_id=held["program_id"],
        origin=held["origin"],
        not_judged=missing,
    )
