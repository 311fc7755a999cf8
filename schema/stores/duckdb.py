"""The tables in a DuckDB file: the default store."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from .. import arrow, history
from ..errors import QueryError, WarehouseError, duckdb_says, with_remedy
from . import duckdb_file
from .base import Batch, Deleted, Known

_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> "DuckDBStore":
    """Open the warehouse at `db`, a file's path or a duckdb:/// URL.

    With `create`, an absent or empty database becomes a new warehouse. Raises WarehouseError,
    and WarehouseBusyError if another process has the warehouse open.
    """
    connection, name = duckdb_file.connect(db, create=create, read_only=read_only)
    return DuckDBStore(name, lambda: connection, read_only=read_only)


class DuckDBStore:
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

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        return self._connect()

    # -- Reading ---------------------------------------------------------------------------

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query; `$1`, `$2` and so on stand for the parameters.

        A statement without rows, such as SET, returns an empty table. Raises QueryError.
        """
        duck = self.connection

        def run() -> pa.Table:
            relation = duck.sql(query, params=list(parameters))
            return pa.table({}) if relation is None else relation.to_arrow_table()

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

    def known(self, run_id: str) -> Known:
        """What the store holds of this run, and the ids of all modules and flag sets."""
        run = self._dicts("SELECT * FROM runs WHERE run_id = $1", run_id)
        labels = self._dicts("SELECT key, value FROM run_labels WHERE run_id = $1", run_id)
        dumps = self._dicts("SELECT * FROM dumps WHERE run_id = $1", run_id)
        return Known(
            run=run[0] if run else None,
            labels={row["key"]: row["value"] for row in labels},
            dumps={row["dump_id"]: row for row in dumps},
            modules=self._ids("SELECT module_id FROM modules"),
            complete=self._ids("SELECT DISTINCT module_id FROM dumps WHERE status = 'ok'"),
            flag_sets=self._ids("SELECT DISTINCT flags_id FROM compiler_flags"),
        )

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that were compiled before a time."""
        query = "SELECT run_id FROM runs WHERE run_at < $1 ORDER BY run_at, run_id"
        return [row[0] for row in self.connection.sql(query, params=[time]).fetchall()]

    def worked_out_history(self) -> pa.Table:
        """What the rows of `history` must be."""
        return history.worked_out(self.connection)

    def owns(self, file_status: os.stat_result) -> bool:
        """Whether the file with this status is the warehouse: reading it would drop its lock."""
        try:
            return os.path.samestat(file_status, os.stat(self.name))  # noqa: PTH116
        except OSError:  # A database in memory.
            return False

    # -- Writing ---------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""
        with self._transaction():
            self._delete("module_id", batch.modules, but=("dumps",))
            self._delete("dump_id", batch.dumps, but=("history",))
            self._delete("run_id", batch.runs, only=("runs", "run_labels"))
            for name, table in batch.tables.items():
                self._insert(name, table)
            for run_id in self._changed_runs(batch.tables):
                self._refresh_history(run_id)
        self._forget_blocks()

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and flag sets that no other run refers to."""
        with self._transaction():
            names = list(run_ids)
            there = [row["run_id"] for row in self._dicts(_AMONG.format("runs"), names)]
            dumps = [row["dump_id"] for row in self._dicts(_AMONG.format("dumps"), names)]
            self._delete("dump_id", dumps)
            self._delete("run_id", names)
            orphans = self._ids(
                "SELECT module_id FROM modules WHERE module_id NOT IN "
                "(SELECT module_id FROM dumps WHERE module_id IS NOT NULL)"
            )
            self._delete("module_id", sorted(orphans), but=("dumps",))
            self.connection.execute(
                "DELETE FROM compiler_flags WHERE flags_id NOT IN "
                "(SELECT flags_id FROM dumps WHERE flags_id IS NOT NULL)"
            )
            self._refresh_history(None)
        self.connection.execute("CHECKPOINT")
        return Deleted(len(there), len(dumps), len(orphans), there)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises QueryError.
        """
        with self._transaction():
            rows = self.rows(query, parameters)
            self._refresh_history(None)
        return rows

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing."""
        with self._transaction():
            self.connection.execute(script)

    def close(self) -> None:
        """Close the file."""
        if "connection" in vars(self):
            self.connection.close()

    # -- Within ----------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[None]:
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

    def _delete(
        self,
        key: str,
        ids: Sequence[int | str],
        *,
        only: Sequence[str] = (),
        but: Sequence[str] = (),
    ) -> None:
        """Delete the rows with these ids from every table that has the key."""
        if not ids:
            return
        for name in only or self._tables_with(key):
            if name not in but:
                self.connection.execute(
                    f'DELETE FROM "{name}" WHERE {key} IN (SELECT UNNEST($1))', [list(ids)]
                )

    def _tables_with(self, column: str) -> list[str]:
        query = """SELECT table_name FROM duckdb_columns() INNER JOIN duckdb_tables()
            USING (table_name) WHERE column_name = $1 ORDER BY table_name"""
        return [row[0] for row in self.connection.sql(query, params=[column]).fetchall()]

    def _insert(self, name: str, rows: pa.Table) -> None:
        columns = "*"
        if "shape" in rows.column_names and "_long_shape" in arrow.stored_columns()[name]:
            is_short = f"strlen(shape) <= {arrow.SHORT_TEXT_BYTES}"
            columns = f"""* EXCLUDE shape,
                CASE WHEN {is_short} THEN shape END AS _short_shape,
                CASE WHEN NOT {is_short} THEN [shape] END AS _long_shape"""
        self.connection.register("incoming", rows)
        try:
            self.connection.execute(f'INSERT INTO "{name}" BY NAME SELECT {columns} FROM incoming')
        finally:
            # After an error the transaction is aborted, and only its end unregisters.
            with suppress(duckdb.Error):
                self.connection.unregister("incoming")

    def _changed_runs(self, tables: Mapping[str, pa.Table]) -> Sequence[str | None]:
        """The runs whose groups have new chains; None stands for all groups.

        A run that is not the latest also changes the chains of the runs after it.
        """
        changed = [
            run
            for name in ("runs", "dumps")
            if name in tables
            for run in tables[name]["run_id"].unique().to_pylist()
        ]
        latest = self.connection.sql(
            "SELECT run_id FROM runs ORDER BY run_at DESC, run_id DESC LIMIT 1"
        ).fetchall()
        if not latest or not changed:
            return ()
        return sorted(set(changed)) if set(changed) == set(latest[0]) else (None,)

    def _refresh_history(self, run_id: str | None) -> None:
        """Recompute the chains of the groups with a dump in a run, or of all groups."""
        links = history.worked_out(self.connection, run_id)
        if run_id is None:
            self.connection.execute("DELETE FROM history")
        else:
            self._delete("dump_id", links["dump_id"].to_pylist(), only=("history",))
        self._insert("history", links)

    def _dicts(self, query: str, parameter: object) -> list[dict[str, Any]]:
        found = self.connection.sql(query, params=[parameter]).to_arrow_table()
        return list(found.to_pylist())

    def _ids(self, query: str) -> frozenset[int]:
        column = self.connection.sql(query).to_arrow_table().column(0)
        return frozenset(column.drop_null().to_pylist())

    def _forget_blocks(self) -> None:
        """Free the memory of the blocks that were read and written.

        DuckDB keeps these blocks until they take most of the machine's memory. The readers
        of dumps need this memory.
        """
        if duckdb_file.database_path(self.name) is None:
            return
        setting = "SELECT current_setting('memory_limit')"
        ((limit,),) = self.connection.sql(setting).fetchall()
        try:
            # A lower limit makes DuckDB free the blocks that are not in use.
            with suppress(duckdb.Error):
                self.connection.execute(f"SET memory_limit = '{_FEW_BLOCKS}'")
        finally:
            # DuckDB truncates the limit that it shows, so setting the shown limit would lower it.
            exact = _ONE_DIGIT.sub(r"\g<0>5", limit)
            self.connection.execute(f"SET memory_limit = '{exact}'")


_AMONG = "SELECT * FROM {} WHERE run_id IN (SELECT UNNEST($1))"
