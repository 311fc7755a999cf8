"""What other processes stored since a change was begun, and what of the change is left then.

A night that several processes ingest at once is stored once: what the first of them stored
stays. Whatever else cannot be joined is refused with ChangedMeanwhileError, and ingest begins
again with what is there by then.
"""

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import arrow
from ..errors import ChangedMeanwhileError
from ..journal import numbered
from .change import Begun, Change
from .stored import Stored

_FAILED = "failed"
# What makes two accepted values one.
_VALUE = ("dump_id", "memory_space", "metric", "accepted_bytes")
# Where an ingest adds something to a run, one of these has rows.
_OF_RUNS = {"runs", "run_labels", "run_parts", "dumps"}


def rows_to_add(stored: Stored, change: Change, own_modules: Set[int]) -> dict[str, pa.Table]:
    """The rows of the small relations that a change adds to what is stored.

    own_modules: the modules that it brings. Raises ChangedMeanwhileError.
    """
    rows = dict(change.rows)
    _require_runs(stored, change)
    if "runs" in rows:
        rows["runs"], rows["run_labels"] = _runs_and_labels(stored, change)
    if "dumps" in rows:
        _require_flag_sets(stored, change)
        _require_modules(stored, change, own_modules)
        there = pa.array(sorted(_dumps_that_are_there(stored, change)), pa.int64())
        for name in rows.keys() & {"dumps", "dump_files"}:
            rows[name] = _without(rows[name], "dump_id", there)
    if "compiler_flags" in rows:
        flag_sets = stored.ids("compiler_flags", "flags_id")
        rows["compiler_flags"] = _without(
            rows["compiler_flags"], "flags_id", pa.array(sorted(flag_sets), pa.int64())
        )
    if "accepted_changes" in rows:
        rows["accepted_changes"] = _accepted(stored, change)
    if change.oom_runs:
        _require_reports(stored, change)
    if "run_parts" in rows or change.emptied_parts:
        rows["run_parts"] = _parts(stored, change)
    if "journal" in rows:
        entered = rows["journal"]
        if change.deleted_runs:
            # Another process may have dropped some of them.
            runs = stored.rows("runs", "run_id", change.deleted_runs, ("run_id",))["run_id"]
            entered = entered.filter(pc.is_in(entered["run_id"], runs.combine_chunks()))
        if _is_done(change, rows):
            entered = entered[:0]
        query = "SELECT COALESCE(MAX(entry), 0) FROM journal"
        ((last,),) = stored.connection.sql(query).fetchall()
        rows["journal"] = numbered(entered, last)
    return rows


def _is_done(change: Change, rows: Mapping[str, pa.Table]) -> bool:
    """Whether another process stored the same dumps since, so that nothing of a run changes."""
    gone = change.runs, change.dumps, change.emptied_runs, change.emptied_parts
    added = (len(rows[name]) for name in _OF_RUNS & rows.keys())
    return "dumps" in rows and not any(gone) and not any(added)


def _parts(stored: Stored, change: Change) -> pa.Table:
    """The parts to add: those that another process stored since stay as they are.

    Of a run with an emptied part all are added, because all go.
    """
    runs = {run for run, _ in change.emptied_parts}
    own = change.rows_of("run_parts").to_pylist()
    there = stored.rows("run_parts", "run_id", {row["run_id"] for row in own} | runs).to_pylist()
    kept = {
        (row["run_id"], row["host"]): row
        for row in there
        if row["run_id"] not in change.emptied_runs
        and (row["run_id"], row["host"]) not in change.emptied_parts
    }
    new = {(row["run_id"], row["host"]): row for row in own}
    added = {key: row for key, row in {**new, **kept}.items() if key[0] in runs or key not in kept}
    return arrow.rows("run_parts", list(added.values()))


