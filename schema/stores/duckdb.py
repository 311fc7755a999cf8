"""The tables in a DuckDB file: the default store."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from .. import arrow
from ..causes.sides import VERSIONS
from ..errors import QueryError, WarehouseError, duckdb_says, with_remedy
from ..history import work_out
from ..journal import dropped, entries, entry, label_entries
from . import duckdb_file
from .base import QUICK_BYTES, Batch, Compacted, Deleted
from .duckdb_file import (
    MERGE_ROW_GROUPS,
    OOM_TABLES,
    changed_runs,
    compact,
    delete,
    delete_dumps,
    delete_orphans,
    delete_part,
    has_much_free,
    insert,
    insert_all,
    threads_for,
)
from .reading import CAUTIOUS, CRASHES, FILE_COLUMNS, FILE_TABLES, DuckDBReading


def open_store(
    db: str, *, create: bool = False, read_only: bool = False, files: bool = False
) -> "DuckDBStore":
    """Open the warehouse at `db`, a file's path or a duckdb:/// URL.

    With `create`, an absent or empty database becomes a new warehouse. With `files` its SQL may
    open other files. Raises WarehouseError,
    and WarehouseBusyError if another process has the warehouse open.
    """
    connection, name = duckdb_file.connect(db, create=create, read_only=read_only, files=files)
    return DuckDBStore(name, lambda: connection, read_only=read_only)


class DuckDBStore(DuckDBReading):
    """The tables in a DuckDB file; `base.Store` says what each method promises.

    `connect` is called when the connection is first needed.
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
        self._temporary_views = ""

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        connection = self._connect()
        # What is in memory cannot be opened again.
        if self._is_cautious or self._is_in_memory:
            connection.execute(CAUTIOUS)
        if self._temporary_views:
            connection.execute(self._temporary_views)
        return connection

    # -- Reading ---------------------------------------------------------------------------

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
        database = duckdb_file.database_path(self.name)
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
        nbytes = sum(table.nbytes for table in batch.tables.values())
        with self._transaction(), threads_for(self.connection, nbytes):
            changed = changed_runs(self.connection, batch)
            delete(self.connection, "module_id", batch.modules, but=("dumps",))
            delete(self.connection, "dump_id", batch.dumps, but=_KEPT_OF_DUMPS)
            delete(self.connection, "run_id", batch.runs, only=("runs", "run_labels"))
            delete(self.connection, "run_id", batch.oom_runs, only=OOM_TABLES)
            insert_all(self.connection, batch.tables)
            if batch.oom_runs or batch.dumps:
                self.connection.execute(_SET_OOM, [list(batch.oom_runs), list(batch.dumps)])
            work_out.refresh(self.connection, changed, self._causes)
        # A limit that cannot be had would end the transaction.
        if not self._is_replacing:
            duckdb_file.forget_blocks(self.connection, self.name)

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and flag sets that no other run refers to."""
        with self._transaction():
            names = list(run_ids)
            there = [row["run_id"] for row in self._dicts(_AMONG.format("runs"), names)]
            counts = dict(self.connection.sql(_DUMPS_OF_RUNS, params=[names]).fetchall())
            dumps = delete_dumps(self.connection, names)
            # The lineages as they were tell what changes; the journal keeps what was there.
            delete(self.connection, "run_id", names, but=("lineages", "journal"))
            orphans = delete_orphans(self.connection)
            tombstones = [entry("prune", dropped(counts.get(run, 0)), run) for run in there]
            insert_all(self.connection, entries(*tombstones))
            work_out.refresh(self.connection, [], self._causes)
        self.connection.execute(f"{MERGE_ROW_GROUPS}; CHECKPOINT")
        return Deleted(len(there), dumps, orphans, there)

    @contextmanager
    def replacing(self, run_id: str, host: str | None) -> Iterator[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then."""
        deleted = Deleted(1, run_ids=[run_id])
        with self._transaction():
            self._is_replacing = True
            try:
                deleted.dumps = delete_part(self.connection, run_id, host)
                yield deleted
                # Only now: modules of the deleted dumps may be modules of the new ones.
                deleted.modules = delete_orphans(self.connection)
                work_out.refresh(self.connection, [run_id], self._causes)
                self.connection.execute(MERGE_ROW_GROUPS)
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
        with self._transaction():
            parameters = [list(run_ids), list(labels)]
            self.connection.execute(
                "DELETE FROM run_labels WHERE list_contains($1, run_id) AND list_contains($2, key)",
                parameters,
            )
            insert(self.connection, "run_labels", arrow.rows("run_labels", rows))
            insert_all(self.connection, label_entries(run_ids, labels))
            # A run that changes its lineage is found out; only these labels change causes.
            changed = [] if labels.keys().isdisjoint(VERSIONS) else run_ids
            work_out.refresh(self.connection, changed, self._causes)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises QueryError.
        """
        self._require_writable()
        with self._transaction():
            rows = self.rows(query, parameters)
            self._work_out_history()
            insert_all(self.connection, entries(entry("sql", " ".join(query.split()))))
        return rows

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing."""
        with duckdb_file.one_thread(self.connection), self._transaction():
            self.connection.execute(script)
        if self.read_only:
            self._temporary_views = script

    def compact(self) -> Compacted:
        """Make the file as small as it can be; the sizes that it had and has."""
        if self.read_only:
            raise WarehouseError(f"cannot compact {self.name}: it was opened read-only")
        try:
            return compact(self.connection, self.name)
        finally:
            self._let_go()

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Compact the file if much of it is free and at most `most_bytes` are used."""
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
    def opened_to_files(self, *, writes: bool) -> Iterator["DuckDBStore"]:
        """The file with other files, instead of this store in the block. Raises QueryError."""
        if self._is_in_memory:
            raise QueryError("SQL on a warehouse in memory opens no files: make one in a file")
        if writes:
            self._require_writable()
        self._let_go()
        opened = open_store(self.name, read_only=not writes, files=True)
        try:
            ((has_files,),) = opened.connection.sql(_HAS_FILES).fetchall()
            if not has_files:
                raise QueryError(
                    f"this process has another connection to {self.name}, which opens no other "
                    "files: close it first"
                )
            yield opened
        finally:
            opened.close()

    # -- Within ----------------------------------------------------------------------------

    @property
    def _is_in_memory(self) -> bool:
        return duckdb_file.database_path(self.name) is None

    def _require_writable(self) -> None:
        if self.read_only:
            raise QueryError(f"{self.name} was opened to read only: open it to write")

    def _let_go(self) -> None:
        """Close the connection; the next is made when it is needed."""
        if not self._is_in_memory:
            self.close()
            vars(self).pop("connection", None)
            self._connect = lambda: duckdb_file.connect(self.name, read_only=self.read_only)[0]

    def _reopen(self) -> bool:
        is_first, self._is_cautious = not self._is_cautious, True
        self._let_go()
        return is_first and not (self._is_writing or self._is_in_memory)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
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

    def _work_out_history(self) -> None:
        for name, rows in self.worked_out_history().items():
            self.connection.execute(f"DELETE FROM {name}")
            insert(self.connection, name, rows)


# What stays of a dump that is written anew.
_KEPT_OF_DUMPS = ("history", "accepted_changes", "oom_reports")
_SET_OOM = """UPDATE dumps SET oom = TRUE WHERE NOT oom AND dump_id IN
    (SELECT dump_id FROM oom_reports WHERE list_contains($1, run_id) OR list_contains($2, dump_id))
"""
_BESIDE = (".wal", ".wal.checkpoint", ".wal.recovery", ".tmp")
_DUMPS_OF_RUNS = """SELECT run_id, COUNT(*) FROM dumps
    WHERE run_id IN (SELECT UNNEST($1)) GROUP BY run_id"""
_HAS_FILES = "SELECT current_setting('enable_external_access')"
_AMONG = "SELECT * FROM {} WHERE run_id IN (SELECT UNNEST($1))"
