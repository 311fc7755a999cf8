"""What a run is held against: its programs before, a run, another lineage, or the lowest."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...schema.errors import UsageError
from ...schema.quoting import command
from ...schema.stores.base import Store
from ..branches import default_branch
from ..catalogue import statement

_BRANCH = "branch="
_Row = dict[str, Any]


@dataclass(frozen=True)
class Against:
    """What the programs of a run are held against.

    held: the dump that each dump of the run follows, by dump_id, None if it is new; gone: the
    dumps that nothing of the run follows; is_first: there is nothing to hold the run against;
    run_id: the run that all are held against, None if each has its own; falls_back: a dump
    without figures stands for the last one before it that has figures; has_creep: the lowest is
    held against too, even if nobody asks; gone_fails: what is gone fails, unless limits.toml says
    otherwise; base_branch: the default lineage's branch, if the run is of another one; notes: what
    the user should know.
    """

    held: dict[int, int | None]
    gone: tuple[int, ...] = ()
    is_first: bool = False
    run_id: str | None = None
    falls_back: bool = True
    has_creep: bool = True
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
    """What a run is held against; programs: the rows of `check_now`.

    baseline: a run, or `branch=NAME` for the newest run of a branch before this one. Without
    it, a run of the default lineage is held against the programs before, and any other run
    against its base: the default lineage's newest run before it. Raises UsageError.
    """
    lineages = store.rows(statement("check_lineages"), [run]).to_pylist()
    newest = {row["branch"]: row["newest_run_id"] for row in lineages}
    own = next(row["branch"] for row in lineages if row["is_judged"])
    if baseline is not None:
        named = _named(baseline, run, newest)
        against = _against_run(store, run, named, has_creep=False)
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
    gone = store.rows(statement("check_gone"), [run, last])["dump_id"].to_pylist()
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
    store: Store, run: str, base: str, *, falls_back: bool = False, has_creep: bool = True
) -> Against:
    pairs = store.pairs(base, run).to_pylist()
    return Against(
        held={pair["b_dump_id"]: pair["a_dump_id"] for pair in pairs if pair["b_dump_id"]},
        gone=tuple(pair["a_dump_id"] for pair in pairs if pair["b_dump_id"] is None),
        run_id=base,
        falls_back=falls_back,
        has_creep=has_creep,
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
    last = store.rows(statement("check_asleep"), [base]).to_pylist()
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
    there = store.rows(statement("branches"))["branch"].to_pylist()
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
