"""Which tables a store has, what their columns are, and what all this means."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from .. import arrow

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


def lake_tables(names: list[str], count: Callable[[str], int]) -> pa.Table:
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
