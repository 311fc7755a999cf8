"""What a store reads through a DuckDB connection, wherever the rows are."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from .. import arrow
from ..causes.find_causes import find_causes
from ..errors import QueryError, duckdb_says
from ..history import work_out
from ..versions import READER_VERSION
from .base import Known

# Which tables a store has, what their columns are, and what all this means.

# A file holds its tables' meanings, also of tables that a user made.
FILE_TABLES = """SELECT table_name AS "table", estimated_size AS "rows", comment AS "holds"
    FROM duckdb_tables()
    WHERE table_name NOT IN ('schema_version', 'view_set')
    ORDER BY table_oid"""
FILE_COLUMNS = """SELECT column_name AS "column", data_type AS "type", comment AS "meaning"
    FROM duckdb_columns()
    WHERE NOT internal AND table_name = $1
        AND table_name IN (SELECT table_name FROM duckdb_tables())
    ORDER BY column_index"""
# As DuckDB names the types.
_TYPES = {"TEXT": "VARCHAR", "DATETIME": "TIMESTAMP WITH TIME ZONE"}


def tables_of_lake(names: list[str], count: Callable[[str], int]) -> pa.Table:
    """The tables of a lake: table, rows and holds."""
    # SQLAlchemy is slow to import.
    from ..tables import metadata

    meanings = {table.name: table.comment for table in metadata.tables.values()}
    rows = [{"table": name, "rows": count(name), "holds": meanings[name]} for name in names]
    return pa.Table.from_pylist(rows, schema=_schema("table", "rows", "holds"))


def lake_columns(names: list[str], table: str) -> pa.Table:
    """The columns of a lake's table: column, type, meaning; no rows if there is no such table."""
    from ..tables import metadata

    rows: list[Mapping[str, str | None]] = []
    if table in names:
        meanings = {column.name: column.comment for column in metadata.tables[table].columns}
        stored = arrow.stored_columns()[table]
        rows = [
            {
                "column": name,
                "type": _TYPES.get(stored[name], stored[name]),
                "meaning": meanings[name],
            }
            for name in arrow.schema(table).names
        ]
    return pa.Table.from_pylist(rows, schema=_schema("column", "type", "meaning"))


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64() if name == "rows" else pa.string()) for name in names])


# What a store reads through a DuckDB connection, wherever the rows are.

CRASHES = (duckdb.InternalException, duckdb.FatalException)
# DuckDB's newest joins pass dictionaries on, and mistake one for another where it has swapped the
# sides of several joins. As written most queries take as long, some 1.4 times.
CAUTIOUS = "SET disabled_optimizers = 'build_side_probe_side'"


class DuckDBReading:
    """The reading methods of a store; `base.Store` says what each promises."""

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection that shows tables, history and views."""
        raise NotImplementedError

    @property
    def tables(self) -> duckdb.DuckDBPyConnection:
        """The connection for what needs neither history nor views."""
        return self.connection

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

    def _reopen(self) -> bool:
        """Let the next query have a new connection, after a crash; whether a second try may help.

        After a crash DuckDB refuses everything on the old connection.
        """
        raise NotImplementedError

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
        files: dict[int, list[dict[str, Any]]] = {row["dump_id"]: [] for row in dumps}
        for row in self._dicts(_FILES, run_id):
            files[row["dump_id"]].append(row)
        return Known(
            run=run[0] if run else None,
            hosts=frozenset(row["host"] for row in self._dicts(_HOSTS, run_id)),
            labels={row["key"]: row["value"] for row in labels},
            dumps={row["dump_id"]: row for row in dumps},
            files=files,
            modules=self._ids("SELECT module_id FROM modules"),
            complete=self._ids(_COMPLETE),
            outdated=self._ids(_OUTDATED),
            flag_sets=self._ids("SELECT DISTINCT flags_id FROM compiler_flags"),
            next_run_seq=max(self._ids("SELECT MAX(run_seq) FROM runs"), default=0) + 1,
        )

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that claim a time before this one, and of which all parts entered before it."""
        return [row[0] for row in self.tables.sql(_RUNS_BEFORE, params=[time]).fetchall()]

    def nights(self, name: str) -> list[Mapping[str, Any]]:
        """The rows of the run `name` and of runs named NAME@…, the last to enter first."""
        return list(self._dicts(_NIGHTS, name))

    def worked_out_history(self) -> dict[str, pa.Table]:
        """What the rows of `lineages`, `history` and `gone` must be, by table."""
        return work_out.worked_out(self.connection, self._causes)

    def pairs(self, a_run_id: str, b_run_id: str) -> pa.Table:
        """Which dump of run B follows which of run A: a_dump_id, b_dump_id, matched_by."""
        return work_out.paired(self.connection, a_run_id, b_run_id)

    def causes(self, pairs: Sequence[tuple[int, int]]) -> pa.Table:
        """Why the second dump of each pair differs from the first, in the order of the pairs."""
        return find_causes(self.rows, pairs)

    def _causes(self, pairs: Sequence[tuple[int, int]]) -> Sequence[str | None]:
        """The lines alone."""
        found: list[str | None] = self.causes(pairs)["cause"].to_pylist()
        return found

    def _dicts(self, query: str, parameter: object) -> list[dict[str, Any]]:
        found = self.tables.sql(query, params=[parameter]).to_arrow_table()
        return list(found.to_pylist())

    def _ids(self, query: str) -> frozenset[int]:
        column = self.tables.sql(query).to_arrow_table().column(0)
        return frozenset(column.drop_null().to_pylist())


_HOSTS = "SELECT host FROM run_parts WHERE run_id = $1"
_OUTDATED = f"SELECT module_id FROM modules WHERE reader_version < {READER_VERSION}"
_COMPLETE = f"SELECT DISTINCT module_id FROM dumps WHERE status = 'ok' EXCEPT ({_OUTDATED})"
# A run that entered lately stays, whatever time it claims.
_RUNS_BEFORE = """SELECT run_id FROM runs
    WHERE run_at < $1 AND ingested_at < $1
        AND run_id NOT IN (SELECT run_id FROM run_parts WHERE entered_at >= $1)
    ORDER BY run_at, run_seq"""
_FILES = "SELECT dump_files.* FROM dump_files INNER JOIN dumps USING (dump_id) WHERE run_id = $1"
_NIGHTS = """SELECT * FROM runs WHERE run_id = $1 OR starts_with(run_id, $1 || '@')
    ORDER BY run_seq DESC"""
