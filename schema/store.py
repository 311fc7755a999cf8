"""The store: the tables of a warehouse in a DuckDB file, or in memory."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from . import arrow
from .causes.find_causes import find_causes
from .causes.sides import VERSIONS
from .compaction import QUICK_BYTES, Compacted, compact, has_much_free
from .connection import connect, database_path, forget_blocks, one_thread
from .errors import QueryError, WarehouseError, duckdb_says, with_remedy
from .history import series
from .journal import dropped, entries, entry, label_entries
from .private_folder import remove_leftovers
from .readable import figures_table
from .table_rows import (
    OOM_TABLES,
    SETS,
    delete,
    delete_dumps,
    delete_orphans,
    delete_part,
    insert,
    insert_all,
)
from .tables import INTERNAL
from .versions import READER_VERSION

# A file holds its tables' meanings, also of tables that a user made.
FILE_TABLES = f"""SELECT table_name AS "table", estimated_size AS "rows", comment AS "holds"
    FROM duckdb_tables() WHERE schema_name <> '{INTERNAL}'
    ORDER BY table_oid"""
# The comment of a closed list has its words.
FILE_COLUMNS = f"""SELECT column_name AS "column", SPLIT_PART(data_type, '(', 1) AS "type",
        comment AS "meaning"
    FROM duckdb_columns()
    WHERE NOT internal AND schema_name <> '{INTERNAL}' AND table_name = $1
        AND table_name IN (SELECT table_name FROM duckdb_tables())
    ORDER BY column_index"""

CRASHES = (duckdb.InternalException, duckdb.FatalException)
# DuckDB's newest joins pass dictionaries on, and mistake one for another where it has swapped the
# sides of several joins. As written most queries take as long, some 1.4 times.
CAUTIOUS = "SET disabled_optimizers = 'build_side_probe_side'"


_HOSTS = "SELECT host FROM run_parts WHERE run_id = $1"
_OUTDATED = f"SELECT module_id FROM modules WHERE reader_version < {READER_VERSION}"
_COMPLETE = f"SELECT DISTINCT module_id FROM dumps WHERE status = 'ok' EXCEPT ({_OUTDATED})"
# A run that entered lately stays, whatever time it claims.
_RUNS_BEFORE = """SELECT run_id FROM runs
    WHERE run_at < $1 AND ingested_at < $1
        AND run_id NOT IN (SELECT run_id FROM run_parts WHERE entered_at >= $1)
    ORDER BY run_at, run_seq"""
_OF_PARTS = """FROM dumps
    WHERE run_id = $1 AND ($2 OR list_contains($3, host) OR ($4 AND host IS NULL))"""
_FILES = f"""SELECT files_id, kind, status, sha256 FROM file_sets
    WHERE files_id IN (SELECT files_id {_OF_PARTS})"""
_NIGHTS = """SELECT * FROM runs WHERE run_id = $1 OR starts_with(run_id, $1 || '@')
    ORDER BY run_seq DESC"""
_ALL_RUNS = "SELECT run_id FROM runs"
# What stays of a dump that is written again.
_KEPT_OF_DUMPS = ("accepted_changes", "oom_reports")
_SET_OOM = """UPDATE dumps SET oom = TRUE WHERE NOT oom AND dump_id IN
    (SELECT dump_id FROM oom_reports WHERE list_contains($1, run_id) OR list_contains($2, dump_id))
