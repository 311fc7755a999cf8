"""Changes of a lake: requested, compared with what other processes stored, planned as a commit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from .. import arrow
from ..errors import ChangedMeanwhileError
from ..journal import numbered
from ..readable import quoted
from ..stores.base import SETS, Batch, Known
from .commits import Actions
from .data_files import (
    HISTORY,
    SMALL,
    DataFile,
    check_files,
    file_size,
    portions,
    read_files,
    relations,
    url,
    write_file,
)
from .lake_tables import Stored, may_hold, select_files

# Requests: changes as they were requested, before they are compared with the lake.


@dataclass
class Begun:
    """A run as it was when this process began to ingest it, and what the process added since.

    ingested_at: None if the run did not exist. A run that is deleted or replaced and then stored
    again has another time.
    """

    ingested_at: datetime | None
    labels: Mapping[str, str]
    dumps: set[int]
    sets: Mapping[str, set[int]]

    @classmethod
    def of(cls, known: Known) -> "Begun":
        """From what a store knows of the run."""
        at = None if known.run is None else known.run["ingested_at"]
        sets = {key: set(known.sets[key]) for key in SETS}
        return cls(at, dict(known.labels), set(known.dumps), sets)

    def add(self, dump: Mapping[str, Any]) -> None:
        """Note the row of a dump that this process stored."""
        self.dumps.add(dump["dump_id"])
        for key, ids in self.sets.items():
            if dump[key] is not None:
                ids.add(dump[key])


@dataclass
class Change:
    """Rows to add, and ids whose rows are removed.

    rows: rows of small relations, written at each attempt; files: files of modules, written once.
    modules, dumps, runs, oom_runs, joins: as in `Batch`. emptied_runs: runs whose dumps are removed
    with all their rows; emptied_parts: the same for a run's part of one host; deleted_runs: runs
    that are removed as a whole; without_labels: runs, and the keys of their labels to remove.
    drops_orphans: whether to remove modules and sets that no dump refers to afterwards.
    changed_runs: further runs whose history changes. begun: the runs as they were when the change
    was begun, where this is known. seen_reports: the out-of-memory reports of `oom_runs` that the
    rows were made from.
    """

    rows: dict[str, pa.Table] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    modules: set[int] = field(default_factory=set)
    dumps: set[int] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    oom_runs: set[str] = field(default_factory=set)
    joins: bool = False
    emptied_runs: Sequence[str] = ()
    emptied_parts: Sequence[tuple[str, str]] = ()
    deleted_runs: Sequence[str] = ()
    without_labels: tuple[Sequence[str], Sequence[str]] = ((), ())
    drops_orphans: bool = False
    changed_runs: Sequence[str] = ()
    begun: Mapping[str, Begun] = field(default_factory=dict)
    seen_reports: pa.Table | None = None

    def add(self, place: str, batch: Batch) -> None:
        """Add a batch; the rows of its modules are written to files."""
        if again := self.own_modules(place) & {*batch.modules}:
            # An earlier batch of the same change has incomplete rows of these modules.
            self.files = [without_modules(place, file, again) for file in self.files]
        self.modules.update(batch.modules)
        self.dumps.update(batch.dumps)
        self.runs.update(batch.runs)
        self.oom_runs.update(batch.oom_runs)
        self.joins |= batch.joins
        self.files += batch.files
        self.add_rows({name: rows for name, rows in batch.tables.items() if name in SMALL})
        self.files += [
            write_file(place, name, rows)
            for name, rows in batch.tables.items()
            if name not in SMALL and len(rows)
        ]

    def own_modules(self, place: str) -> set[int]:
        """The modules whose rows are in the files."""
        files = [file for file in self.files if file.relation == "modules"]
        return set(read_files(place, files, "modules")["module_id"].to_pylist())

    def add_rows(self, tables: Mapping[str, pa.Table]) -> None:
        """Add rows of small relations."""
        for name, rows in tables.items():
            self.rows[name] = pa.concat_tables(
                [self.rows_of(name), rows], promote_options="default"
            )

    def rows_of(self, name: str) -> pa.Table:
        """The rows to add to a small relation."""
        return self.rows.get(name, arrow.schema(name).empty_table())


# Removals: the files that have rows to remove, and new files without these rows.

Ids = Iterable[int | str]


class Removals:
    """Conditions of the rows to remove, by relation."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, set[int | str]]] = {}
        self._labels: tuple[list[str], list[str]] = ([], [])

    def drop(
        self, key: str, ids: Ids, *, only: Iterable[str] = (), but: Iterable[str] = ()
    ) -> None:
        """Remove rows with these ids from relations that have the key: all but `but`, or `only`."""
        removed = set(ids)
        if not removed:
            return
        for name in only or _relations_with(key):
            if name not in but:
                self._ids.setdefault(name, {}).setdefault(key, set()).update(removed)

    def drop_labels(self, runs: Iterable[str], keys: Iterable[str]) -> None:
        """Remove these labels of these runs."""
        self._labels = (list(runs), list(keys))
        if all(self._labels):
            self._ids.setdefault("run_labels", {})

    def without(
        self,
        connection: duckdb.DuckDBPyConnection,
        place: str,
        files: Mapping[str, Iterable[DataFile]],
        oom_dumps: set[int],
    ) -> tuple[list[DataFile], list[DataFile]]:
        """The files to remove, and new files with the rows of these that stay.

        The dumps of `oom_dumps` stay and are marked as out of memory.
        """
        removes: list[DataFile] = []
        adds: list[DataFile] = []
        names = {*self._ids, "dumps"} if oom_dumps else {*self._ids}
        for name in sorted(names):
            ids = self._ids.get(name, {})
            oom_ids = oom_dumps if name == "dumps" else set()
            candidates = [
                file
                for file in files.get(name, ())
                if (name == "run_labels" and self._labels[0])
                or any(may_hold(file, key, removed) for key, removed in ids.items())
                or (oom_ids and may_hold(file, "dump_id", oom_ids))
            ]
            if not candidates:
                continue
            with self._condition(connection, name, ids, oom_ids) as (is_removed, is_marked):
                source = select_files(place, candidates, name, with_file=True)
                condition = f"{is_removed} OR {is_marked}"
                query = f"SELECT DISTINCT filename FROM ({source}) WHERE {condition}"
                urls = set(connection.sql(query).to_arrow_table()["filename"].to_pylist())
                affected = [file for file in candidates if url(place, file) in urls]
                if not affected:
                    continue
                # A damaged file must not be rewritten, because the new checksum would be right.
                check_files(place, affected)
                replaced = f" REPLACE (oom OR {is_marked} AS oom)" if oom_ids else ""
                for group in portions((file, file_size(file)) for file in affected):
                    source = select_files(place, group, name)
                    query = f"SELECT *{replaced} FROM ({source}) WHERE NOT {is_removed}"
                    staying = connection.sql(query).to_arrow_table()
                    if len(staying):
                        adds.append(write_file(place, name, staying))
            removes += affected
        return removes, adds

    @contextmanager
    def _condition(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        ids: Mapping[str, set[int | str]],
        marked: set[int],
    ) -> Iterator[tuple[str, str]]:
        """SQL for the rows to remove, and for those to mark; never null."""
        registered = []
        conditions = []
        for key, removed in ids.items():
            table = f"gone_{key}"
            connection.register(table, pa.table({key: _ids(name, key, removed)}))
            registered.append(table)
            conditions.append(f"COALESCE({key} IN (SELECT {key} FROM {table}), FALSE)")
        if name == "run_labels" and all(self._labels):
            runs, keys = (", ".join(map(quoted, texts)) for texts in self._labels)
            conditions.append(f"(run_id IN ({runs}) AND key IN ({keys}))")
        is_marked = "FALSE"
        if marked:
            connection.register("marked", pa.table({"dump_id": pa.array(marked, pa.int64())}))
            registered.append("marked")
            is_marked = "(NOT oom AND dump_id IN (SELECT dump_id FROM marked))"
        try:
            yield f"({' OR '.join(conditions) or 'FALSE'})", is_marked
        finally:
            for table in registered:
                connection.unregister(table)


