"""A DuckDB file that is a warehouse: its rows, opening and upgrading it, and making it small."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import duckdb
import pyarrow as pa

from .. import arrow
from ..arrow import stored_columns
from ..errors import (
    UnpreparedError,
    WarehouseBusyError,
    WarehouseError,
    duckdb_says,
    opening_error,
    with_remedy,
)
from ..journal import entries, entry, numbered
from ..memory_database import confine, memory_database, set_up
from ..private_folder import private_folder
from ..quoting import quoted
from ..versions import LAYOUTS, SCHEMA_VERSION, layout, layout_digest
from .base import Batch, Compacted

# Adds rows to tables of DuckDB, and deletes rows by their ids.

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


# A DuckDB file that is a warehouse: opening, creating and upgrading it.

# Each table rounds up to whole blocks, so DuckDB's default of 256 KiB wastes space on small
# modules. In blocks smaller than 32 KiB DuckDB does not pack integers.
BLOCK_BYTES = 32768
_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")
_SCHEMA = Path(__file__).parents[1]


def connect(
    db: str, *, create: bool = False, read_only: bool = False, files: bool = False
) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection to the warehouse at `db`, a file's path or a duckdb:/// URL, and its name.

    With `create`, an absent or empty database becomes a new warehouse. A warehouse of an
    older schema version is upgraded in one transaction, unless `read_only`. SQL opens no other
    file, unless with `files`.
    Raises WarehouseError, and WarehouseBusyError if another process has the warehouse open.
    """
    if not db:
        raise WarehouseError("--db or MEMHOUSE_DB is empty: name the warehouse")
    path = database_path(db)
    if path is not None and not path.exists() and not create:
        raise WarehouseError(
            f"there is no warehouse at {path}: make one with `memhouse ingest PATH`, "
            "or name another with --db or MEMHOUSE_DB"
        )
    if path is not None and not path.parent.is_dir():
        raise WarehouseError(f"cannot make {path}: there is no folder {path.parent}")
    name = str(path or db)
    try:
        if path is not None and not path.exists():
            _create_file(path)
        # A database in memory is empty, so it cannot be opened read-only.
        connection = memory_database() if path is None else _open(path, read_only)
        set_up(connection)
    except duckdb.Error as error:
        raise opening_error(error, name) from error
    except OSError as error:
        raise WarehouseError(
            f"cannot make {path}: {with_remedy(error.strerror or str(error))}"
        ) from error
    try:
        _prepare(connection, name=name, create=create, read_only=read_only)
        if not files:
            confine(connection)
    except duckdb.Error as error:
        connection.close()
        raise opening_error(error, name) from error
    except BaseException:
        connection.close()
        raise
    return connection, name


def database_path(db: str) -> Path | None:
    """The file that `db` names, None for a database in memory. Raises WarehouseError."""
    if "://" not in db:
        return None if db == ":memory:" else Path(db)
    # Imported here because SQLAlchemy is slow to import and few users give a URL.
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError

    try:
        url = sa.make_url(db)
    except ArgumentError:
        raise WarehouseError(
            f"{db} is not a SQLAlchemy URL: give a file's path or a duckdb:///PATH URL"
        ) from None
    if url.get_backend_name() != "duckdb":
        raise WarehouseError(
            f"{url.get_backend_name()} is not a store of memhouse: give a file's path, "
            "a duckdb:///PATH URL, or a lake's s3://, gs://, abfs:// or az:// URL"
        )
    return None if url.database in (None, "", ":memory:") else Path(str(url.database))


