"""Adds rows to tables of DuckDB, and deletes rows by their ids."""

from collections.abc import Sequence
from contextlib import suppress

import duckdb
import pyarrow as pa

from .. import arrow


def insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Add the rows to a table; a shape goes to the column for its length."""
    columns = "*"
    if "shape" in rows.column_names and "_long_shape" in arrow.stored_columns()[name]:
        is_short = f"strlen(shape) <= {arrow.SHORT_TEXT_BYTES}"
        columns = f"""* EXCLUDE shape,
            CASE WHEN {is_short} THEN shape END AS _short_shape,
            CASE WHEN NOT {is_short} THEN [shape] END AS _long_shape"""
    connection.register("incoming", rows)
    try:
        connection.execute(f'INSERT INTO "{name}" BY NAME SELECT {columns} FROM incoming')
    finally:
        # After an error the transaction is aborted, and only its end unregisters.
        with suppress(duckdb.Error):
            connection.unregister("incoming")


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
    for name in only or _tables_with(connection, key):
        if name not in but:
            connection.execute(
                f'DELETE FROM "{name}" WHERE {key} IN (SELECT UNNEST($1))', [list(ids)]
            )


def _tables_with(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    query = """SELECT table_name FROM duckdb_columns() INNER JOIN duckdb_tables()
        USING (table_name) WHERE column_name = $1 ORDER BY table_name"""
    return [row[0] for row in connection.sql(query, params=[column]).fetchall()]