def _relations_with(key: str) -> list[str]:
    """The relations that have the key, without the history, which is worked out anew."""
    return [name for name in relations() if name not in HISTORY and key in arrow.schema(name).names]


def _ids(relation: str, key: str, ids: set[int | str]) -> pa.Array:
    return pa.array(sorted(ids), arrow.schema(relation).field(key).type)


def without_modules(place: str, file: DataFile, modules: Iterable[int]) -> DataFile:
    """The file if it has no rows of these modules, else a new one without these; possibly empty."""
    rows = read_files(place, [file], file.relation)
    is_removed = pc.is_in(rows["module_id"], pa.array(sorted(modules), pa.int64()))
    if not pc.any(is_removed).as_py():
        return file
    return write_file(place, file.relation, rows.filter(pc.invert(is_removed)))


# Comparison: what other processes stored since a change was begun, and which rows are still to add.
#
# If several processes ingest a night at once, it is stored once: the rows of the first stay.
# Changes that cannot be combined raise ChangedMeanwhileError, and ingest begins again with the
# lake as it is then.

_FAILED = "failed"
# The columns by which two accepted values are the same.
_VALUE = ("dump_id", "memory_space", "metric", "accepted_bytes")
# An ingest that adds anything to a run adds rows to one of these.
_OF_RUNS = {"runs", "run_labels", "run_parts", "dumps"}


