"""How a lake is laid out: one Delta table, partitioned by `relation`, the name of our table.

A commit of Delta covers one table. All our tables are one Delta table, so that one commit covers
them all. A data file holds the columns of its own relation only; the schema of the Delta table
has the columns of all.
"""

import pyarrow as pa

from .. import arrow
from ..versions import layout

# The version of the layout and of our tables, which grows with them; a lake that has a later one
# is not read.
LAKE_VERSION = 2
VERSION_PROPERTY = "memhouse.lakeVersion"
# The digest of our tables: a lake with another one is upgraded, or is not read.
LAYOUT_PROPERTY = "memhouse.layout"
# The ids by which files are chosen: Delta keeps the least and the greatest of each file.
ID_COLUMNS = ("module_id", "dump_id", "flags_id", "run_id")
# What `schema/history` works out, stored anew as a whole.
HISTORY = ("lineages", "history", "gone")
# One row for a run, a dump, a file, a flag or a module: small, and written at each attempt.
SMALL = (
    "runs",
    "run_parts",
    "run_labels",
    "journal",
    "dumps",
    "dump_files",
    "compiler_flags",
    "accepted_changes",
    "oom_reports",
    "oom_buffers",
)
PROPERTIES = {
    "delta.dataSkippingStatsColumns": ",".join(ID_COLUMNS),
    "delta.checkpointInterval": "20",
    # `vacuum` deletes old entries of the log: who only writes needs no right to delete.
    "delta.enableExpiredLogCleanup": "false",
    # A process that lost the answer to its commit asks whether the commit was made: at once.
    "delta.setTransactionRetentionDuration": "interval 7 days",
    VERSION_PROPERTY: str(LAKE_VERSION),
    LAYOUT_PROPERTY: layout(),
}
# Tables of the DuckDB file that a lake does not have.
_OF_FILES = frozenset({"schema_version", "view_set"})


def relations() -> list[str]:
    """The names of the tables in a lake."""
    return [name for name in arrow.stored_columns() if name not in _OF_FILES]


def union_schema() -> pa.Schema:
    """The columns of all relations, `relation` first; a column has one type in all of them."""
    columns: dict[str, pa.DataType] = {"relation": pa.string()}
    for name in relations():
        for column in arrow.schema(name):
            assert columns.setdefault(column.name, column.type) == column.type, column.name
    return pa.schema(list(columns.items()))