def gone_dumps(stored: Stored, change: Change) -> set[int]:
    """The dumps that go with the runs and parts that are emptied or deleted."""
    emptied = {run for run, _ in change.emptied_parts}
    runs = {*change.emptied_runs, *change.deleted_runs}
    found = stored.rows("dumps", "run_id", runs | emptied, ("dump_id", "run_id", "host"))
    return {
        row["dump_id"]
        for row in found.to_pylist()
        if row["run_id"] in runs or (row["run_id"], row["host"]) in change.emptied_parts
    }


def _without(rows: pa.Table, key: str, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows[key], ids)))


# -- Runs --------------------------------------------------------------------------------------


def _require_runs(stored: Stored, change: Change) -> None:
    """A run that was there when the change was begun must be the same run now."""
    there = ingested_at(stored, change)
    new = set(change.rows_of("runs")["run_id"].to_pylist()) - change.runs
    for run in sorted(_runs(change)):
        begun = change.begun.get(run)
        if begun is not None and begun.ingested_at is not None:
            is_same = there.get(run) == begun.ingested_at
        else:
            is_same = run in there or run in new
        if not is_same:
            raise ChangedMeanwhileError(f"deleted or replaced run {run!r}")


def ingested_at(stored: Stored, change: Change) -> dict[str, datetime]:
    """When the runs that a change adds rows to were ingested, of those that are stored."""
    found = stored.rows("runs", "run_id", _runs(change), ("run_id", "ingested_at"))
    return {row["run_id"]: row["ingested_at"] for row in found.to_pylist()}


def _runs(change: Change) -> set[str]:
    names = ("runs", "run_labels", "dumps", "oom_reports")
    return set().union(*(change.rows_of(name)["run_id"].to_pylist() for name in names))


def _runs_and_labels(stored: Stored, change: Change) -> tuple[pa.Table, pa.Table]:
    """The rows of runs and labels. A run that another process stored since stays as it is."""
    rows = change.rows["runs"].to_pylist()
    ids = {row["run_id"] for row in rows}
    there = set(stored.rows("runs", "run_id", ids, ("run_id",))["run_id"].to_pylist())
    new = [row for row in rows if row["run_id"] not in change.runs | there]
    if new:
        # The order of entering: another run may have entered since.
        ((most,),) = stored.connection.sql("SELECT COALESCE(MAX(run_seq), 0) FROM runs").fetchall()
        late = max(0, most + 1 - min(row["run_seq"] for row in new))
        for row in new:
            row["run_seq"] += late
    kept = [row for row in rows if row["run_id"] in change.runs]
    own, stored_labels = (
        _by_run(found)
        for found in (change.rows_of("run_labels"), stored.rows("run_labels", "run_id", ids))
    )
    labels = [
        {"run_id": run, "key": key, "value": value}
        for run in sorted(ids)
        for key, value in _labels(change, run, own.get(run, {}), stored_labels.get(run, {})).items()
    ]
    return arrow.rows("runs", kept + new), arrow.rows("run_labels", labels)


def _labels(
    change: Change, run: str, own: Mapping[str, str], there: Mapping[str, str]
) -> dict[str, str]:
    """The labels to add to a run; all labels of a run that is written anew."""
    if run not in change.runs:
        return {key: value for key, value in own.items() if key not in there}
    before = change.begun[run].labels if run in change.begun else there
    # What another process labelled since stays.
    kept = {key: value for key, value in there.items() if key in own or key not in before}
    return kept | {key: value for key, value in own.items() if before.get(key) != value}


def _by_run(labels: pa.Table) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in labels.to_pylist():
        found.setdefault(row["run_id"], {})[row["key"]] = row["value"]
    return found


# -- Dumps -------------------------------------------------------------------------------------