def rows_to_add(stored: Stored, change: Change, own_modules: Set[int]) -> dict[str, pa.Table]:
    """The rows of small relations that a change adds to the stored ones.

    own_modules: the modules whose rows the change has. Raises ChangedMeanwhileError.
    """
    rows = dict(change.rows)
    _require_runs(stored, change)
    if "runs" in rows:
        rows["runs"], rows["run_labels"] = _runs_and_labels(stored, change)
    if "dumps" in rows:
        _require_sets(stored, change)
        _require_modules(stored, change, own_modules)
        stored_dumps = pa.array(sorted(_dumps_stored_meanwhile(stored, change)), pa.int64())
        rows["dumps"] = _without(rows["dumps"], "dump_id", stored_dumps)
    for key, name in SETS.items():
        if name in rows:
            stored_sets = pa.array(sorted(stored.ids(name, key)), pa.int64())
            rows[name] = _without(rows[name], key, stored_sets)
    if "accepted_changes" in rows:
        rows["accepted_changes"] = _accepted(stored, change)
    if change.oom_runs:
        _require_reports(stored, change)
    if "run_parts" in rows or change.emptied_parts:
        rows["run_parts"] = _parts(stored, change)
    if "journal" in rows:
        new_entries = rows["journal"]
        if change.deleted_runs:
            # Another process may have dropped some of them.
            runs = stored.rows("runs", "run_id", change.deleted_runs, ("run_id",))["run_id"]
            new_entries = new_entries.filter(pc.is_in(new_entries["run_id"], runs.combine_chunks()))
        if _is_done(change, rows):
            new_entries = new_entries[:0]
        query = "SELECT COALESCE(MAX(entry), 0) FROM journal"
        ((last,),) = stored.connection.sql(query).fetchall()
        rows["journal"] = numbered(new_entries, last)
    return rows


def _is_done(change: Change, rows: Mapping[str, pa.Table]) -> bool:
    """Whether another process has stored the same dumps, so that the change changes no run."""
    removed = change.runs, change.dumps, change.emptied_runs, change.emptied_parts
    added = (len(rows[name]) for name in _OF_RUNS & rows.keys())
    return "dumps" in rows and not any(removed) and not any(added)


