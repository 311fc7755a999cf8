"""Upkeep of a lake: compaction, vacuum, upgrades, and repair of what is damaged."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...xla.parts import space_of
from .. import arrow
from ..errors import WarehouseError
from ..journal import entries, entry, numbered
from ..stores.base import SETS, Compacted
from ..stores.duckdb import memory_database
from ..versions import LAYOUTS, layout
from . import storage
from .changes import Removals
from .commits import Actions, commit, discard
from .data_files import (
    HISTORY,
    LAKE_VERSION,
    LAYOUT_PROPERTY,
    MOST_BYTES,
    VERSION_PROPERTY,
    DataFile,
    fault,
    file_size,
    portions,
    read_files,
    relations,
    union_schema,
    write_file,
)
from .lake_errors import lake_errors
from .lake_tables import LARGE_VIEWS, SMALL_VIEWS, connect, hold, may_hold, show
from .snapshot import Lake, Snapshot

# Compaction: many small files of a relation become few large ones; the rows stay.
#
# Any number of compactions and writers may run at once. A merged file is written once: if another
# process commits first, the merged files whose parts are all still in the lake are committed to
# the newer version.

# A file of at least this size stays as it is. So does a smaller one while all that are smaller than
# it are less than half of it together: old months are not written anew for each night, and a row is
# written only as often as its file grows by half. It does not pay to spare the smallest.
_LARGE_BYTES = MOST_BYTES // 2
_SMALL_BYTES = 256 << 10
# Merged files are committed in batches of this size, so that an interruption loses no more.
_COMMIT_BYTES = 1 << 30


def compact(lake: Lake, enter: Callable[[], None]) -> Compacted:
    """Merge the small files of each relation; the bytes of all files before and after.

    `enter` adds the entry of the journal. It is called only if there are files to merge, and
    before these are merged, so that its own small file is merged too and a compacted lake stays as
    it is. Raises WarehouseError.
    """
    before = _size(lake.refresh())
    if next(_groups(lake.snapshot), None) is None:
        return Compacted(before, before)
    enter()
    todo = _groups(lake.snapshot)
    merged: list[tuple[list[DataFile], DataFile]] = []
    for group in todo:
        if not lake.snapshot.paths.issuperset(file.path for file in group):
            continue
        with lake_errors(lake.place):
            rows = read_files(lake.place, group, group[0].relation)
            merged.append((group, write_file(lake.place, group[0].relation, rows)))
        if sum(file.size_bytes for group, _ in merged for file in group) >= _COMMIT_BYTES:
            _commit(lake, merged)
            merged = []
    if merged:
        _commit(lake, merged)
    return Compacted(before, _size(lake.snapshot))


def _commit(lake: Lake, merged: list[tuple[list[DataFile], DataFile]]) -> None:
    def plan(snapshot: Snapshot) -> Actions:
        """The merged files all of whose parts are still in the lake."""
        complete = [
            (group, file)
            for group, file in merged
            if snapshot.paths.issuperset(part.path for part in group)
        ]
        adds = [file for _, file in complete]
        removes = [part for group, _ in complete for part in group]
        return Actions(adds, removes, same_rows=True)

    done = commit(lake, plan)
    # The merged file of a group is of no use if a part has left the lake.
    discard(lake.place, (file for _, file in merged), but=done.adds if done else ())


def _groups(snapshot: Snapshot) -> Iterator[list[DataFile]]:
    """The groups of files to merge. The history has no groups: it is stored anew as a whole."""
    for relation, files in sorted(snapshot.files.items()):
        if relation in HISTORY or relation not in relations():
            continue
        small = sorted(
            (file for file in files if file.size_bytes < _LARGE_BYTES),
            key=lambda file: (file.size_bytes, file.path),
        )
        for alike in _of_like_sizes(small):
            sized = ((file, file_size(file)) for file in alike)
            yield from (group for group in portions(sized) if len(group) > 1)


def _of_like_sizes(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """The files, the smallest first, in lists that end before a file that is far larger."""
    alike: list[DataFile] = []
    together = 0
    for file in files:
        if alike and file.size_bytes > max(2 * together, _SMALL_BYTES):
            yield alike
            alike, together = [], 0
        alike.append(file)
        together += file.size_bytes
    yield alike


def _size(snapshot: Snapshot) -> int:
    return sum(file.size_bytes for files in snapshot.files.values() for file in files)


# Vacuum: files that no version of the lake needs any more are deleted.
#
# These are files that compaction and deletion removed from the lake, and files of writers that
# died before their commit. Only vacuum may delete files of a lake.

# Longer than any ingest, or any read of an older version, takes.
RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class Vacuumed:
    """The files that were deleted, or would be: their paths in the lake, and their bytes."""

    files: Sequence[str]
    size_bytes: int


def vacuum(lake: Lake, retention: timedelta = RETENTION, *, dry_run: bool = False) -> Vacuumed:
    """Delete files that left the lake, or were never part of it, for longer than `retention`.

    A writer or reader that takes longer than that fails. With `dry_run` nothing is deleted.
    Raises WarehouseError.
    """
    hours = int(retention / timedelta(hours=1))
    with lake_errors(lake.place):
        sizes = storage.sizes(lake.place)
        lake.refresh()
        # Only a full vacuum finds the files of dead writers, because it lists all stored files.
        listed = lake.table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
        # The log still names files that an earlier vacuum deleted some days ago.
        deleted = [path for path in listed if path in sizes]
        if deleted and not dry_run:
            lake.table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            lake.refresh()
            lake.table.create_checkpoint()
        if not dry_run:
            # Deletes entries of the log that are older than its own retention, 30 days.
            lake.table.cleanup_metadata()
    return Vacuumed(deleted, sum(sizes[path] for path in deleted))


# Upgrade: a lake of an older layout gets the tables of today.
#
# Each step can be repeated, so that after an interruption the next process that writes continues.
# The new version is set first and the new layout last: in between, older memhouses refuse the lake
# and this one continues.

# What the journal says of an upgrade.
_UPGRADED = f"to lake version {LAKE_VERSION}"


def upgrade(lake: Lake) -> None:
    """Upgrade the lake. Raises WarehouseError."""
    from deltalake.schema import Field, Schema

    wanted = Schema.from_arrow(union_schema()).fields
    with lake_errors(lake.place):
        stored = {column.name for column in lake.table.schema().fields}
        new = [Field(f.name, f.type, nullable=True) for f in wanted if f.name not in stored]
        if new:
            lake.table.alter.add_columns(new)
        lake.table.alter.set_table_properties(
            {VERSION_PROPERTY: str(LAKE_VERSION)}, raise_if_not_exists=False
        )
    lake.refresh()
    digest = lake.table.metadata().configuration.get(LAYOUT_PROPERTY)
    has_long_ids = digest not in _OF_SHORT_IDS

    def rewritten(snapshot: Snapshot) -> Actions:
        return _rewritten(lake.place, snapshot, has_long_ids=has_long_ids)

    if commit(lake, rewritten) is None:
        raise WarehouseError(f"cannot upgrade {lake.place}: others write to it: try again")
    with lake_errors(lake.place):
        lake.table.alter.set_table_properties(
            {LAYOUT_PROPERTY: layout()}, raise_if_not_exists=False
        )
    lake.refresh()


def _rewritten(place: str, snapshot: Snapshot, *, has_long_ids: bool) -> Actions:
    """All files anew, with an entry of the journal that says so; nothing if they are.

    The history is left out: it is worked out anew.
    """
    journal = read_files(place, snapshot.of("journal"), "journal").sort_by("entry")
    if _UPGRADED in journal["detail"].to_pylist():
        return Actions()
    runs = read_files(place, snapshot.of("runs"), "runs")
    done = entries(entry("upgrade", _UPGRADED))["journal"]
    last = pc.max(journal["entry"]).as_py() or 0
    rows = {"journal": numbered(done, last)}
    if not last:
        rows = _parts_and_entries(runs, done)
    spaces = _spaces(place, snapshot)
    files_of_dumps, rows["file_sets"] = _file_sets(place, snapshot)
    adds = [write_file(place, name, table) for name, table in rows.items() if len(table)]
    # One file is held at a time.
    for name in relations():
        if name not in HISTORY:
            for file in snapshot.of(name):
                table = _upgraded(name, read_files(place, [file], name), spaces, files_of_dumps)
                if has_long_ids:
                    table = _with_short_ids(table)
                adds.append(write_file(place, name, table))
    removes = [file for name in (*relations(), _OF_BEFORE) for file in snapshot.of(name)]
    return Actions(adds, removes, changed_runs=runs["run_id"].to_pylist())


def _upgraded(
    name: str, rows: pa.Table, spaces: pa.Table, files_of_dumps: Mapping[int, int]
) -> pa.Table:
    """The rows of a file of an older lake as this memhouse writes them.

    `spaces` has the rows of memory_spaces, with the column space; `files_of_dumps` the files_id of
    each dump. Ids are as they were.
    """
    if name == "dumps":
        files_ids = [files_of_dumps.get(id_) for id_ in rows["dump_id"].to_pylist()]
        rows = _filled(rows, "files_id", pa.chunked_array([pa.array(files_ids, pa.int64())]))
    if name == "runs":
        rows = _filled(rows, "compiled_at", rows["run_at"])
    if name == "modules":
        rows = _filled(rows, "reader_version", pa.scalar(0, pa.int32()))
        is_estimated = pc.equal(rows["origin"], "estimated")
        rows = _filled(rows, "grade", is_estimated.cast(pa.int32()))
    if {"space", "memory_space"} <= {*rows.column_names}:
        rows = _filled(rows, "space", _in_spaces(rows, spaces))
    if name == "run_parts":
        hosts = pc.if_else(pc.equal(rows["host"], ""), None, rows["host"])
        rows = rows.set_column(rows.column_names.index("host"), "host", hosts)
    return rows


# The relation that lakes before version 8 have in place of `file_sets`.
_OF_BEFORE = "dump_files"


def _file_sets(place: str, snapshot: Snapshot) -> tuple[dict[int, int], pa.Table]:
    """The files_id of each dump, and the rows of file_sets, by the upgrade of DuckDB files."""
    of_sets = [
        column for column in arrow.schema("file_sets") if column.name not in ("files_id", "name")
    ]
    of_dumps = [pa.field("dump_id", pa.int64()), pa.field("path", pa.string())]
    columns = pa.schema([*of_dumps, *of_sets])
    dumps = read_files(place, snapshot.of("dumps"), "dumps").select(["dump_id", "workload"])
    files = read_files(place, snapshot.of(_OF_BEFORE), _OF_BEFORE, columns)
    with memory_database() as connection:
        for name, rows in (("dumps", dumps), (_OF_BEFORE, files)):
            connection.register("before", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM before")
        connection.execute(_STEP.read_text())
        files_of_dumps = dict(connection.sql("SELECT dump_id, files_id FROM dumps").fetchall())
        return files_of_dumps, arrow.plain(connection.table("file_sets").to_arrow_table())


_STEP = Path(__file__).parents[1] / "upgrades" / "0008_file_sets.sql"


def _with_short_ids(rows: pa.Table) -> pa.Table:
    """As xla/hashes.py: the upper 53 of 63 bits."""
    for place, column in enumerate(rows.column_names):
        if column in _HASHES:
            rows = rows.set_column(place, column, pc.shift_right(rows[column], 10))
    return rows


# From lake version 5 on.
_OF_SHORT_IDS = frozenset(digest for version, digest in LAYOUTS.items() if version >= 5)
# The columns of ids that are hashes.
_HASHES = frozenset({"module_id", "dump_id", "flags_id", "program_id", "skeleton_id", "oom_id"})


def _spaces(place: str, snapshot: Snapshot) -> pa.Table:
    """The memory spaces of all modules, with the column space."""
    dumps, rows = (
        read_files(place, snapshot.of(name), name) for name in ("dumps", "memory_spaces")
    )
    platforms = dict(
        zip(dumps["module_id"].to_pylist(), dumps["platform"].to_pylist(), strict=True)
    )
    columns = (rows[name].to_pylist() for name in ("module_id", "memory_space", "space_name"))
    spaces = [
        space_of(number, name, platforms.get(module_id))
        for module_id, number, name in zip(*columns, strict=True)
    ]
    return rows.set_column(
        rows.schema.get_field_index("space"), "space", pa.array(spaces, pa.string())
    )


def _in_spaces(rows: pa.Table, spaces: pa.Table) -> pa.Array:
    """The name of the memory space of each row; `spaces` has the names of all modules."""
    modules = pc.unique(spaces["module_id"])
    # Numbers of memory spaces have 31 bits.
    keys, wanted = (
        pc.add(
            pc.shift_left(pc.index_in(table["module_id"], value_set=modules).cast(pa.int64()), 31),
            table["memory_space"].cast(pa.int64()),
        )
        for table in (spaces, rows)
    )
    at = pc.index_in(wanted, value_set=keys.combine_chunks())
    return spaces["space"].combine_chunks().take(at.combine_chunks())


def _parts_and_entries(runs: pa.Table, upgraded: pa.Table) -> dict[str, pa.Table]:
    """The parts of runs and the entries of the journal, which lake version 1 lacks."""
    rows = runs.sort_by("run_seq").to_pylist()
    parts = [
        {
            "run_id": row["run_id"],
            "host": None,
            "source": row["source"],
            "entered_at": row["ingested_at"],
        }
        for row in rows
    ]
    ingests = [
        {
            **entry("ingest", "before the journal was kept", row["run_id"]),
            "entered_at": row["ingested_at"],
            "tool_version": row["tool_version"],
            "reader_version": 0,
            "by_whom": "",
        }
        for row in rows
    ]
    journal = pa.concat_tables([entries(*ingests)["journal"], upgraded])
    return {"run_parts": arrow.rows("run_parts", parts), "journal": numbered(journal, 0)}


def _filled(rows: pa.Table, column: str, values: pa.ChunkedArray | pa.Scalar) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, column, pc.coalesce(rows[column], values))


# Check and repair: which files are damaged, and which rows go with them so that the rest is whole.
#
# The log has the size, the row count and the least and greatest ids of each data file; the file's
# name has the SHA-256 of its content. Which modules lost rows with a file follows from the other
# files: a relation has all rows of a module in one file, so that the lost file had the rows of the
# modules that have none elsewhere.

# By relation that only some modules have rows in: these are the modules with rows in another
# relation that meet a condition.
_HAVE_ROWS = {
    "alias_sets": ("values", "alias_set IS NOT NULL"),
    "calls": ("computations", "NOT is_entry"),
    "computations": ("instructions", "computation IS NOT NULL"),
    "entry_shapes": ("modules", "entry_signature IS NOT NULL"),
    "operands": ("instructions", "computation IS NOT NULL"),
    "peak_parts": ("module_memory", "memory_space = 0 AND peak_bytes > 0"),
    "reported_peak": ("modules", "reported_peak_bytes IS NOT NULL"),
    "residuals": ("values", "residual_id IS NOT NULL"),
    "scopes": ("instructions", "scope_id IS NOT NULL"),
    "stack_frames": ("instructions", "stack_frame_id IS NOT NULL"),
    "traits": ("instructions", "computation IS NOT NULL"),
}
# References that may be null, and the key of their rows: a dump without flags, a message without a
# dump.
_REFERENCES = {("dumps", "flags_id"): "dump_id", ("oom_reports", "dump_id"): "oom_id"}
_RUNS = """SELECT run_id FROM runs UNION SELECT run_id FROM dumps
    UNION SELECT run_id FROM run_labels"""
_MODULES = """SELECT module_id FROM modules
    UNION SELECT module_id FROM dumps WHERE module_id IS NOT NULL"""
# `check` judges the run that entered last. Without its lost entry, that would be an older run.
_ENTERED_LAST = """SELECT run_id, host, entered_at FROM run_parts
    WHERE run_id NOT IN (
        SELECT run_id FROM journal
        WHERE run_id IS NOT NULL AND action IN ('ingest', 'replace', 'import')
    )
    AND entered_at > COALESCE(
        (SELECT MAX(entered_at) FROM journal WHERE action IN ('ingest', 'replace', 'import')),
        'epoch'
    )
    ORDER BY entered_at"""


@dataclass(frozen=True)
class Damage:
    """A data file that is damaged or missing: its relation, what is wrong, how many rows it had.

    runs: the runs whose rows it had, or may have had, by the files that are left.
    """

    file: str
    relation: str
    what: str
    rows: int
    runs: Sequence[str]


@dataclass(frozen=True)
class Checked:
    """The result of a check of a lake's data files.

    files: how many the lake has; unchecked: how many of these have no checksum or were not read.
    """

    files: int
    unchecked: int
    damaged: Sequence[Damage]


@dataclass(frozen=True)
class Repaired:
    """The files that a repair dropped, and the runs, dumps and modules that their rows belong to.

    incomplete_runs: runs that stay but lost rows, such as dumps, labels or accepted changes.
    """

    files: Sequence[str] = ()
    runs: Sequence[str] = ()
    dumps: int = 0
    modules: int = 0
    incomplete_runs: Sequence[str] = ()


def check(lake: Lake, *, read_data: bool = False) -> Checked:
    """Check that each data file exists and has the size that was written.

    With `read_data` also read each file and compare its SHA-256. Raises WarehouseError.
    """
    files = [file for files in lake.refresh().files.values() for file in files]
    faults = _faults(lake.place, files, read_data=read_data)
    unchecked = sum(
        file.path not in faults and (not read_data or file.sha256 is None) for file in files
    )
    if not faults:
        return Checked(len(files), unchecked, [])
    with lake_errors(lake.place), _Intact(lake.place, lake.snapshot, faults) as rest:
        damaged = [
            Damage(file.path, file.relation, faults[file.path], file.rows, rest.runs_of(file))
            for file in rest.lost
        ]
    return Checked(len(files), unchecked, damaged)


def repair(lake: Lake, damaged: Collection[str]) -> Repaired:
    """Drop these files by their paths, and all rows that are not whole without theirs; one commit.

    Raises WarehouseError.
    """
    done = Repaired()

    def plan(snapshot: Snapshot) -> Actions:
        nonlocal done
        faults = dict.fromkeys(snapshot.paths & set(damaged), "")
        if not faults:
            done = Repaired()
            return Actions()
        with lake_errors(lake.place), _Intact(lake.place, snapshot, faults) as rest:
            actions, done = rest.actions()
        return actions

    lake.refresh()
    commit(lake, plan)
    return done


def _faults(place: str, files: Iterable[DataFile], *, read_data: bool) -> dict[str, str]:
    with lake_errors(place):
        sizes = storage.sizes(place)
        fault_of_file = {
            file.path: fault(place, file, sizes.get(file.path), read=read_data) for file in files
        }
    return {path: what for path, what in fault_of_file.items() if what is not None}


class _Intact:
    """The rows of the files that are not lost, and which of these rows a repair must drop."""

    def __init__(self, place: str, snapshot: Snapshot, faults: Mapping[str, str]) -> None:
        self.place = place
        self.snapshot = snapshot
        self.lost = [
            file
            for _, files in sorted(snapshot.files.items())
            for file in files
            if file.path in faults
        ]
        kept = {
            name: tuple(file for file in files if file.path not in faults)
            for name, files in snapshot.files.items()
        }
        self.kept = Snapshot(snapshot.version, kept)
        self.connection = connect(place)

    def __enter__(self) -> "_Intact":
        hold(self.connection, self.place, self.kept)
        show(self.connection, self.place, self.kept, (*SMALL_VIEWS, *LARGE_VIEWS))
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # -- Rows of a lost file ---------------------------------------------------------------

    def runs_of(self, file: DataFile) -> list[str]:
        """The runs whose rows a lost file had, or may have had."""
        name = file.relation
        columns = arrow.schema(name).names if name in relations() else []
        if name in HISTORY:
            return []
        if "run_id" in columns:
            return sorted(_ids_in_range(file, "run_id", self._set(_RUNS)))
        key = next((key for key in ("module_id", "dump_id", *SETS) if key in columns), None)
        if key is None:
            return []
        of = {"module_id": self.modules_of, "dump_id": self.dumps_of}
        ids = of.get(key, self.sets_of)(file)
        query = f"SELECT DISTINCT run_id FROM dumps WHERE {key} IN (SELECT UNNEST($1))"
        return sorted(self._set(query, sorted(ids)))

    def modules_of(self, file: DataFile) -> set[int]:
        """The modules whose rows a lost file had, or may have had."""
        modules = _ids_in_range(file, "module_id", self._set(_MODULES))
        modules -= self._set(f'SELECT DISTINCT module_id FROM "{file.relation}"')
        other, condition = _HAVE_ROWS.get(file.relation, ("", ""))
        # A module whose rows in the other relation are also lost is found by that relation's file.
        if other:
            modules &= self._set(f'SELECT DISTINCT module_id FROM "{other}" WHERE {condition}')
        return modules

    def dumps_of(self, file: DataFile) -> set[int]:
        """The dumps whose rows a lost file may have had."""
        return _ids_in_range(file, "dump_id", self._set("SELECT dump_id FROM dumps"))

    def sets_of(self, file: DataFile) -> set[int]:
        """The sets of flags or files whose rows a lost file may have had."""
        (key,) = (key for key, name in SETS.items() if name == file.relation)
        referred = self._set(f"SELECT DISTINCT {key} FROM dumps WHERE {key} IS NOT NULL")
        return _ids_in_range(file, key, referred - self._set(f"SELECT {key} FROM {file.relation}"))

    # -- Rows that a repair drops ----------------------------------------------------------

    def actions(self) -> tuple[Actions, Repaired]:
        """The commit that leaves only whole rows, and what it drops."""
        lost_modules, lost_files, touched = set[int](), set[int](), set[str]()
        may_lack_dumps = set[str]()
        for file in self.lost:
            touched.update(self.runs_of(file))
            if file.relation == "dumps":
                may_lack_dumps.update(self.runs_of(file))
            elif file.relation == "file_sets":
                lost_files |= self.sets_of(file)
            elif _has(file.relation, "module_id"):
                lost_modules |= self.modules_of(file)
        keys = "dump_id, run_id, module_id, flags_id, files_id"
        dumps = self._table(f"SELECT {keys} FROM dumps").to_pylist()
        runs = self._set("SELECT run_id FROM runs")
        modules = self._set("SELECT module_id FROM modules")
        kept = [
            row
            for row in dumps
            if row["run_id"] in runs
            and row["files_id"] not in lost_files
            and row["module_id"] not in lost_modules
            and (row["module_id"] is None or row["module_id"] in modules)
        ]
        had_dumps = {row["run_id"] for row in dumps} | may_lack_dumps
        # A run that lost all its dumps must not look like a night in which nothing was compiled.
        emptied = had_dumps - {row["run_id"] for row in kept}
        whole: dict[str, set[int | str]] = {
            "run_id": runs - emptied,
            "dump_id": {row["dump_id"] for row in kept},
            "module_id": {row["module_id"] for row in kept},
            **{key: {row[key] for row in kept} for key in SETS},
        }
        removals = self._removals(whole)
        adds = self._without_references(removals, whole)
        removes, rewritten = removals.without(self.connection, self.place, self.kept.files, set())
        # Each part of the history depends on all runs, so that it is worked out anew.
        history_files = [file for name in HISTORY for file in self.kept.of(name)]
        all_runs = runs | had_dumps | touched
        dropped = all_runs - whole["run_id"]
        touched |= {row["run_id"] for row in dumps if row["dump_id"] not in whole["dump_id"]}
        repaired = Repaired(
            [file.path for file in self.lost],
            sorted(dropped),
            len(dumps) - len(kept) + sum(f.rows for f in self.lost if f.relation == "dumps"),
            len((modules | lost_modules) - whole["module_id"]),
            sorted(touched - dropped),
        )
        adds.append(write_file(self.place, "journal", self._entries(repaired, whole["run_id"])))
        return Actions(
            [*rewritten, *adds], [*removes, *history_files, *self.lost], sorted(all_runs)
        ), repaired

    def _entries(self, done: Repaired, runs: set[int | str]) -> pa.Table:
        """The journal's entries: of the repair, and of the last runs if theirs are lost."""
        is_lost = any(file.relation == "journal" for file in self.lost)
        restored = [
            {
                **entry("ingest", "its entry was lost", row["run_id"]),
                **row,
            }
            for row in (self._table(_ENTERED_LAST).to_pylist() if is_lost else [])
            if row["run_id"] in runs
        ]
        detail = f"{len(done.files)} files dropped, with {done.dumps} dumps, {done.modules} modules"
        repair_entries = [
            entry("repair", detail),
            *(entry("repair", detail, run) for run in done.runs),
        ]
        ((last,),) = self.connection.sql("SELECT COALESCE(MAX(entry), 0) FROM journal").fetchall()
        return numbered(entries(*restored, *repair_entries)["journal"], last)

    def _removals(self, whole: Mapping[str, set[int | str]]) -> Removals:
        """The rows whose run, dump, module or flag set is not in the lake."""
        removals = Removals()
        keys = [
            (name, key)
            for name in relations()
            for key in whole
            if name not in (*HISTORY, "journal")
            and _has(name, key)
            and (name, key) not in _REFERENCES
        ]
        for name, key in keys:
            ids = self._set(f'SELECT DISTINCT {key} FROM "{name}" WHERE {key} IS NOT NULL')
            removals.drop(key, ids - whole[key], only=(name,))
        orphans = "SELECT oom_id FROM oom_buffers ANTI JOIN oom_reports USING (oom_id)"
        removals.drop("oom_id", self._set(orphans), only=("oom_buffers",))
        return removals

    def _without_references(
        self, removals: Removals, whole: Mapping[str, set[int | str]]
    ) -> list[DataFile]:
        """Files with the rows whose lost reference becomes null; they replace the old rows."""
        adds = []
        whole = {**whole, "flags_id": self._set("SELECT flags_id FROM compiler_flags")}
        for (name, key), row_key in _REFERENCES.items():
            rows = self._table(f"SELECT * FROM {name} WHERE {key} IS NOT NULL")
            is_lost = [
                row["run_id"] in whole["run_id"]
                and row[key] not in whole[key]
                and (name != "dumps" or row["dump_id"] in whole["dump_id"])
                for row in rows.to_pylist()
            ]
            rows = rows.filter(pa.array(is_lost, pa.bool_()))
            if len(rows):
                removals.drop(row_key, rows[row_key].to_pylist(), only=(name,))
                place = rows.schema.get_field_index(key)
                nulls = pa.nulls(len(rows), rows.schema.field(key).type)
                adds.append(write_file(self.place, name, rows.set_column(place, key, nulls)))
        return adds

    def _table(self, query: str) -> pa.Table:
        return arrow.plain(self.connection.sql(query).to_arrow_table())

    def _set(self, query: str, *parameters: object) -> set[Any]:
        """The values of the only column of a query."""
        rows = self.connection.sql(query, params=list(parameters)).to_arrow_table()
        return set(rows.column(0).to_pylist())


def _has(relation: str, key: str) -> bool:
    return relation in relations() and key in arrow.schema(relation).names


def _ids_in_range(file: DataFile, key: str, ids: set[Any]) -> set[Any]:
    """The ids that a file may have rows of, by its statistics in the log."""
    return {id_ for id_ in ids if may_hold(file, key, [id_])}
