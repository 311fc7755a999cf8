"""The tables in a lake: one Delta table in a folder or an object store, with many writers."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from threading import Lock

import duckdb
import pyarrow as pa

from .. import arrow
from ..causes.find_causes import find_causes
from ..errors import (
    ChangedMeanwhileError,
    QueryError,
    UnpreparedError,
    WarehouseError,
    duckdb_says,
)
from ..journal import dropped, entries, entry, label_entries
from ..lake import lake_tables, storage
from ..lake.changes import Begun, Change, Planned, plan
from ..lake.commits import Actions, commit, discard
from ..lake.copies import attached, change_from, write_duckdb
from ..lake.data_files import HISTORY, relations
from ..lake.lake_errors import DamagedFileError, lake_errors
from ..lake.lake_history import history_actions, use_history
from ..lake.lake_tables import Stored
from ..lake.snapshot import Lake, Snapshot
from ..lake.upkeep import Checked, Repaired, Vacuumed, check, compact, repair, upgrade, vacuum
from .base import QUICK_BYTES, Batch, Compacted, Deleted, Known
from .duckdb import CAUTIOUS, DuckDBReading, lake_columns, tables_of_lake

# Another process that stored dumps meanwhile makes the history anew as well.
_HISTORY_ATTEMPTS = 5
_NOT_BY_SQL = "a lake is not changed by SQL: use ingest, label, prune or check"
_UNKNOWN_CAUSE = "not known: rows that tell it are damaged"
_NAME = re.compile(r"\w+")
_CANNED = """SELECT view_name, sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal"""
# DuckDB's word for what a transaction that only reads refuses.
_READ_ONLY = "read-only mode"
_DUMPS_OF_RUNS = """SELECT run_id, COUNT(*) AS dumps FROM dumps
    WHERE run_id IN (SELECT UNNEST($1)) GROUP BY run_id"""


class DeltaStore(DuckDBReading):
    """The tables in a lake; `base.Store` says what each method promises.

    It shows the lake as it was when it was opened, or when this process last changed it. The lake
    is opened when it is first needed. Threads may share it for `rows`, and for nothing else.
    """

    is_new = False
    keeps_views = False
    how_sql_changes = _NOT_BY_SQL

    def __init__(
        self, db: str, *, create: bool = False, read_only: bool = False, files: bool = False
    ) -> None:
        self.name = storage.location(db)
        self.read_only = read_only
        self._files = files
        self._is_cautious = False
        self._equipment: list[str] = []
        self._create = create
        self._one_query = Lock()
        # The snapshots that the connection shows so far: of each what asks for it alone needs.
        # Of the tables in memory and the views of small relations,
        self._held: Snapshot | None = None
        # of the history,
        self._history_of: Snapshot | None = None
        # and of the views of large relations.
        self._shown: Snapshot | None = None
        self._history_is_old = False
        self._has_written = False
        self._staged: Change | None = None
        self._begun: dict[str, Begun] = {}
        self._ids_of_files: dict[str, frozenset[int]] = {}
        # Of the files whose ends were looked at: what is wrong, None if nothing is.
        self._faults: dict[str, str | None] = {}
        self._knows_causes = True
        # The SQL of the views that are over other views.
        self._canned: dict[str, str] | None = None

    @cached_property
    def lake(self) -> Lake:
        """The Delta table, with the tables of today."""
        lake = Lake(self.name, create=self._create)
        if not lake.is_current:
            if self.read_only:
                raise UnpreparedError(
                    f"{self.name} is a lake of an older memhouse: "
                    "any `memhouse ingest` into it upgrades it"
                )
            upgrade(lake)
        return lake

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB in memory that shows the tables and the history."""
        snapshot = self.lake.snapshot
        connection = self._with_history
        if self._shown is not snapshot:
            with lake_errors(self.name):
                names = lake_tables.LARGE_VIEWS
                lake_tables.show(connection, self.name, snapshot, names, self._shown)
            self._shown = snapshot
        return connection

    @property
    def tables(self) -> duckdb.DuckDBPyConnection:
        """The connection for what needs neither history nor views."""
        snapshot = self.lake.snapshot
        if self._held is not snapshot:
            with lake_errors(self.name):
                lake_tables.hold(self._duckdb, self.name, snapshot, self._held)
                names = lake_tables.SMALL_VIEWS
                lake_tables.show(self._duckdb, self.name, snapshot, names, self._held)
            self._held = snapshot
        return self._duckdb

    @property
    def _with_history(self) -> duckdb.DuckDBPyConnection:
        """The connection for what needs the tables in memory and the history."""
        connection = self.tables
        if self._history_of is not self.lake.snapshot:
            held, self._history_of = self._history_of, self.lake.snapshot
            try:
                with lake_errors(self.name):
                    # Causes are found by queries, which must not ask for the history.
                    old = use_history(connection, self.lake, self._causes, held)
            except BaseException:
                self._history_of = None
                raise
            self._history_is_old = old
        return connection

    @cached_property
    def _duckdb(self) -> duckdb.DuckDBPyConnection:
        connection = lake_tables.connect(self.name, files=self._files)
        if self._is_cautious:
            connection.execute(CAUTIOUS)
        return connection

    def listed_tables(self) -> pa.Table:
        """The tables: table, rows, holds."""
        return tables_of_lake(sorted(relations()), self._count)

    def listed_columns(self, table: str) -> pa.Table:
        """The columns of a table: column, type, meaning."""
        return lake_columns(relations(), table)

    def owns(self, file_status: os.stat_result) -> bool:
        """No file of a lake looks like a dump."""
        return False

    def holds(self, path: Path) -> bool:
        """Whether the path lies in the lake's folder, if it has one on this machine."""
        if "://" in self.name and not self.name.startswith("file://"):
            return False
        try:
            return path.resolve().is_relative_to(Path(self.name.removeprefix("file://")).resolve())
        except (OSError, ValueError):
            return False

    def _rows(self, query: str, parameters: Sequence[object], *, only_reads: bool) -> pa.Table:
        """The rows of a query, which never changes a table in memory."""
        # A connection has one transaction, whichever thread asks.
        with self._one_query, lake_errors(self.name):
            # The views are made before files of some of them are found to be damaged.
            _ = self.connection
            self._look_at_files(query)
            try:
                return super()._rows(query, parameters, only_reads=True)
            except QueryError as error:
                if _READ_ONLY in str(error):
                    raise QueryError(_NOT_BY_SQL) from error
                raise

    def _reopen(self) -> bool:
        is_first, self._is_cautious = not self._is_cautious, True
        self.close()
        vars(self).pop("_duckdb", None)
        self._held = self._history_of = self._shown = None
        for script in self._equipment:
            self.connection.execute(script)
        return is_first

    @contextmanager
    def opened_to_files(self, *, writes: bool) -> Iterator["DeltaStore"]:
        """The lake with other files. Raises QueryError if it is to be written to."""
        if writes:
            raise QueryError(_NOT_BY_SQL)
        opened = DeltaStore(self.name, read_only=True, files=True)
        try:
            for script in self._equipment:
                opened.equip(script)
            yield opened
        finally:
            opened.close()

    def execute(self, script: str) -> None:
        """Run SQL statements that define views, which a lake keeps as long as it is open."""
        self._canned = None
        try:
            self.connection.execute(script)
        except duckdb.IOException:
            self._execute_without_lost_files(script)
        except duckdb.Error as error:
            raise WarehouseError(duckdb_says(error)) from error

    def equip(self, script: str) -> None:
        """Run SQL statements that make temporary views and macros, for as long as it is open."""
        self.execute(script)
        self._equipment.append(script)

    def _execute_without_lost_files(self, script: str) -> None:
        """Make all but the macros that read a lost file: DuckDB binds a macro when it is made."""
        for statement in self.connection.extract_statements(script):
            try:
                self.connection.execute(statement)
            except (duckdb.IOException, duckdb.CatalogException):
                # It reads the file, or asks a macro that does.
                continue
            except duckdb.Error as error:
                raise WarehouseError(duckdb_says(error)) from error

    # -- Writing ---------------------------------------------------------------------------

    def known(self, run_id: str, *hosts: str | None) -> Known:
        """What the store holds of this run, and the ids of all modules and sets."""
        with lake_errors(self.name):
            known = super().known(run_id, *hosts)
        self._begun[run_id] = Begun.of(known)
        return known

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""
        if self._staged is not None:
            with lake_errors(self.name):
                self._staged.add(self.name, batch)
            return
        with lake_errors(self.name):
            seen = self._stored.rows("oom_reports", "run_id", batch.oom_runs)
            change = Change(begun=self._begun, seen_reports=seen)
            change.add(self.name, batch)
        self._commit(change)

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and sets that no other run refers to."""
        runs = [*dict.fromkeys(run_ids)]
        change = Change(deleted_runs=runs, drops_orphans=True)
        counted = self.rows(_DUMPS_OF_RUNS, [runs]).to_pylist()
        counts = {row["run_id"]: row["dumps"] for row in counted}
        change.add_rows(entries(*(entry("prune", dropped(counts.get(r, 0)), r) for r in runs)))
        done = self._commit(change)
        return Deleted(len(done.runs), done.dumps, done.orphans, done.runs)

    @contextmanager
    def replacing(self, run_id: str, host: str | None) -> Iterator[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then."""
        deleted = Deleted(1, run_ids=[run_id])
        self._staged = Change(
            emptied_runs=[run_id] if host is None else [],
            emptied_parts=[] if host is None else [(run_id, host)],
            drops_orphans=True,
            begun=self._begun,
        )
        try:
            yield deleted
            change = self._staged
        finally:
            self._staged = None
        done = self._commit(change)
        deleted.dumps, deleted.modules = done.dumps, done.orphans

    def label(self, run_ids: Sequence[str], labels: Mapping[str, str | None]) -> None:
        """Set these labels of each of these runs; a label that is None is removed."""
        runs = list(dict.fromkeys(run_ids))
        rows = [
            {"run_id": run_id, "key": key, "value": value}
            for run_id in runs
            for key, value in labels.items()
            if value is not None
        ]
        change = Change(without_labels=(runs, list(labels)), changed_runs=runs)
        change.add_rows({"run_labels": arrow.rows("run_labels", rows)})
        change.add_rows(label_entries(runs, labels))
        self._commit(change)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """A lake is changed by commands alone. Raises QueryError."""
        raise QueryError(_NOT_BY_SQL)

    def compact(self) -> Compacted:
        """Write many small files as few; every row stays."""

        def enter() -> None:
            change = Change()
            change.add_rows(entries(entry("compact", "small files become large ones")))
            self._commit(change)

        return compact(self.lake, enter)

    def vacuum(self, retention: timedelta, *, dry_run: bool = False) -> Vacuumed:
        """Delete files that left the lake, or were never part of it, longer ago than that."""
        return vacuum(self.lake, retention, dry_run=dry_run)

    def check_files(self, *, read_data: bool = False) -> Checked:
        """Which data files are damaged or gone; `read_data` holds contents against their sums."""
        return check(self.lake, read_data=read_data)

    def repair(self, damaged: Collection[str]) -> Repaired:
        """Drop these files, and what is not whole without their rows; all or nothing."""
        done = repair(self.lake, damaged)
        self._has_written = bool(done.files)
        return done

    def import_file(self, db: str) -> list[str]:
        """Store what a DuckDB warehouse holds and the lake does not; the new runs' names.

        All or nothing. Raises WarehouseError if both hold a run with other rows.
        """
        try:
            with attached(self.tables, db), lake_errors(self.name):
                change = change_from(self.tables, self.name)
        except duckdb.Error as error:
            raise WarehouseError(f"cannot import {db}: {duckdb_says(error)}") from error
        self._commit(change)
        return list(change.changed_runs)

    def export_file(self, path: Path, finish: Callable[[Path], None]) -> int:
        """Write every row to a new DuckDB file; how many. `finish` gets it before its name."""
        with lake_errors(self.name):
            self._look_at_files(" ".join(relations()))
            return write_duckdb(self.connection, path, finish)

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Store the history if this process changed what it is worked out from."""
        if not self._has_written:
            return None
        self.lake.refresh()
        # Who opens the lake works it out in memory if others were always faster.
        commit(self.lake, self._history_to_store, most_attempts=_HISTORY_ATTEMPTS)
        self._has_written = False
        return None

    def close(self) -> None:
        """Close the connection."""
        if "_duckdb" in vars(self):
            self._duckdb.close()

    # -- Within ----------------------------------------------------------------------------

    def _commit(self, change: Change) -> Planned:
        """Make a change, for whatever the lake holds by then."""
        self.lake.refresh()
        last = Planned()

        def planned(snapshot: Snapshot) -> Actions:
            nonlocal last
            with lake_errors(self.name):
                last = plan(self._stored, change)
            return last.actions

        try:
            commit(self.lake, planned)
        except ChangedMeanwhileError:
            discard(self.name, change.files, but=())
            raise
        discard(self.name, change.files, but=last.actions.adds)
        self._has_written = True
        self._note_what_was_added(change, last)
        return last

    def _count(self, relation: str) -> int:
        """How many rows a table has: the log says it, but not of the history if it is old."""
        if relation in HISTORY:
            query = f'SELECT COUNT(*) AS "rows" FROM "{relation}"'
            return int(self.rows(query)["rows"][0].as_py())
        return sum(file.rows for file in self.lake.snapshot.of(relation))

    @property
    def _stored(self) -> Stored:
        """The rows as this process sees them."""
        return Stored(self.tables, self.name, self.lake.snapshot, self._ids_of_files)

    def _note_what_was_added(self, change: Change, done: Planned) -> None:
        """A run that this process goes on to ingest holds the dumps that it added."""
        for run_id in done.ingested_at.keys() & self._begun.keys():
            self._begun[run_id].ingested_at = done.ingested_at[run_id]
        for row in change.rows_of("dumps").to_pylist():
            if row["run_id"] in self._begun:
                self._begun[row["run_id"]].add(row)

    def _history_to_store(self, snapshot: Snapshot) -> Actions:
        """What stores the history of the lake's snapshot, if another one is stored."""
        connection = self._with_history
        with lake_errors(self.name):
            stores = self._history_is_old and self._knows_causes
            return history_actions(connection, self.lake) if stores else Actions()

    def _causes(self, pairs: Sequence[tuple[int, int]]) -> pa.Table:
        """Why dumps differ, before the history is there."""

        def rows(query: str, parameters: Sequence[object] = ()) -> pa.Table:
            self._look_at_files(query)
            return self._fetched(query, parameters)

        try:
            with lake_errors(self.name):
                return find_causes(rows, pairs)
        except DamagedFileError:
            # The figures are there. What was found without all rows is not stored.
            self._knows_causes = False
            unknown = {"cause": [_UNKNOWN_CAUSE] * len(pairs), "terms": [[]] * len(pairs)}
            return pa.table(unknown)

    def _look_at_files(self, query: str) -> None:
        """Before a query's views are read: a file may be gone, or claim too many rows."""
        snapshot = self.lake.snapshot
        for name in self._views_of(query):
            files = [file for file in snapshot.of(name) if file.path not in self._faults]
            found = lake_tables.faults_of(self._duckdb, self.name, files)
            self._faults.update((file.path, found.get(file.path)) for file in files)
            faults = {
                file.path: what
                for file in snapshot.of(name)
                if (what := self._faults[file.path]) is not None
            }
            if faults:
                lake_tables.show(self._duckdb, self.name, snapshot, [name], faults=faults)

    def _views_of(self, query: str) -> list[str]:
        """The views over files that a query may ask for, also by way of other views and macros."""
        views = {*lake_tables.SMALL_VIEWS, *lake_tables.LARGE_VIEWS}
        if self._canned is None:
            shown = self._duckdb.sql(_CANNED)
            self._canned = {name: sql for name, sql in shown.fetchall() if name not in views}
        asked, found = [query], set[str]()
        while asked:
            names = {*_NAME.findall(asked.pop().lower())} & (views | self._canned.keys()) - found
            found |= names
            asked += [self._canned[name] for name in names - views]
        return sorted(found & views)