def _parts(stored: Stored, change: Change) -> pa.Table:
    """The parts to add. Parts that another process stored since stay as they are.

    All parts of a run with an emptied part are added, because all are removed.
    """
    runs = {run for run, _ in change.emptied_parts}
    own = change.rows_of("run_parts").to_pylist()
    stored_parts = stored.rows(
        "run_parts", "run_id", {row["run_id"] for row in own} | runs
    ).to_pylist()
    kept = {
        (row["run_id"], row["host"]): row
        for row in stored_parts
        if row["run_id"] not in change.emptied_runs
        and (row["run_id"], row["host"]) not in change.emptied_parts
    }
    new = {(row["run_id"], row["host"]): row for row in own}
    added = {key: row for key, row in {**new, **kept}.items() if key[0] in runs or key not in kept}
    return arrow.rows("run_parts", list(added.values()))


def gone_dumps(stored: Stored, change: Change) -> set[int]:
    """The dumps that are removed with emptied or deleted runs and parts."""
    emptied = {run for run, _ in change.emptied_parts}
    runs = {*change.emptied_runs, *change.deleted_runs}
    dumps = stored.rows("dumps", "run_id", runs | emptied, ("dump_id", "run_id", "host"))
    return {
        row["dump_id"]
        for row in dumps.to_pylist()
        if row["run_id"] in runs or (row["run_id"], row["host"]) in change.emptied_parts
    }


def _without(rows: pa.Table, key: str, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows[key], ids)))


# -- Runs --------------------------------------------------------------------------------------


def _require_runs(stored: Stored, change: Change) -> None:
    """Require that runs that existed when the change was begun are still the same."""
    stored_times = ingested_at(stored, change)
    new = set(change.rows_of("runs")["run_id"].to_pylist()) - change.runs
    for run in sorted(_runs(change)):
        begun = change.begun.get(run)
        if begun is not None and begun.ingested_at is not None:
            is_same = stored_times.get(run) == begun.ingested_at
        else:
            is_same = run in stored_times or run in new
        if not is_same:
            raise ChangedMeanwhileError(f"deleted or replaced run {run!r}")


def ingested_at(stored: Stored, change: Change) -> dict[str, datetime]:
    """The times of ingest of the stored runs that a change adds rows to."""
    runs = stored.rows("runs", "run_id", _runs(change), ("run_id", "ingested_at"))
    return {row["run_id"]: row["ingested_at"] for row in runs.to_pylist()}


def _runs(change: Change) -> set[str]:
    names = ("runs", "run_labels", "dumps", "oom_reports")
    return set().union(*(change.rows_of(name)["run_id"].to_pylist() for name in names))


def _runs_and_labels(stored: Stored, change: Change) -> tuple[pa.Table, pa.Table]:
    """The rows of runs and labels to add. Runs that another process stored since stay."""
    rows = change.rows["runs"].to_pylist()
    ids = {row["run_id"] for row in rows}
    stored_runs = set(stored.rows("runs", "run_id", ids, ("run_id",))["run_id"].to_pylist())
    new = [row for row in rows if row["run_id"] not in change.runs | stored_runs]
    if new:
        # `run_seq` is the order of entering, and other runs may have entered since.
        ((last,),) = stored.connection.sql("SELECT COALESCE(MAX(run_seq), 0) FROM runs").fetchall()
        shift = max(0, last + 1 - min(row["run_seq"] for row in new))
        for row in new:
            row["run_seq"] += shift
    kept = [row for row in rows if row["run_id"] in change.runs]
    own, stored_labels = (
        _by_run(rows_of_labels)
        for rows_of_labels in (
            change.rows_of("run_labels"),
            stored.rows("run_labels", "run_id", ids),
        )
    )
    labels = [
        {"run_id": run, "key": key, "value": value}
        for run in sorted(ids)
        for key, value in _labels(change, run, own.get(run, {}), stored_labels.get(run, {})).items()
    ]
    return arrow.rows("runs", kept + new), arrow.rows("run_labels", labels)