@contextmanager
def one_thread(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run many short statements: with more threads DuckDB hands each statement to others."""
    connection.execute("SET threads = 1")
    try:
        yield
    finally:
        connection.execute("RESET threads")


def forget_blocks(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Free the memory of the blocks that were read and written.

    DuckDB keeps these blocks until they take most of the machine's memory. The readers
    of dumps need this memory.
    """
    if database_path(name) is None:
        return
    ((limit,),) = connection.sql("SELECT current_setting('memory_limit')").fetchall()
    try:
        # A lower limit makes DuckDB free the blocks that are not in use.
        with suppress(duckdb.Error):
            connection.execute(f"SET memory_limit = '{_FEW_BLOCKS}'")
    finally:
        # DuckDB truncates the limit that it shows, so setting the shown limit would lower it.
        exact = _ONE_DIGIT.sub(r"\g<0>5", limit)
        connection.execute(f"SET memory_limit = '{exact}'")


def _open(path: Path, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection to the file that has this name, also if `compact` has just replaced the file."""
    while True:
        before = path.stat()
        connection = duckdb.connect(str(path), read_only=read_only)
        # From now on our lock keeps `compact` away.
        if os.path.samestat(before, path.stat()):
            return connection
        connection.close()


def _create_file(path: Path) -> None:
    """Create an empty database with small blocks, atomically.

    The block size is not a setting of the connection, because DuckDB refuses a second
    connection to a file, for example from a notebook, if the settings differ.
    """
    target = path.resolve()
    with private_folder(target) as folder:
        fresh = folder / "fresh"
        # ATTACH takes no parameters.
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(fresh))} AS fresh (BLOCK_SIZE {BLOCK_BYTES})")
        try:
            # A rename would replace the file of another process that created the warehouse first.
            os.link(fresh, target)
        except FileExistsError:
            return
        except OSError:  # A file system without links.
            fresh.rename(target)


def _prepare(
    connection: duckdb.DuckDBPyConnection, *, name: str, create: bool, read_only: bool
) -> None:
    """Create or upgrade the tables if needed, in one transaction."""
    stored = _stored_version(connection)
    if stored is None:
        if connection.sql("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchall():
            raise WarehouseError(
                f"{name} is a DuckDB database, but not a warehouse of memhouse: name another file"
            )
        if not create or read_only:
            raise UnpreparedError(
                f"{name} is empty: fill it with `memhouse ingest PATH`, or name another file"
            )
        _run(connection, [(_SCHEMA / "tables.sql").read_text(), *_set_version()])
        return
    version, digest = stored
    if version > SCHEMA_VERSION:
        raise WarehouseError(
            f"{name} has schema version {version}, this memhouse knows up to {SCHEMA_VERSION}: "
            "upgrade memhouse"
        )
    if digest != LAYOUTS.get(version):
        raise WarehouseError(
            f"{name} was written by a memhouse between two releases, whose tables this one does "
            "not know: read it with that one, or ingest its dumps into a new warehouse"
        )
    if version == SCHEMA_VERSION:
        return
    if read_only:
        raise UnpreparedError(
            f"{name} has the older schema version {version}: "
            "any `memhouse ingest` into it upgrades it"
        )
    steps = [
        file.read_text()
        for file in sorted((_SCHEMA / "upgrades").glob("[0-9]*.sql"))
        if int(file.name[:4]) > version
    ]
    comments = [
        line
        for line in (_SCHEMA / "tables.sql").read_text().splitlines()
        if line.startswith("COMMENT ON ")
    ]
    _run(connection, [*steps, "\n".join(comments), *_set_version()], _upgraded_from(version))


def _upgraded_from(version: int) -> Mapping[str, pa.Table]:
    return entries(entry("upgrade", f"schema version {version} to {SCHEMA_VERSION}"))


def _set_version() -> list[str]:
    return [
        "DELETE FROM schema_version",
        f"INSERT INTO schema_version (version, layout) VALUES ({SCHEMA_VERSION}, '{layout()}')",
    ]


def _run(
    connection: duckdb.DuckDBPyConnection,
    scripts: list[str],
    rows: Mapping[str, pa.Table] | None = None,
) -> None:
    """Run scripts and then add rows, in one transaction."""
    with one_thread(connection):
        connection.begin()
        try:
            for script in scripts:
                connection.execute(script)
            insert_all(connection, rows or {})
            connection.commit()
        except BaseException:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                connection.rollback()
            raise


def _stored_version(connection: duckdb.DuckDBPyConnection) -> tuple[int, str] | None:
    """The schema version of an open database and its layout; None if it is not a warehouse."""
    try:
        found = connection.sql("SELECT version, layout FROM schema_version").fetchall()
        if found:
            version, digest = found[0]
            return int(version), digest
    except duckdb.CatalogException:  # There is no such table.
        return None
    except duckdb.BinderException:  # Before layouts were kept.
        pass
    try:
        found = connection.sql("SELECT MAX(version) FROM schema_version").fetchall()
    except duckdb.BinderException:  # Before versions were numbers.
        return 0, ""
    columns = connection.sql(
        """SELECT table_name, column_name, data_type FROM duckdb_columns()
        WHERE NOT internal AND database_name = current_database()
            AND list_contains($1, table_name)""",
        params=[list(stored_columns())],
    ).fetchall()
    return int(found[0][0] or 0), layout_digest(columns)


# Makes a DuckDB file as small as it can be: a copy in a fresh file that takes its place.
#
# DuckDB reuses the room of deleted rows, but gives room back only at the end of the file.

# Less is not worth a copy: the next ingest fills it.
_FEW_BYTES = 1 << 20
_MOSTLY_USED = 0.8
_LONGEST_WAIT_SECONDS = 60
_ASK_AGAIN_SECONDS = 0.05
_EMPTY_LOG = "0 bytes"
# Two copies differ a little, by which thread wrote what.
_SAME = 0.99


def compact(connection: duckdb.DuckDBPyConnection, name: str) -> Compacted:
    """Replace the file of this connection by the smallest that holds the same, if that is smaller.

    Closes the connection, which opens no other file. The copy is made by one that does, and that
    keeps its lock until the fresh file has the name. At any moment the name is that of the old file
    or of the new one, each whole. Raises WarehouseError; then nothing has changed.
    """
    path = database_path(name)
    if path is None:
        raise WarehouseError(f"{name} is in memory: only a file can be compacted")
    try:
        return _compact(connection, path)
    except duckdb.Error as error:
        said = duckdb_says(error).rpartition("Original error: ")[2]
    except OSError as error:
        said = error.strerror or str(error)
    raise WarehouseError(f"cannot compact {name}: {with_remedy(said)}")


def has_much_free(connection: duckdb.DuckDBPyConnection, name: str, most_bytes: int) -> bool:
    """Whether much of the file is free, and what is used is at most so many bytes."""
    if database_path(name) is None:
        return False
    query = """SELECT block_size * total_blocks, block_size * used_blocks, wal_size
        FROM pragma_database_size() WHERE database_name = current_database()"""
    ((total, used, log),) = connection.sql(query).fetchall()
    if log != _EMPTY_LOG:
        # What was deleted since the last checkpoint is not free yet. Without a change a checkpoint
        # would still write row groups anew, to merge them.
        connection.execute("CHECKPOINT")
        ((total, used, _),) = connection.sql(query).fetchall()
    return bool(total - used >= _FEW_BYTES and used <= _MOSTLY_USED * total and used <= most_bytes)


def _compact(connection: duckdb.DuckDBPyConnection, path: Path) -> Compacted:
    target = path.resolve()
    connection.execute("CHECKPOINT")
    _require_sole(connection, path, target)
    connection.close()
    # Only at the end does its lock go: whoever waited for it finds the new file under the name.
    with closing(_opened_to_files(path)) as opened:
        before = target.stat()
        with private_folder(target) as folder:
            fresh = folder / "fresh"
            _copy(opened, fresh)
            after_bytes = fresh.stat().st_size
            if after_bytes > _SAME * before.st_size:
                return Compacted(before.st_size, before.st_size)
            os.chown(fresh, before.st_uid, before.st_gid)
            shutil.copystat(target, fresh)
            os.utime(fresh)
            _sync(fresh)
            fresh.replace(target)
    # Without it a power failure may bring the old file back, which holds the same.
    with suppress(OSError):
        _sync(target.parent)
    return Compacted(before.st_size, after_bytes)


def _opened_to_files(path: Path) -> duckdb.DuckDBPyConnection:
    """The warehouse on an instance that may write files; waits for a process that was faster."""
    end = monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        try:
            return connect(str(path), files=True)[0]
        except WarehouseBusyError:
            if monotonic() >= end:
                raise
        sleep(_ASK_AGAIN_SECONDS)


def _require_sole(connection: duckdb.DuckDBPyConnection, path: Path, target: Path) -> None:
    """Raise WarehouseError if the file was opened only to be read, or is not ours alone.

    It is not if it has another user in this process, or another name.
    """
    query = "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
    ((is_read_only,),) = connection.sql(query).fetchall()
    if is_read_only:
        raise WarehouseError(f"cannot compact {path}: it was opened read-only")
    ((connections,),) = connection.sql("FROM duckdb_connection_count()").fetchall()
    if connections > 1:
        raise WarehouseError(
            f"cannot compact {path}: this process has other connections to it: close them"
        )
    if target.stat().st_nlink > 1:
        raise WarehouseError(
            f"cannot compact {path}: it has other names (hard links), which would keep the old "
            "content: remove them"
        )


def _copy(connection: duckdb.DuckDBPyConnection, fresh: Path) -> None:
    """Copy the database, all that is in it, to a fresh file; count the rows of both."""
    ((database,),) = connection.sql("SELECT current_database()").fetchall()
    # ATTACH takes no parameters.
    source = '"' + database.replace('"', '""') + '"'
    # Without a journal, which would take room too.
    connection.execute("SET checkpoint_threshold = '1KB'")
    file = quoted(str(fresh))
    connection.execute(f"ATTACH OR REPLACE {file} AS _fresh (BLOCK_SIZE {BLOCK_BYTES})")
    try:
        connection.execute(f"COPY FROM DATABASE {source} TO _fresh")
        if _counts(connection, database) != _counts(connection, "_fresh"):
            raise WarehouseError("the copy differs from the warehouse, which stays as it is")
        connection.execute("USE _fresh")
        insert_all(connection, entries(entry("compact", "copied to a smaller file")))
    except BaseException:
        with suppress(duckdb.Error):
            connection.execute(f"USE {source}")
            connection.execute("DETACH _fresh")
        raise
    finally:
        connection.execute("RESET checkpoint_threshold")
    connection.execute(f"USE {source}")
    # Until it is detached, parts of the copy may be in memory.
    connection.execute("DETACH _fresh")


def _counts(connection: duckdb.DuckDBPyConnection, database: str) -> list[tuple[object, ...]]:
    """Each table with its number of rows, and each view."""
    tables = connection.sql(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = $1 ORDER BY ALL",
        params=[database],
    ).fetchall()
    views = connection.sql(
        "SELECT schema_name, view_name FROM duckdb_views() "
        "WHERE database_name = $1 AND NOT internal ORDER BY ALL",
        params=[database],
    ).fetchall()

    def count(*names: str) -> int:
        table = ".".join('"' + name.replace('"', '""') + '"' for name in (database, *names))
        ((number,),) = connection.sql(f"SELECT COUNT(*) FROM {table}").fetchall()
        return int(number)

    return [*((*table, count(*table)) for table in tables), *views]


def _sync(path: Path) -> None:
    """Have the disk hold a file, or the names in a folder."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
