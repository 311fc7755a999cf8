"""The tables in a DuckDB file: the default store."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property

import duckdb
import pyarrow as pa

from .. import arrow
from ..causes.sides import VERSIONS
from ..errors import WarehouseError, duckdb_says, with_remedy
from ..history import work_out
from . import duckdb_compact, duckdb_file
from .base import QUICK_BYTES, Batch, Compacted, Deleted
from .duckdb_reading import DuckDBReading
from .duckdb_rows import (
    MERGE_ROW_GROUPS,
    OOM_TABLES,
    changed_runs,
    delete,
    delete_dumps,
    delete_orphans,
    insert,
    threads_for,
)
from .listed_tables import FILE_COLUMNS, FILE_TABLES


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> "DuckDBStore":
    """Open the warehouse at `db`, a file's path or a duckdb:/// URL.

    With `create`, an absent or empty database becomes a new warehouse. Raises WarehouseError,
    and WarehouseBusyError if another process has the warehouse open.
    """
    connection, name = duckdb_file.connect(db, create=create, read_only=read_only)
    return DuckDBStore(name, lambda: connection, read_only=read_only)


class DuckDBStore(DuckDBReading):
    """The tables in a DuckDB file; `base.Store` says what each method promises.

    `connect` is called when the connection is first needed.
    """

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

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        return self._connect()

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
            for name, table in batch.tables.items():
                insert(self.connection, name, table)
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
            dumps = delete_dumps(self.connection, names)
            # The lineages as they were tell what changes.
            delete(self.connection, "run_id", names, but=("lineages",))
            orphans = delete_orphans(self.connection)
            work_out.refresh(self.connection, [], self._causes)
        self.connection.execute(f"{MERGE_ROW_GROUPS}; CHECKPOINT")
        return Deleted(len(there), dumps, orphans, there)

    @contextmanager
    def replacing(self, run_id: str) -> Iterator[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then."""
        deleted = Deleted(1, run_ids=[run_id])
        with self._transaction():
            self._is_replacing = True
            try:
                deleted.dumps = delete_dumps(self.connection, [run_id])
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
            # A run that changes its lineage is found out; only these labels change causes.
            changed = [] if labels.keys().isdisjoint(VERSIONS) else run_ids
            work_out.refresh(self.connection, changed, self._causes)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises QueryError.
        """
        with self._transaction():
            rows = self.rows(query, parameters)
            self._work_out_history()
        return rows

    def work_out_history(self) -> None:
        """Work the history out from scratch, after changes that went past the store."""
        with self._transaction():
            self._work_out_history()

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing."""
        with duckdb_file.one_thread(self.connection), self._transaction():
            self.connection.execute(script)

    def compact(self) -> Compacted:
        """Make the file as small as it can be; the sizes that it had and has."""
        compacted = duckdb_compact.compact(self.connection, self.name)
        # The connection was closed; the next is made when it is needed.
        self._connect = lambda: duckdb_file.connect(self.name)[0]
        del self.connection
        return compacted

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Compact the file if much of it is free and at most `most_bytes` are used."""
        if self.read_only or "connection" not in vars(self):
            return None
        # On a full disk, or beside another connection, the file stays as it is.
        with suppress(WarehouseError, duckdb.Error):
            if duckdb_compact.has_much_free(self.connection, self.name, most_bytes):
                return self.compact()
        return None

    def close(self) -> None:
        """Close the file."""
        if "connection" in vars(self):
            self.connection.close()

    # -- Within ----------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._is_replacing:
            yield
            return
        self.connection.begin()
        try:
            yield
            self.connection.commit()
        except BaseException as error:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                self.connection.rollback()
            if isinstance(error, duckdb.Error):
                raise WarehouseError(with_remedy(duckdb_says(error))) from error
            raise

    def _work_out_history(self) -> None:
        for name, rows in self.worked_out_history().items():
            self.connection.execute(f"DELETE FROM {name}")
            insert(self.connection, name, rows)


# What stays of a dump that is written anew.
_KEPT_OF_DUMPS = ("history", "accepted_changes", "oom_reports")
_SET_OOM = """UPDATE dumps SET oom = TRUE WHERE NOT oom AND dump_id IN
    (SELECT dump_id FROM oom_reports WHERE list_contains($1, run_id) OR list_contains($2, dump_id))
"""
_AMONG = "SELECT * FROM {} WHERE run_id IN (SELECT UNNEST($1))"