def _labels(
    change: Change, run: str, own: Mapping[str, str], stored_labels: Mapping[str, str]
) -> dict[str, str]:
    """The labels to add to a run; for a run that is written anew, all its labels."""
    if run not in change.runs:
        return {key: value for key, value in own.items() if key not in stored_labels}
    before = change.begun[run].labels if run in change.begun else stored_labels
    # Labels that another process set since stay.
    kept = {key: value for key, value in stored_labels.items() if key in own or key not in before}
    return kept | {key: value for key, value in own.items() if before.get(key) != value}


def _by_run(labels: pa.Table) -> dict[str, dict[str, str]]:
    labels_of_run: dict[str, dict[str, str]] = {}
    for row in labels.to_pylist():
        labels_of_run.setdefault(row["run_id"], {})[row["key"]] = row["value"]
    return labels_of_run


# -- Dumps -------------------------------------------------------------------------------------


def _dumps_stored_meanwhile(stored: Stored, change: Change) -> set[int]:
    """The dumps to add that another process has stored since, with the same content."""
    own = {row["dump_id"]: row for row in change.rows["dumps"].to_pylist()}
    gone = gone_dumps(stored, change)
    runs = {row["run_id"] for row in own.values()} - {*change.emptied_runs}
    stored_meanwhile: set[int] = set()
    by_run: dict[str, dict[int, Mapping[str, Any]]] = {run: {} for run in runs}
    for row in stored.rows("dumps", "run_id", runs).to_pylist():
        if row["dump_id"] not in gone:
            by_run[row["run_id"]][row["dump_id"]] = row
    for run, stored_dumps in by_run.items():
        new = {
            dump for dump, row in own.items() if row["run_id"] == run and dump not in change.dumps
        }
        both = new & stored_dumps.keys()
        if any(_content(own[dump]) != _content(stored_dumps[dump]) for dump in both):
            raise ChangedMeanwhileError(f"stored other dumps of run {run!r}")
        if run in change.begun and not change.joins:
            _require_one_night(change.begun[run], run, new, stored_dumps)
        if change.joins and {_occurrence(own[dump]) for dump in new - both} & {
            _occurrence(row) for row in stored_dumps.values()
        }:
            raise ChangedMeanwhileError(f"stored dumps of the same names in run {run!r}")
        stored_meanwhile |= both
    return stored_meanwhile


def _require_one_night(
    begun: Begun, run: str, new: set[int], stored_dumps: Mapping[int, Mapping[str, Any]]
) -> None:
    """Require that the stored dumps of a run and those of this process are of one night.

    Two processes store the dumps of a night in the same order, so that the dumps of one process
    are among those of the other.
    """
    whole = {dump for dump, row in stored_dumps.items() if row["status"] != _FAILED}
    own = begun.dumps | new
    if not whole <= own and not own <= stored_dumps.keys():
        raise ChangedMeanwhileError(f"stored other dumps of run {run!r}")


def _occurrence(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("workload", "module_name", "platform", "occurrence"))


