"""The versions of the tool, of its readers and of its tables.

READER_VERSION grows whenever a reader or a rule gives other rows for the same dump: an ingest
then reads a dump again whose module an older reader stored. LAYOUTS has the digest of the tables
of each schema version, in order: a warehouse with another layout is not opened.
"""

import hashlib
from collections.abc import Iterable

try:
    from .._version import __version__ as _version
except ImportError:
    # A checkout that was pulled and not installed again.
    _version = "0.0"
TOOL_VERSION: str = _version

READER_VERSION = 5

LAYOUTS = {
    1: "d0ad2771e52165e6",
    2: "3191c308cbd9f52e",
    3: "9d5c1679cc246295",
    4: "4e889fd03b0ed714",
    5: "39e67c13787a9104",
    6: "4b6b4d9ace8b40cb",
    7: "bada1e9f0a3fefbc",
    8: "fd759f094e971714",
}
SCHEMA_VERSION = max(LAYOUTS)


def layout() -> str:
    """The digest of the tables that this memhouse has."""
    # It is slow to import.
    from .arrow import duckdb_type, stored_columns

    return layout_digest(
        (table, column, duckdb_type(type_))
        for table, columns in stored_columns().items()
        for column, type_ in columns.items()
    )


def layout_digest(columns: Iterable[tuple[str, str, str]]) -> str:
    """A digest of tables: of each column the table, the name and DuckDB's type, in any order."""
    lines = sorted(f"{table}.{column} {type_}" for table, column, type_ in columns)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
