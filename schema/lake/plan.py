"""Holds a change against a snapshot: what a commit must add and remove to make it.

Called again for the newer snapshot when another process was faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from .change import Change
from .commits import Actions
from .data_files import write_file
from .meanwhile import gone_dumps, ingested_at, rows_to_add
from .removals import Removals, without_modules
from .stored import Stored

# What stays of a dump that is written anew.
_KEPT_OF_DUMPS = ("accepted_changes", "oom_reports")
_OOM = ("oom_reports", "oom_buffers")
_PARTS = ("run_parts",)

Rows = dict[str, pa.Table]


@dataclass(frozen=True)
class Planned:
    """What a change comes to: the actions, and what goes altogether.

    dumps, orphans: how many dumps and modules go with the runs; ingested_at: of the runs that
    rows were added to, as they are then.
    """

    actions: Actions = field(default_factory=Actions)
    runs: Sequence[str] = ()
    dumps: int = 0
    orphans: int = 0
    ingested_at: Mapping[str, datetime] = field(default_factory=dict)


def plan(stored: Stored, change: Change) -> Planned:
    """The actions for a snapshot. Raises ChangedMeanwhileError if the change cannot be made."""
    own_modules = change.own_modules(stored.place)
    rows = rows_to_add(stored, change, own_modules)
    modules = stored.ids("modules", "module_id")
    replaced, kept = _collisions(stored, change, own_modules & modules)
    gone_runs = [*change.emptied_runs, *change.deleted_runs]
    gone = gone_dumps(stored, change)
    removals = _removals(stored, change, replaced | change.modules, gone_runs, gone)
    orphans: set[int] = set()
    if change.drops_orphans:
        orphans, flag_sets = _orphans(stored, change, rows, gone, own_modules | modules)
        removals.drop("module_id", orphans, but=("dumps",))
        removals.drop("flags_id", flag_sets, only=("compiler_flags",))
    removes, adds = removals.without(
        stored.connection, stored.place, stored.snapshot.files, _mark_oom(stored, change, rows)
    )
    for file in change.files:
        left_out = kept | orphans
        adds.append(without_modules(stored.place, file, left_out) if left_out else file)
    adds += [write_file(stored.place, name, of) for name, of in rows.items() if len(of)]
    changed = _changed_runs(stored, change, rows, replaced | change.modules)
    actions = Actions([file for file in adds if file.rows], removes, changed)
    there = stored.rows("runs", "run_id", change.deleted_runs, ("run_id",))["run_id"].to_pylist()
    deleted = [run for run in change.deleted_runs if run in there]
    times = ingested_at(stored, change)
    times |= (
        {row["run_id"]: row["ingested_at"] for row in rows["runs"].to_pylist()}
        if "runs" in rows
        else {}
    )
    return Planned(actions, deleted, len(gone), len(orphans & modules), times)


def _collisions(stored: Stored, change: Change, both: set[int]) -> tuple[set[int], set[int]]:
    """Of own modules that are stored: those to replace, and those that stay as stored."""
    both = both - change.modules
    if not both:
        return set(), set()
    dumps = change.rows_of("dumps")
    complete = set(dumps.filter(pc.equal(dumps["status"], "ok"))["module_id"].to_pylist())
    found = stored.rows("dumps", "module_id", both, ("module_id", "status"))
    whole = set(found.filter(pc.equal(found["status"], "ok"))["module_id"].to_pylist())
    replaced = (both & complete) - whole
    return replaced, both - replaced


def _removals(
    stored: Stored,
    change: Change,
    modules: set[int],
    gone_runs: Sequence[str],
    gone_dumps: set[int],
) -> Removals:
    removals = Removals()
    drop = removals.drop
    drop("module_id", modules, but=("dumps",))
    drop("dump_id", change.dumps, but=_KEPT_OF_DUMPS)
    drop("dump_id", gone_dumps)
    drop("run_id", change.runs, only=("runs", "run_labels"))
    drop("run_id", [*change.oom_runs, *gone_runs], only=_OOM)
    drop("run_id", change.deleted_runs, but=("journal",))
    drop("run_id", [*change.emptied_runs, *(run for run, _ in change.emptied_parts)], only=_PARTS)
    for run, host in change.emptied_parts:
        reports = stored.rows("oom_reports", "run_id", [run], ("oom_id", "path")).to_pylist()
        mine = [row["oom_id"] for row in reports if row["path"].startswith(f"{host}/")]
        drop("oom_id", mine, only=_OOM)
    removals.drop_labels(*change.without_labels)
    return removals


def _orphans(
    stored: Stored, change: Change, rows: Rows, gone_dumps: set[int], modules: set[int]
) -> tuple[set[int], set[int]]:
    """Of these modules and all flag sets those that no dump refers to then."""
    gone = pa.array(sorted(gone_dumps | change.dumps), pa.int64())
    query = "SELECT dump_id, module_id, flags_id FROM dumps"
    there = stored.connection.sql(query).to_arrow_table()
    there = there.filter(pc.invert(pc.is_in(there["dump_id"], gone)))
    dumps = rows.get("dumps", change.rows_of("dumps"))

    def referred(key: str) -> set[int]:
        return {*there[key].to_pylist(), *dumps[key].to_pylist()}

    flag_sets = set(stored.ids("compiler_flags", "flags_id"))
    return modules - referred("module_id"), flag_sets - referred("flags_id")


def _mark_oom(stored: Stored, change: Change, rows: Rows) -> set[int]:
    """Mark the dumps to add of which a message says that memory ran out; all such dumps."""
    reports = change.rows_of("oom_reports")
    found = set(reports["dump_id"].drop_null().to_pylist()) if change.oom_runs else set()
    if "dumps" in rows:
        dumps = rows["dumps"]
        # Another process may have stored a message since the dump was read.
        again = change.dumps & set(dumps["dump_id"].to_pylist())
        said = stored.rows("oom_reports", "dump_id", again, ("dump_id",))["dump_id"].to_pylist()
        marked = pa.array(sorted(found.union(said)), pa.int64())
        oom = pc.or_(dumps["oom"], pc.is_in(dumps["dump_id"], marked))
        place = dumps.schema.get_field_index("oom")
        rows["dumps"] = dumps.set_column(place, "oom", oom)
    return found


def _changed_runs(stored: Stored, change: Change, rows: Rows, modules: set[int]) -> list[str]:
    """The runs whose history may be another then."""
    changed = {*change.changed_runs, *change.runs, *change.emptied_runs, *change.deleted_runs}
    # Causes tell of a dump whether it ran out of memory.
    changed |= change.oom_runs | {run for run, _ in change.emptied_parts}
    for name in ("runs", "run_labels", "dumps"):
        if name in rows:
            changed.update(rows[name]["run_id"].to_pylist())
    found = stored.rows("dumps", "module_id", modules, ("run_id",))
    return sorted(changed | set(found["run_id"].to_pylist()))