def _content(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without what a log may change later, and without what was said of the files."""
    return {name: value for name, value in row.items() if name not in ("oom", "files_id")}


def _require_sets(stored: Stored, change: Change) -> None:
    """Require that sets that were stored when the change was begun are so, or written again."""
    for key, name in SETS.items():
        known = set().union(*(begun.sets[key] for begun in change.begun.values()))
        required = known & set(change.rows["dumps"][key].to_pylist())
        written = set(change.rows_of(name)[key].to_pylist())
        if not required <= stored.ids(name, key) | written:
            raise ChangedMeanwhileError(f"deleted {name} of these dumps")


def _require_modules(stored: Stored, change: Change, own_modules: Set[int]) -> None:
    """Require that the modules of new dumps are stored, or part of the change."""
    required = set(change.rows["dumps"]["module_id"].drop_null().to_pylist())
    if not required <= stored.ids("modules", "module_id") | own_modules:
        raise ChangedMeanwhileError("deleted modules of these dumps")


# -- Accepted values and out-of-memory messages ------------------------------------------------


def _accepted(stored: Stored, change: Change) -> pa.Table:
    """The accepted values to add, without those that another process has stored since."""
    rows = change.rows["accepted_changes"]
    dumps = set(rows["dump_id"].to_pylist())
    stored_dumps = stored.rows("dumps", "dump_id", dumps, ("dump_id",))["dump_id"].to_pylist()
    if dumps - {*stored_dumps, *change.rows_of("dumps")["dump_id"].to_pylist()}:
        raise ChangedMeanwhileError("deleted the run")
    stored_rows = stored.rows("accepted_changes", "dump_id", dumps, _VALUE).to_pylist()
    values = {tuple(row.values()) for row in stored_rows}
    is_new = [tuple(row.values()) not in values for row in rows.select(_VALUE).to_pylist()]
    return rows.filter(pa.array(is_new, pa.bool_()))


def _require_reports(stored: Stored, change: Change) -> None:
    """Require that the stored messages are those that this process has seen, or its own."""
    own = change.rows_of("oom_reports").to_pylist()
    stored_reports = stored.rows("oom_reports", "run_id", change.oom_runs).to_pylist()
    seen = [] if change.seen_reports is None else change.seen_reports.to_pylist()
    if _sorted(stored_reports) not in (_sorted(seen), _sorted(own)):
        runs = ", ".join(repr(run) for run in sorted(change.oom_runs))
        raise ChangedMeanwhileError(f"stored other messages of run {runs}")


def _sorted(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(reports, key=lambda row: (row["run_id"], row["oom_id"]))


# Plan: the files that a commit must add and remove to make a change of a snapshot.
#
# If another process commits first, the change is planned again for the newer snapshot.

# The relations whose rows stay if a dump is written anew.
_KEPT_OF_DUMPS = ("accepted_changes", "oom_reports")
_OOM = ("oom_reports", "oom_buffers")
_PARTS = ("run_parts",)

Rows = dict[str, pa.Table]


@dataclass(frozen=True)
class Planned:
    """The actions that make a change, and what they remove.

    runs: the deleted runs; dumps, orphans: how many dumps and modules are removed; ingested_at:
    the times of ingest of the runs that rows are added to, after the change.
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
    removed_dumps = gone_dumps(stored, change)
    removals = _removals(stored, change, replaced | change.modules, gone_runs, removed_dumps)
    orphans: set[int] = set()
    if change.drops_orphans:
        unreferred = _orphans(stored, change, rows, removed_dumps, own_modules | modules)
        orphans = unreferred.pop("module_id")
        removals.drop("module_id", orphans, but=("dumps",))
        for key, sets in unreferred.items():
            removals.drop(key, sets, only=(SETS[key],))
    removes, adds = removals.without(
        stored.connection, stored.place, stored.snapshot.files, _mark_oom(stored, change, rows)
    )
    for file in change.files:
        left_out = kept | orphans
        adds.append(without_modules(stored.place, file, left_out) if left_out else file)
    adds += [
        write_file(stored.place, name, rows_of_name)
        for name, rows_of_name in rows.items()
        if len(rows_of_name)
    ]
    changed = _changed_runs(stored, change, rows, replaced | change.modules)
    actions = Actions([file for file in adds if file.rows], removes, changed)
    stored_runs = stored.rows("runs", "run_id", change.deleted_runs, ("run_id",))[
        "run_id"
    ].to_pylist()
    deleted = [run for run in change.deleted_runs if run in stored_runs]
    times = ingested_at(stored, change)
    times |= (
        {row["run_id"]: row["ingested_at"] for row in rows["runs"].to_pylist()}
        if "runs" in rows
        else {}
    )
    return Planned(actions, deleted, len(removed_dumps), len(orphans & modules), times)


def _collisions(stored: Stored, change: Change, both: set[int]) -> tuple[set[int], set[int]]:
    """Of the change's modules that are stored: those to replace, and those to keep as stored."""
    both = both - change.modules
    if not both:
        return set(), set()
    dumps = change.rows_of("dumps")
    complete = set(dumps.filter(pc.equal(dumps["status"], "ok"))["module_id"].to_pylist())
    stored_dumps = stored.rows("dumps", "module_id", both, ("module_id", "status"))
    stored_complete = set(
        stored_dumps.filter(pc.equal(stored_dumps["status"], "ok"))["module_id"].to_pylist()
    )
    replaced = (both & complete) - stored_complete
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
        oom_ids = [row["oom_id"] for row in reports if row["path"].startswith(f"{host}/")]
        drop("oom_id", oom_ids, only=_OOM)
    removals.drop_labels(*change.without_labels)
    return removals


def _orphans(
    stored: Stored, change: Change, rows: Rows, gone_dumps: set[int], modules: set[int]
) -> dict[str, set[int]]:
    """Of these modules and of all sets, those that no dump refers to after the change, by key."""
    removed = pa.array(sorted(gone_dumps | change.dumps), pa.int64())
    query = f"SELECT dump_id, module_id, {', '.join(SETS)} FROM dumps"
    dumps_left = stored.connection.sql(query).to_arrow_table()
    dumps_left = dumps_left.filter(pc.invert(pc.is_in(dumps_left["dump_id"], removed)))
    new_dumps = rows.get("dumps", change.rows_of("dumps"))

    def referred(key: str) -> set[int]:
        return {*dumps_left[key].to_pylist(), *new_dumps[key].to_pylist()}

    stored_ids = {"module_id": modules} | {k: set(stored.ids(n, k)) for k, n in SETS.items()}
    return {key: ids - referred(key) for key, ids in stored_ids.items()}


def _mark_oom(stored: Stored, change: Change, rows: Rows) -> set[int]:
    """Mark new dumps that ran out of memory by a message, and return the dumps of new messages."""
    reports = change.rows_of("oom_reports")
    of_new_messages = set(reports["dump_id"].drop_null().to_pylist()) if change.oom_runs else set()
    if "dumps" in rows:
        dumps = rows["dumps"]
        # Another process may have stored a message since the dump was read.
        again = change.dumps & set(dumps["dump_id"].to_pylist())
        reports = stored.rows("oom_reports", "dump_id", again, ("dump_id",))
        of_stored_messages = reports["dump_id"].to_pylist()
        marked = pa.array(sorted(of_new_messages.union(of_stored_messages)), pa.int64())
        oom = pc.or_(dumps["oom"], pc.is_in(dumps["dump_id"], marked))
        place = dumps.schema.get_field_index("oom")
        rows["dumps"] = dumps.set_column(place, "oom", oom)
    return of_new_messages


def _changed_runs(stored: Stored, change: Change, rows: Rows, modules: set[int]) -> list[str]:
    """The runs whose history may change."""
    changed = {*change.changed_runs, *change.runs, *change.emptied_runs, *change.deleted_runs}
    # The causes of a dump depend on whether it ran out of memory.
    changed |= change.oom_runs | {run for run, _ in change.emptied_parts}
    for name in ("runs", "run_labels", "dumps"):
        if name in rows:
            changed.update(rows[name]["run_id"].to_pylist())
    dumps = stored.rows("dumps", "module_id", modules, ("run_id",))
    return sorted(changed | set(dumps["run_id"].to_pylist()))
