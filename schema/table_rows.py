"""Rows of the tables in a DuckDB file: adding them, and deleting them by their ids."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import duckdb
import pyarrow as pa

from . import arrow
from .journal import numbered
from .tables import SHORT_TEXT_BYTES

# What dumps refer to by the hash of its rows: by the key, the table. A set is stored once.
SETS = {"flags_id": "compiler_flags", "files_id": "file_sets"}
OOM_TABLES = ("oom_reports", "oom_buffers")
# DuckDB packs BIGINT only in blocks larger than 32 KiB, but stores a run of equal numbers once.
# This order makes such runs.
_ORDERS = {"values": ("module_id", "size_bytes", "logical_bytes", "offset_bytes", "value_id")}


def insert_all(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Add rows to tables; the journal numbers its entries."""
    for name, rows in tables.items():
        if name == "journal":
            query = "SELECT COALESCE(MAX(entry), 0) FROM journal"
            ((last,),) = connection.sql(query).fetchall()
            rows = numbered(rows, last)
        insert(connection, name, rows)


def insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Add the rows to a table."""
    connection.register("incoming", rows)
    try:
        connection.execute(insertion(name, rows.column_names, "incoming"))
    finally:
        # After an error the transaction is aborted, and only its end unregisters.
        with suppress(duckdb.Error):
            connection.unregister("incoming")


def insertion(name: str, columns: Sequence[str], source: str) -> str:
    """The statement that adds a source's rows to a table; `columns` are the source's.

    A shape goes to the column for its length.
    """
    # A damaged dump's rows lack columns.
    sorted_by = ", ".join(key for key in _ORDERS.get(name, ()) if key in columns)
    order = f" ORDER BY {sorted_by}" if sorted_by else ""
    chosen = ", ".join(_as_stored(name, columns))
    return f"INSERT INTO {arrow.sql_name(name)} BY NAME SELECT {chosen} FROM {source}{order}"


def _as_stored(name: str, columns: Sequence[str]) -> Iterator[str]:
    """What is selected of these columns to store them in a table."""
    stored = arrow.stored_columns()[name]
    is_short = f"strlen(shape) <= {SHORT_TEXT_BYTES}"
    for column in columns:
        if column == "shape" and "_long_shape" in stored:
            yield f"CASE WHEN {is_short} THEN shape END AS _short_shape"
            yield f"CASE WHEN NOT {is_short} THEN [shape] END AS _long_shape"
        else:
            yield f'"{column}"'


def delete(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    ids: Sequence[int | str],
    *,
    only: Sequence[str] = (),
    but: Sequence[str] = (),
) -> None:
    """Delete the rows with these ids from every table that has the key."""
    if not ids:
        return
    for name in only or _tables_with(key):
        if name not in but:
            connection.execute(
                f"DELETE FROM {arrow.sql_name(name)} WHERE {key} IN (SELECT UNNEST($1))",
                [list(ids)],
            )


def delete_dumps(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str]) -> int:
    """Delete the dumps of these runs with all that belongs to them; how many there were."""
    query = "SELECT dump_id FROM dumps WHERE run_id IN (SELECT UNNEST($1))"
    dumps = [row[0] for row in connection.sql(query, params=[list(run_ids)]).fetchall()]
    delete(connection, "dump_id", dumps)
    delete(connection, "run_id", run_ids, only=OOM_TABLES)
    return len(dumps)


def delete_part(connection: duckdb.DuckDBPyConnection, run_id: str, host: str | None) -> int:
    """Delete a run's dumps, or those of one host's part; how many there were."""
    if host is None:
        delete(connection, "run_id", [run_id], only=("run_parts",))
        return delete_dumps(connection, [run_id])
    connection.execute("DELETE FROM run_parts WHERE run_id = $1 AND host = $2", [run_id, host])
    query = "SELECT dump_id FROM dumps WHERE run_id = $1 AND host = $2"
    dumps = [row[0] for row in connection.sql(query, params=[run_id, host]).fetchall()]
    delete(connection, "dump_id", dumps)
    query = "SELECT oom_id FROM oom_reports WHERE run_id = $1 AND starts_with(path, $2 || '/')"
    reports = [row[0] for row in connection.sql(query, params=[run_id, host]).fetchall()]
    delete(connection, "oom_id", reports)
    return len(dumps)


def delete_orphans(connection: duckdb.DuckDBPyConnection) -> int:
    """Delete the modules and sets that no dump refers to; how many modules."""
    query = """SELECT module_id FROM modules WHERE module_id NOT IN
        (SELECT module_id FROM dumps WHERE module_id IS NOT NULL)"""
    orphans = sorted(row[0] for row in connection.sql(query).fetchall())
    delete(connection, "module_id", orphans, but=("dumps",))
    for key, name in SETS.items():
        connection.execute(
            f"DELETE FROM {arrow.sql_name(name)} WHERE {key} NOT IN "
            f"(SELECT {key} FROM dumps WHERE {key} IS NOT NULL)"
        )
    return len(orphans)


def _tables_with(column: str) -> list[str]:
    # DuckDB would bind all views to tell their columns.
    return sorted(name for name, columns in arrow.stored_columns().items() if column in columns)
