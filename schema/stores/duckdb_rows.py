"""Adds rows to tables of DuckDB, and deletes rows by their ids."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import duckdb
import pyarrow as pa

from .. import arrow
from ..journal import numbered
from .base import Batch

OOM_TABLES = ("oom_reports", "oom_buffers")
# DuckDB packs BIGINT only in blocks larger than 32 KiB, but stores a run of equal numbers once.
# These orders make such runs.
_ORDERS = {
    "values": ("module_id", "size_bytes", "logical_bytes", "offset_bytes", "value_id"),
    "occupancy": ("module_id", "memory_space", "live_bytes", "occupied_bytes", "start_time"),
}
# A checkpoint merges row groups that are not full, and so compresses most rows of earlier modules
# again and leaves their old blocks free. After small commits and deletions merging pays; beside a
# large module it pays only when the small tables have many row groups, which slow reading.
_KEEP_ROW_GROUPS = "SET max_vacuum_tasks = 0"
MERGE_ROW_GROUPS = "RESET max_vacuum_tasks"
_MANY_ROW_GROUPS = 30
_ROW_GROUPS = "SELECT COUNT(DISTINCT row_group_id) FROM pragma_storage_info('runs')"
_LARGE_BYTES = 16 << 20
# More than one large module: less is written faster by one thread.
_PARALLEL_BYTES = 64 << 20


@contextmanager
def threads_for(connection: duckdb.DuckDBPyConnection, nbytes: int) -> Iterator[None]:
    """Let DuckDB insert so many bytes with as many threads as pay.

    Several threads compress the rows that they insert, if the order of the rows is free. After
    one thread the commit compresses the rows.
    """
    query = "SELECT current_setting('threads'), current_setting('preserve_insertion_order')"
    ((threads, is_ordered),) = connection.sql(query).fetchall()
    is_parallel = nbytes > _PARALLEL_BYTES and threads > 1
    if nbytes > _LARGE_BYTES:
        ((row_groups,),) = connection.sql(_ROW_GROUPS).fetchall()
        merges = row_groups >= _MANY_ROW_GROUPS
        connection.execute(MERGE_ROW_GROUPS if merges else _KEEP_ROW_GROUPS)
    setting = _SETTINGS.format
    connection.execute(setting(threads if is_parallel else 1, is_ordered and not is_parallel))
    try:
        yield
    finally:
        # After some errors DuckDB refuses everything.
        with suppress(duckdb.Error):
            connection.execute(setting(threads, is_ordered))


_SETTINGS = "SET threads = {}; SET preserve_insertion_order = {}"


def insert_all(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Add rows to tables; the journal numbers its entries."""
    for name, rows in tables.items():
        if name == "journal":
            query = "SELECT COALESCE(MAX(entry), 0) FROM journal"
            ((last,),) = connection.sql(query).fetchall()
            rows = numbered(rows, last)
        insert(connection, name, rows)


def insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Add the rows to a table; a shape goes to the column for its length."""
    connection.register("incoming", rows)
    try:
        connection.execute(insertion(name, rows.column_names, f'"{name}"', "incoming"))
    finally:
        # After an error the transaction is aborted, and only its end unregisters.
        with suppress(duckdb.Error):
            connection.unregister("incoming")


def insertion(name: str, columns: Sequence[str], target: str, source: str) -> str:
    """The statement that adds a source's rows to a table; `columns` are the source's."""
    chosen = "*"
    if "shape" in columns and "_long_shape" in arrow.stored_columns()[name]:
        is_short = f"strlen(shape) <= {arrow.SHORT_TEXT_BYTES}"
        chosen = f"""* EXCLUDE shape,
            CASE WHEN {is_short} THEN shape END AS _short_shape,
            CASE WHEN NOT {is_short} THEN [shape] END AS _long_shape"""
    # A damaged dump's rows lack columns.
    sorted_by = ", ".join(key for key in _ORDERS.get(name, ()) if key in columns)
    order = f" ORDER BY {sorted_by}" if sorted_by else ""
    return f"INSERT INTO {target} BY NAME SELECT {chosen} FROM {source}{order}"


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
                f'DELETE FROM "{name}" WHERE {key} IN (SELECT UNNEST($1))', [list(ids)]
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
    """Delete the modules and flag sets that no dump refers to; how many modules."""
    query = """SELECT module_id FROM modules WHERE module_id NOT IN
        (SELECT module_id FROM dumps WHERE module_id IS NOT NULL)"""
    orphans = sorted(row[0] for row in connection.sql(query).fetchall())
    delete(connection, "module_id", orphans, but=("dumps",))
    connection.execute(
        "DELETE FROM compiler_flags WHERE flags_id NOT IN "
        "(SELECT flags_id FROM dumps WHERE flags_id IS NOT NULL)"
    )
    return len(orphans)


def changed_runs(connection: duckdb.DuckDBPyConnection, batch: Batch) -> list[str]:
    """The runs whose dumps, modules or labels the batch changes."""
    # Causes tell of a dump whether it ran out of memory.
    changed = {*batch.runs, *batch.oom_runs}
    for name in ("runs", "run_labels", "dumps"):
        if name in batch.tables:
            changed.update(batch.tables[name]["run_id"].unique().to_pylist())
    if batch.modules:
        query = "SELECT DISTINCT run_id FROM dumps WHERE module_id IN (SELECT UNNEST($1))"
        found = connection.sql(query, params=[list(batch.modules)]).fetchall()
        changed.update(run_id for (run_id,) in found)
    return sorted(changed)


def _tables_with(column: str) -> list[str]:
    # DuckDB would bind all views to tell their columns.
    return sorted(name for name, columns in arrow.stored_columns().items() if column in columns)