def _dumps_that_are_there(stored: Stored, change: Change) -> set[int]:
    """The dumps to add that another process stored since: as they are, or not at all."""
    own = {row["dump_id"]: row for row in change.rows["dumps"].to_pylist()}
    gone = gone_dumps(stored, change)
    runs = {row["run_id"] for row in own.values()} - {*change.emptied_runs}
    found: set[int] = set()
    by_run: dict[str, dict[int, Mapping[str, Any]]] = {run: {} for run in runs}
    for row in stored.rows("dumps", "run_id", runs).to_pylist():
        if row["dump_id"] not in gone:
            by_run[row["run_id"]][row["dump_id"]] = row
    for run, there in by_run.items():
        new = {
            dump for dump, row in own.items() if row["run_id"] == run and dump not in change.dumps
        }
        both = new & there.keys()
        if any(_content(own[dump]) != _content(there[dump]) for dump in both):
            raise ChangedMeanwhileError(f"stored other dumps of run {run!r}")
        if run in change.begun and not change.joins:
            _require_one_night(change.begun[run], run, new, there)
        if change.joins and {_occurrence(own[dump]) for dump in new - both} & {
            _occurrence(row) for row in there.values()
        }:
            raise ChangedMeanwhileError(f"stored dumps of the same names in run {run!r}")
        found |= both
    return found


def _require_one_night(
    begun: Begun, run: str, new: set[int], there: Mapping[int, Mapping[str, Any]]
) -> None:
    """Of two processes that store one night, one is ahead of the other.

    Both store the night's dumps in one order, so the dumps of one are among those of the other.
    """
    whole = {dump for dump, row in there.items() if row["status"] != _FAILED}
    mine = begun.dumps | new
    if not whole <= mine and not mine <= there.keys():
        raise ChangedMeanwhileError(f"stored other dumps of run {run!r}")


def _occurrence(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("workload", "module_name", "platform", "occurrence"))


def _content(row: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a dump; a log may say later that it ran out of memory."""
    return {name: value for name, value in row.items() if name != "oom"}


def _require_flag_sets(stored: Stored, change: Change) -> None:
    """Flag sets that were there when the change was begun are not written again."""
    dumps, written = change.rows["dumps"], change.rows_of("compiler_flags")
    known = set().union(*(begun.flag_sets for begun in change.begun.values()))
    wanted = known & set(dumps["flags_id"].to_pylist())
    there = stored.ids("compiler_flags", "flags_id") | set(written["flags_id"].to_pylist())
    if not wanted <= there:
        raise ChangedMeanwhileError("deleted compiler flags of these dumps")


def _require_modules(stored: Stored, change: Change, own_modules: Set[int]) -> None:
    """The same for modules."""
    wanted = set(change.rows["dumps"]["module_id"].drop_null().to_pylist())
    if not wanted <= stored.ids("modules", "module_id") | own_modules:
        raise ChangedMeanwhileError("deleted modules of these dumps")


# -- What is said of dumps ---------------------------------------------------------------------


def _accepted(stored: Stored, change: Change) -> pa.Table:
    """The values that users accept, without those that another process accepted since."""
    rows = change.rows["accepted_changes"]
    dumps = set(rows["dump_id"].to_pylist())
    there = stored.rows("dumps", "dump_id", dumps, ("dump_id",))["dump_id"].to_pylist()
    if dumps - {*there, *change.rows_of("dumps")["dump_id"].to_pylist()}:
        raise ChangedMeanwhileError("deleted the run")
    stored_rows = stored.rows("accepted_changes", "dump_id", dumps, _VALUE).to_pylist()
    values = {tuple(row.values()) for row in stored_rows}
    is_new = [tuple(row.values()) not in values for row in rows.select(_VALUE).to_pylist()]
    return rows.filter(pa.array(is_new, pa.bool_()))


def _require_reports(stored: Stored, change: Change) -> None:
    """Messages that another process stored since are known to this one."""
    own = change.rows_of("oom_reports").to_pylist()
    there = stored.rows("oom_reports", "run_id", change.oom_runs).to_pylist()
    seen = [] if change.seen_reports is None else change.seen_reports.to_pylist()
    if _sorted(there) not in (_sorted(seen), _sorted(own)):
        runs = ", ".join(repr(run) for run in sorted(change.oom_runs))
        raise ChangedMeanwhileError(f"stored other messages of run {runs}")


def _sorted(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(reports, key=lambda row: (row["run_id"], row["oom_id"]))