"""
_BESIDE = (".wal", ".wal.checkpoint", ".wal.recovery", ".tmp")
_DUMPS_OF_RUNS = """SELECT run_id, COUNT(*) FROM dumps
    WHERE run_id IN (SELECT UNNEST($1)) GROUP BY run_id"""
_HAS_FILES = "SELECT current_setting('enable_external_access')"
_AMONG = "SELECT * FROM {} WHERE run_id IN (SELECT UNNEST($1))"


class StoredFile(NamedTuple):
    """What tells whether a file of a stored dump is the same: see `file_sets`."""

    kind: str
    status: str
    sha256: str | None


@dataclass(frozen=True)
class Known:
    """What a store holds when the ingest of a run begins.

    run: the run's row, None if the run is new; hosts: of its parts, see `run_parts`; labels: the
    run's labels; dumps: the rows of the run's dumps, by dump_id; files: the files of these dumps,
    by files_id; modules: the ids of all modules; complete: the ids of modules of
    dumps that were read whole by the readers of today; outdated: of modules that older readers
    read; sets: the ids of all sets of compiler flags and of files, by their key; next_run_seq: that
    of the next new run.
    """

    run: Mapping[str, Any] | None
    hosts: frozenset[str | None]
    labels: Mapping[str, str]
    dumps: Mapping[int, Mapping[str, Any]]
    files: Mapping[int, Sequence[StoredFile]]
    modules: frozenset[int]
    complete: frozenset[int]
    outdated: frozenset[int]
    sets: Mapping[str, frozenset[int]]
    next_run_seq: int


@dataclass(frozen=True)
class Batch:
    """Rows to add, by table, and the rows that they replace.

    The store first deletes the rows that `modules`, `dumps` and `runs` name: every row of
    these modules, these dumps, these runs with their labels, and the
    out-of-memory reports of the runs in `oom_runs`. What users said of a dump, that they accept
    its growth, stays. So do out-of-memory reports; a dump that has one gets `oom`. Entries of
    `journal` are numbered by the store.
    """

    tables: Mapping[str, pa.Table]
    modules: Sequence[int] = ()
    dumps: Sequence[int] = ()
    runs: Sequence[str] = ()
    oom_runs: Sequence[str] = ()


@dataclass
class Deleted:
    """How many runs, dumps and modules were deleted."""

    runs: int = 0
    dumps: int = 0
    modules: int = 0
    run_ids: Sequence[str] = field(default=())

    def _repr_html_(self) -> str:
        figures = [("runs", self.runs), ("dumps", self.dumps), ("modules", self.modules)]
        return figures_table(f"deleted: {', '.join(self.run_ids) or 'nothing'}", figures)


class Store:
    """The tables of a warehouse in a DuckDB file, or in memory.

    Every method that changes rows is atomic and keeps `history` correct. All methods raise
    WarehouseError if the file cannot be read or written. `connect` is called when the connection
    is first needed; `is_new`: the file is yet to be made.
    """

    how_sql_changes = "--write (in Python write=True) lets it change the warehouse"

    def __init__(
        self,
        name: str,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        *,
        read_only: bool = False,
        is_new: bool = False,
    ) -> None:
        self.name = name
        self.read_only = read_only
        self.is_new = is_new
        self._connect = connect
        self._is_replacing = False
        self._is_writing = False
        self._is_cautious = False
        self._equipment: list[str] = []

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        connection = self._connect()
        # What is in memory cannot be opened again.
        if self._is_cautious or self._is_in_memory:
            connection.execute(CAUTIOUS)
        for script in self._equipment:
            connection.execute(script)
        self.is_new = False
        return connection

    # -- Reading ---------------------------------------------------------------------------

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query; `$1`, `$2` and so on stand for the parameters.

        A statement without rows, such as SET, returns an empty table. Raises QueryError.
        """
        return self._tried(query, parameters, only_reads=False)

    def ask(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a user's query, which changes nothing. Raises QueryError."""
        return self._tried(query, parameters, only_reads=True)

    def _tried(self, query: str, parameters: Sequence[object], *, only_reads: bool) -> pa.Table:
        """The rows; on a query that DuckDB failed on by a mistake of its own, tried once more."""
        try:
            return self._rows(query, parameters, only_reads=only_reads)
        except QueryError as error:
            if not (isinstance(error.__cause__, CRASHES) and self._reopen()):
                raise
        return self._rows(query, parameters, only_reads=only_reads)

    def _rows(self, query: str, parameters: Sequence[object], *, only_reads: bool) -> pa.Table:
        connection = self.connection
        if only_reads:
            connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            found = self._fetched(query, parameters)
            if only_reads:
                connection.commit()
        except BaseException:
            if only_reads:
                # After the user's own COMMIT there is nothing to end.
                with suppress(duckdb.Error):
                    connection.rollback()
            raise
        return found

    def _fetched(self, query: str, parameters: Sequence[object]) -> pa.Table:
        duck = self.connection

        def run() -> pa.Table:
            relation = duck.sql(query, params=list(parameters))
            return pa.table({}) if relation is None else arrow.plain(relation.to_arrow_table())

        # DuckDB ignores Ctrl-C while it fetches, so another thread fetches and this one waits.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(run)
            try:
                return found.result()
            except KeyboardInterrupt:
                duck.interrupt()
                raise
            except duckdb.Error as error:
                raise QueryError(duckdb_says(error)) from error

    def known(self, run_id: str, *hosts: str | None) -> Known:
        """What the store holds of this run, and the ids of all modules and sets.

        With hosts only the dumps of their parts of the run; None is the part without a host.
        """
        run = self._dicts("SELECT * FROM runs WHERE run_id = $1", run_id)
        labels = self._dicts("SELECT key, value FROM run_labels WHERE run_id = $1", run_id)
        given = [run_id, not hosts, list(hosts), None in hosts]
        dumps = self._dicts(f"SELECT * {_OF_PARTS}", *given)
        files: dict[int, list[StoredFile]] = {}
        for files_id, *file in self.connection.sql(_FILES, params=given).fetchall():
            files.setdefault(files_id, []).append(StoredFile(*file))
        return Known(
            run=run[0] if run else None,
            hosts=frozenset(row["host"] for row in self._dicts(_HOSTS, run_id)),
            labels={row["key"]: row["value"] for row in labels},
            dumps={row["dump_id"]: row for row in dumps},
            files=files,
            modules=self._ids("SELECT module_id FROM modules"),
            complete=self._ids(_COMPLETE),
            outdated=self._ids(_OUTDATED),
            sets={key: self._ids(f"SELECT DISTINCT {key} FROM {SETS[key]}") for key in SETS},
            next_run_seq=max(self._ids("SELECT MAX(run_seq) FROM runs"), default=0) + 1,
        )

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that claim a time before this one, and of which all parts entered before it."""
        return [row[0] for row in self.connection.sql(_RUNS_BEFORE, params=[time]).fetchall()]

    def nights(self, name: str) -> list[Mapping[str, Any]]:
        """The rows of the run `name` and of runs named NAME@…, the last to enter first."""
        return list(self._dicts(_NIGHTS, name))

    def pairs(self, a_run_id: str, b_run_id: str) -> pa.Table:
        """The dumps of run B paired with those of run A, as `series.pair_runs` pairs them.

        Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
        """
        return series.pair_runs(self.connection, a_run_id, b_run_id)

    def causes(self, pairs: Sequence[tuple[int, int]]) -> pa.Table:
        """Why the second dump of each pair differs from the first, in the order of the pairs.

        Columns: a_dump_id, b_dump_id; cause, one line of fewer than 100 characters, null if
        only names, lines and constants differ; terms, the rows of `causes`: kind, term,
        change_bytes, source and role. The change_bytes add up to the change of the peak.
        """
        return find_causes(self.rows, pairs)

    def _dicts(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        found = arrow.plain(self.connection.sql(query, params=list(parameters)).to_arrow_table())
        return list(found.to_pylist())

    def _ids(self, query: str) -> frozenset[int]:
        column = self.connection.sql(query).to_arrow_table().column(0)
        return frozenset(column.drop_null().to_pylist())

    def listed_tables(self) -> pa.Table:
        """The tables: table, rows (an estimate), holds."""
        return self.rows(FILE_TABLES)

    def listed_columns(self, table: str) -> pa.Table:
        """The columns of a table: column, type, meaning."""
        return self.rows(FILE_COLUMNS, [table])

    def owns(self, file_status: os.stat_result) -> bool:
        """Whether the file with this status is the warehouse: reading it would drop its lock."""
        try:
            return os.path.samestat(file_status, os.stat(self.name))  # noqa: PTH116
        except OSError:  # A database in memory.
            return False

    def holds(self, path: Path) -> bool:
        """Whether it is the database, by any name, or a file that DuckDB has beside it."""
        database = database_path(self.name)
        if database is None:
            return False
        try:
            place, own = path.resolve(), database.resolve()
            is_beside = any(place == own.with_name(own.name + ending) for ending in _BESIDE)
            return place == own or is_beside or path.samefile(own)
        except (OSError, ValueError):
            return False

    # -- Writing ---------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""
        with self.transaction():
            changed = self._changed_runs(batch)
            delete(self.connection, "module_id", batch.modules, but=("dumps",))
            delete(self.connection, "dump_id", batch.dumps, but=_KEPT_OF_DUMPS)
            delete(self.connection, "run_id", batch.runs, only=("runs", "run_labels"))
            delete(self.connection, "run_id", batch.oom_runs, only=OOM_TABLES)
            insert_all(self.connection, batch.tables)
            if batch.oom_runs or batch.dumps:
                self.connection.execute(_SET_OOM, [list(batch.oom_runs), list(batch.dumps)])
            series.refresh(self.connection, changed, changed, self.causes)
        # A limit that cannot be had would end the transaction.
        if not self._is_replacing:
            forget_blocks(self.connection, self.name)

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and sets that no other run refers to."""
        with self.transaction():
            names = list(run_ids)
            there = [row["run_id"] for row in self._dicts(_AMONG.format("runs"), names)]
            counts = dict(self.connection.sql(_DUMPS_OF_RUNS, params=[names]).fetchall())
            dumps = delete_dumps(self.connection, names)
            # The journal keeps what was there.
            delete(self.connection, "run_id", names, but=("journal",))
            orphans = delete_orphans(self.connection)
            tombstones = [entry("prune", dropped(counts.get(run, 0)), run) for run in there]
            insert_all(self.connection, entries(*tombstones))
            series.refresh(self.connection, [], [], self.causes)
        # On a full disk the deletion stays in the log, until a later command writes the file.
        with suppress(duckdb.Error):
            self.connection.execute("CHECKPOINT")
        return Deleted(len(there), dumps, orphans, there)

    @contextmanager
    def replacing(self, run_id: str, host: str | None) -> Iterator[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then.

        With a host only those of its part. All that is written in the block is part of it: all or
        nothing. The run and its labels stay. At the end the yielded value says what was deleted.
        """
        deleted = Deleted(1, run_ids=[run_id])
        with self.transaction():
            self._is_replacing = True
            try:
                deleted.dumps = delete_part(self.connection, run_id, host)
                yield deleted
                # Only now: modules of the deleted dumps may be modules of the new ones.
                deleted.modules = delete_orphans(self.connection)
                series.refresh(self.connection, [run_id], [run_id], self.causes)
            finally:
                self._is_replacing = False

    def label(self, run_ids: Sequence[str], labels: Mapping[str, str | None]) -> None:
        """Set these labels of each of these runs; a label that is None is removed."""
        rows = [
            {"run_id": run_id, "key": key, "value": value}
            for run_id in dict.fromkeys(run_ids)
            for key, value in labels.items()
            if value is not None
        ]
        with self.transaction():
            parameters = [list(run_ids), list(labels)]
            self.connection.execute(
                "DELETE FROM run_labels WHERE list_contains($1, run_id) AND list_contains($2, key)",
                parameters,
            )
            insert(self.connection, "run_labels", arrow.rows("run_labels", rows))
            insert_all(self.connection, label_entries(run_ids, labels))
            moved = [] if labels.keys().isdisjoint(("branch", "suite")) else run_ids
            changed = [] if labels.keys().isdisjoint(VERSIONS) else run_ids
            series.refresh(self.connection, moved, changed, self.causes)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises QueryError.
        """
        self._require_writable()
        with self.transaction():
            rows = self.rows(query, parameters)
            runs = [run_id for (run_id,) in self.connection.sql(_ALL_RUNS).fetchall()]
            series.refresh(self.connection, runs, runs, self.causes)
            insert_all(self.connection, entries(entry("sql", " ".join(query.split()))))
        return rows

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing."""
        with one_thread(self.connection), self.transaction():
            self.connection.execute(script)

    def equip(self, script: str) -> None:
        """Run SQL statements that make temporary views and macros, for as long as it is open."""
        self.execute(script)
        self._equipment.append(script)

    def compact(self) -> Compacted:
        """Make the file as small as it can be; the sizes that it had and has."""
        if self.read_only:
            raise WarehouseError(f"cannot compact {self.name}: it was opened read-only")
        try:
            return compact(self.connection, self.name)
        finally:
            self._let_go()

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Compact the file if much of it is free and at most `most_bytes` are used.

        None if the file stays as it is, also because it cannot be compacted now. A call ends the
        use of a store: between it and the next call other processes may use the file.
        """
        if self.read_only or "connection" not in vars(self):
            return None
        # On a full disk, or beside another connection, the file stays as it is.
        with suppress(WarehouseError, duckdb.Error):
            if has_much_free(self.connection, self.name, most_bytes):
                return self.compact()
        return None

    def close(self) -> None:
        """Close the file."""
        if "connection" in vars(self):
            self.connection.close()

    @contextmanager
    def opened_to_files(self, *, writes: bool) -> Iterator["Store"]:
        """The file with other files, instead of this store in the block. Raises QueryError."""
        if self._is_in_memory:
            raise QueryError("SQL on a warehouse in memory opens no files: make one in a file")
        if writes:
            self._require_writable()
        self._let_go()
        opened = open_file(self.name, read_only=not writes, files=True)
        try:
            ((has_files,),) = opened.connection.sql(_HAS_FILES).fetchall()
            if not has_files:
                raise QueryError(
                    f"this process has another connection to {self.name}, which opens no other "
                    "files: close it first"
                )
            for script in self._equipment:
                opened.equip(script)
            yield opened
        finally:
            opened.close()

    # -- Within ----------------------------------------------------------------------------

    def _changed_runs(self, batch: Batch) -> list[str]:
        """The runs whose dumps, modules or labels the batch changes."""
        # Causes tell of a dump whether it ran out of memory.
        changed = {*batch.runs, *batch.oom_runs}
        for name in ("runs", "run_labels", "dumps"):
            if name in batch.tables:
                changed.update(batch.tables[name]["run_id"].unique().to_pylist())
        if batch.modules:
            query = "SELECT DISTINCT run_id FROM dumps WHERE module_id IN (SELECT UNNEST($1))"
            found = self.connection.sql(query, params=[list(batch.modules)]).fetchall()
            changed.update(run_id for (run_id,) in found)
        return sorted(changed)

    @property
    def _is_in_memory(self) -> bool:
        return database_path(self.name) is None

    def _require_writable(self) -> None:
        if self.read_only:
            raise QueryError(f"{self.name} was opened to read only: open it to write")

    def _let_go(self) -> None:
        """Close the connection; the next is made when it is needed."""
        if not self._is_in_memory:
            self.close()
            vars(self).pop("connection", None)
            self._connect = lambda: connect(self.name, read_only=self.read_only)[0]

    def _reopen(self) -> bool:
        is_first, self._is_cautious = not self._is_cautious, True
        self._let_go()
        return is_first and not (self._is_writing or self._is_in_memory)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in the block, or nothing; raises WarehouseError."""
        if self._is_replacing:
            yield
            return
        self.connection.begin()
        self._is_writing = True
        try:
            yield
            self.connection.commit()
        except BaseException as error:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                self.connection.rollback()
            if isinstance(error, CRASHES):
                self._reopen()
            if isinstance(error, duckdb.Error):
                raise WarehouseError(with_remedy(duckdb_says(error))) from error
            raise
        finally:
            self._is_writing = False


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the warehouse at `db`, a DuckDB file or its URL.

    With `create`, what is absent is made. Raises WarehouseError.
    """
    if not read_only:
        remove_leftovers(Path(tempfile.gettempdir()))
    if db and "://" not in db and (db.endswith(os.sep) or Path(db).is_dir()):
        raise WarehouseError(f"{db} is a folder: name a file")
    path = database_path(db) if db and not read_only else None
    if path is not None:
        remove_leftovers(path.resolve().parent)
    return open_file(db, create=create, read_only=read_only)


def open_file(
    db: str, *, create: bool = False, read_only: bool = False, files: bool = False
) -> "Store":
    """Open the warehouse at `db`, a file's path or a duckdb:/// URL, and touch nothing beside it.

    With `create`, an absent or empty database becomes a new warehouse. With `files` its SQL may
    open other files. Raises WarehouseError, and WarehouseBusyError if another process has it open.
    """
    connection, name = connect(db, create=create, read_only=read_only, files=files)
    return Store(name, lambda: connection, read_only=read_only)
