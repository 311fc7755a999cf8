"""The store: the tables of a warehouse in a DuckDB file."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from .. import arrow
from ..causes.find_causes import find_causes
from ..causes.sides import VERSIONS
from ..ddl import create_tables
from ..errors import (
    QueryError,
    UnpreparedError,
    WarehouseError,
    duckdb_says,
    opening_error,
    until_free,
    with_remedy,
)
from ..history import series
from ..journal import dropped, entries, entry, label_entries, numbered
from ..private_folder import private_folder
from ..readable import quoted
from ..tables import INTERNAL, SHORT_TEXT_BYTES
from ..versions import READER_VERSION, SCHEMA_VERSION, layout
from .base import QUICK_BYTES, SETS, Batch, Compacted, Deleted, Known, StoredFile

# A file holds its tables' meanings, also of tables that a user made.
FILE_TABLES = f"""SELECT table_name AS "table", estimated_size AS "rows", comment AS "holds"
    FROM duckdb_tables() WHERE schema_name <> '{INTERNAL}'
    ORDER BY table_oid"""
# The comment of a closed list has its words.
FILE_COLUMNS = f"""SELECT column_name AS "column", SPLIT_PART(data_type, '(', 1) AS "type",
        comment AS "meaning"
    FROM duckdb_columns()
    WHERE NOT internal AND schema_name <> '{INTERNAL}' AND table_name = $1
        AND table_name IN (SELECT table_name FROM duckdb_tables())
    ORDER BY column_index"""

CRASHES = (duckdb.InternalException, duckdb.FatalException)
# DuckDB's newest joins pass dictionaries on, and mistake one for another where it has swapped the
# sides of several joins. As written most queries take as long, some 1.4 times.
CAUTIOUS = "SET disabled_optimizers = 'build_side_probe_side'"


_HOSTS = "SELECT host FROM run_parts WHERE run_id = $1"
_OUTDATED = f"SELECT module_id FROM modules WHERE reader_version < {READER_VERSION}"
_COMPLETE = f"SELECT DISTINCT module_id FROM dumps WHERE status = 'ok' EXCEPT ({_OUTDATED})"
# A run that entered lately stays, whatever time it claims.
_RUNS_BEFORE = """SELECT run_id FROM runs
    WHERE run_at < $1 AND ingested_at < $1
        AND run_id NOT IN (SELECT run_id FROM run_parts WHERE entered_at >= $1)
    ORDER BY run_at, run_seq"""
_OF_PARTS = """FROM dumps
    WHERE run_id = $1 AND ($2 OR list_contains($3, host) OR ($4 AND host IS NULL))"""
_FILES = f"""SELECT files_id, kind, status, sha256 FROM file_sets
    WHERE files_id IN (SELECT files_id {_OF_PARTS})"""
_NIGHTS = """SELECT * FROM runs WHERE run_id = $1 OR starts_with(run_id, $1 || '@')
    ORDER BY run_seq DESC"""


# Adds rows to tables of DuckDB, and deletes rows by their ids.

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
    return f'INSERT INTO "{name}" BY NAME SELECT {chosen} FROM {source}{order}'


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
    """Delete the modules and sets that no dump refers to; how many modules."""
    query = """SELECT module_id FROM modules WHERE module_id NOT IN
        (SELECT module_id FROM dumps WHERE module_id IS NOT NULL)"""
    orphans = sorted(row[0] for row in connection.sql(query).fetchall())
    delete(connection, "module_id", orphans, but=("dumps",))
    for key, name in SETS.items():
        connection.execute(
            f"DELETE FROM {name} WHERE {key} NOT IN "
            f"(SELECT {key} FROM dumps WHERE {key} IS NOT NULL)"
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


# A DuckDB file that is a warehouse: opening and creating it.

# Each table rounds up to whole blocks, so DuckDB's default of 256 KiB wastes space on small
# modules. In blocks smaller than 32 KiB DuckDB does not pack integers.
BLOCK_BYTES = 32768
_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")
# The oldest DuckDB whose clients open the file.
STORAGE_VERSION = "v1.4.0"
_FRESH = f"(BLOCK_SIZE {BLOCK_BYTES}, STORAGE_VERSION '{STORAGE_VERSION}')"


def connect(
    db: str, *, create: bool = False, read_only: bool = False, files: bool = False
) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection to the warehouse at `db`, a file's path or a duckdb:/// URL, and its name.

    With `create`, an absent or empty database becomes a new warehouse. SQL opens no other file,
    unless with `files`.
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
    try:
        url = sa.make_url(db)
    except ArgumentError:
        raise WarehouseError(
            f"{db} is not a SQLAlchemy URL: give a file's path or a duckdb:///PATH URL"
        ) from None
    if url.get_backend_name() != "duckdb":
        raise WarehouseError(
            f"{url.get_backend_name()} is not a store of memhouse: give a file's path "
            "or a duckdb:///PATH URL"
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
            connection.execute(f"ATTACH {quoted(str(fresh))} AS fresh {_FRESH}")
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
    """Create the tables of a new warehouse; raise WarehouseError for what is no warehouse."""
    tables = {row[0] for row in connection.sql(_TABLES).fetchall()}
    if not tables:
        if not create or read_only:
            raise UnpreparedError(
                f"{name} is empty: fill it with `memhouse ingest PATH`, or name another file"
            )
        _create_tables(connection)
    elif f"{INTERNAL}.schema_version" not in tables:
        raise WarehouseError(
            f"{name} is a DuckDB database, but not a warehouse of memhouse: name another file"
        )
    elif connection.sql(f"FROM {INTERNAL}.schema_version").fetchall() != [
        (SCHEMA_VERSION, layout())
    ]:
        raise WarehouseError(
            f"{name} was written by another version of memhouse: ingest its dumps into a new "
            "warehouse"
        )


def _create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all tables in one transaction."""
    with one_thread(connection):
        connection.begin()
        try:
            connection.execute(create_tables())
            connection.execute(series.VIEWS)
            connection.execute(
                f"INSERT INTO {INTERNAL}.schema_version VALUES ($1, $2)",
                [SCHEMA_VERSION, layout()],
            )
            connection.commit()
        except BaseException:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                connection.rollback()
            raise


_TABLES = """SELECT schema_name || '.' || table_name FROM duckdb_tables()
    WHERE database_name = current_database()"""


# Makes a DuckDB file as small as it can be: a copy in a fresh file that takes its place.
#
# DuckDB reuses the room of deleted rows, but gives room back only at the end of the file.

# Less is not worth a copy: the next ingest fills it.
_FEW_BYTES = 1 << 20
_MOSTLY_USED = 0.8
_LONGEST_WAIT_SECONDS = 60
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
    return until_free(lambda: connect(str(path), files=True)[0], _LONGEST_WAIT_SECONDS)


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
    connection.execute(f"ATTACH OR REPLACE {file} AS _fresh {_FRESH}")
    try:
        # A second transaction would write the catalogue beside the first one's, a fifth of a file.
        connection.begin()
        connection.execute(f"COPY FROM DATABASE {source} TO _fresh")
        if _counts(connection, database) != _counts(connection, "_fresh"):
            raise WarehouseError("the copy differs from the warehouse, which stays as it is")
        connection.execute("USE _fresh")
        insert_all(connection, entries(entry("compact", "copied to a smaller file")))
        connection.commit()
    except BaseException:
        with suppress(duckdb.Error):
            connection.rollback()
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


# The tables in a DuckDB file: the default store.


def open_file(
    db: str, *, create: bool = False, read_only: bool = False, files: bool = False
) -> "Store":
    """Open the warehouse at `db`, a file's path or a duckdb:/// URL.

    With `create`, an absent or empty database becomes a new warehouse. With `files` its SQL may
    open other files. Raises WarehouseError,
    and WarehouseBusyError if another process has the warehouse open.
    """
    connection, name = connect(db, create=create, read_only=read_only, files=files)
    return Store(name, lambda: connection, read_only=read_only)


class Store:
    """The tables of a warehouse in a DuckDB file, or in memory.

    Every method that changes rows is atomic and keeps `history` correct. All methods raise
    WarehouseError if the file cannot be read or written. `connect` is called when the connection
    is first needed; `is_new`: the file is yet to be made.
    """

    how_sql_changes = "--write (in Python write=True) lets it change the warehouse"

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
        self._is_writing = False
        self._is_cautious = False
        self._equipment: list[str] = []

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        connection = self._connect()
        # What is in memory cannot be opened again.
        if self._is_cautious or self._is_in_memory:
            connection.execute(CAUTIOUS)
        for script in self._equipment:
            connection.execute(script)
        self.is_new = False
        return connection

    # -- Reading ---------------------------------------------------------------------------

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
            return pa.table({}) if relation is None else arrow.plain(relation.to_arrow_table())

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

    def known(self, run_id: str, *hosts: str | None) -> Known:
        """What the store holds of this run, and the ids of all modules and sets.

        With hosts only the dumps of their parts of the run; None is the part without a host.
        """
        run = self._dicts("SELECT * FROM runs WHERE run_id = $1", run_id)
        labels = self._dicts("SELECT key, value FROM run_labels WHERE run_id = $1", run_id)
        given = [run_id, not hosts, list(hosts), None in hosts]
        dumps = self._dicts(f"SELECT * {_OF_PARTS}", *given)
        files: dict[int, list[StoredFile]] = {}
        for files_id, *file in self.connection.sql(_FILES, params=given).fetchall():
            files.setdefault(files_id, []).append(StoredFile(*file))
        return Known(
            run=run[0] if run else None,
            hosts=frozenset(row["host"] for row in self._dicts(_HOSTS, run_id)),
            labels={row["key"]: row["value"] for row in labels},
            dumps={row["dump_id"]: row for row in dumps},
            files=files,
            modules=self._ids("SELECT module_id FROM modules"),
            complete=self._ids(_COMPLETE),
            outdated=self._ids(_OUTDATED),
            sets={key: self._ids(f"SELECT DISTINCT {key} FROM {SETS[key]}") for key in SETS},
            next_run_seq=max(self._ids("SELECT MAX(run_seq) FROM runs"), default=0) + 1,
        )

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that claim a time before this one, and of which all parts entered before it."""
        return [row[0] for row in self.connection.sql(_RUNS_BEFORE, params=[time]).fetchall()]

    def nights(self, name: str) -> list[Mapping[str, Any]]:
        """The rows of the run `name` and of runs named NAME@…, the last to enter first."""
        return list(self._dicts(_NIGHTS, name))

    def pairs(self, a_run_id: str, b_run_id: str) -> pa.Table:
        """Which dump of run B follows which of run A, by the rule of the chains.

        Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
        """
        return series.pair_runs(self.connection, a_run_id, b_run_id)

    def causes(self, pairs: Sequence[tuple[int, int]]) -> pa.Table:
        """Why the second dump of each pair differs from the first, in the order of the pairs.

        Columns: a_dump_id, b_dump_id; cause, one line of fewer than 100 characters, null if
        only names, lines and constants differ; terms, the rows of `causes`: kind, term,
        change_bytes, source and role. The change_bytes add up to the change of the peak.
        """
        return find_causes(self.rows, pairs)

    def _dicts(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        found = arrow.plain(self.connection.sql(query, params=list(parameters)).to_arrow_table())
        return list(found.to_pylist())

    def _ids(self, query: str) -> frozenset[int]:
        column = self.connection.sql(query).to_arrow_table().column(0)
        return frozenset(column.drop_null().to_pylist())

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

    def holds(self, path: Path) -> bool:
        """Whether it is the database, by any name, or a file that DuckDB has beside it."""
        database = database_path(self.name)
        if database is None:
            return False
        try:
            place, own = path.resolve(), database.resolve()
            is_beside = any(place == own.with_name(own.name + ending) for ending in _BESIDE)
            return place == own or is_beside or path.samefile(own)
        except (OSError, ValueError):
            return False

    # -- Writing ---------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""
        with self.transaction():
            changed = changed_runs(self.connection, batch)
            delete(self.connection, "module_id", batch.modules, but=("dumps",))
            delete(self.connection, "dump_id", batch.dumps, but=_KEPT_OF_DUMPS)
            delete(self.connection, "run_id", batch.runs, only=("runs", "run_labels"))
            delete(self.connection, "run_id", batch.oom_runs, only=OOM_TABLES)
            insert_all(self.connection, batch.tables)
            if batch.oom_runs or batch.dumps:
                self.connection.execute(_SET_OOM, [list(batch.oom_runs), list(batch.dumps)])
            series.refresh(self.connection, changed, changed, self.causes)
        # A limit that cannot be had would end the transaction.
        if not self._is_replacing:
            forget_blocks(self.connection, self.name)

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and sets that no other run refers to."""
        with self.transaction():
            names = list(run_ids)
            there = [row["run_id"] for row in self._dicts(_AMONG.format("runs"), names)]
            counts = dict(self.connection.sql(_DUMPS_OF_RUNS, params=[names]).fetchall())
            dumps = delete_dumps(self.connection, names)
            # The journal keeps what was there.
            delete(self.connection, "run_id", names, but=("journal",))
            orphans = delete_orphans(self.connection)
            tombstones = [entry("prune", dropped(counts.get(run, 0)), run) for run in there]
            insert_all(self.connection, entries(*tombstones))
            series.refresh(self.connection, [], [], self.causes)
        # On a full disk the deletion stays in the log, until a later command writes the file.
        with suppress(duckdb.Error):
            self.connection.execute("CHECKPOINT")
        return Deleted(len(there), dumps, orphans, there)

    @contextmanager
    def replacing(self, run_id: str, host: str | None) -> Iterator[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then.

        With a host only those of its part. All that is written in the block is part of it: all or
        nothing. The run and its labels stay. At the end the yielded value says what was deleted.
        """
        deleted = Deleted(1, run_ids=[run_id])
        with self.transaction():
            self._is_replacing = True
            try:
                deleted.dumps = delete_part(self.connection, run_id, host)
                yield deleted
                # Only now: modules of the deleted dumps may be modules of the new ones.
                deleted.modules = delete_orphans(self.connection)
                series.refresh(self.connection, [run_id], [run_id], self.causes)
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
        with self.transaction():
            parameters = [list(run_ids), list(labels)]
            self.connection.execute(
                "DELETE FROM run_labels WHERE list_contains($1, run_id) AND list_contains($2, key)",
                parameters,
            )
            insert(self.connection, "run_labels", arrow.rows("run_labels", rows))
            insert_all(self.connection, label_entries(run_ids, labels))
            moved = [] if labels.keys().isdisjoint(("branch", "suite")) else run_ids
            changed = [] if labels.keys().isdisjoint(VERSIONS) else run_ids
            series.refresh(self.connection, moved, changed, self.causes)

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises QueryError.
        """
        self._require_writable()
        with self.transaction():
            rows = self.rows(query, parameters)
            runs = [run_id for (run_id,) in self.connection.sql(_ALL_RUNS).fetchall()]
            series.refresh(self.connection, runs, runs, self.causes)
            insert_all(self.connection, entries(entry("sql", " ".join(query.split()))))
        return rows

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing."""
        with one_thread(self.connection), self.transaction():
            self.connection.execute(script)

    def equip(self, script: str) -> None:
        """Run SQL statements that make temporary views and macros, for as long as it is open."""
        self.execute(script)
        self._equipment.append(script)

    def compact(self) -> Compacted:
        """Make the file as small as it can be; the sizes that it had and has."""
        if self.read_only:
            raise WarehouseError(f"cannot compact {self.name}: it was opened read-only")
        try:
            return compact(self.connection, self.name)
        finally:
            self._let_go()

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Compact the file if much of it is free and at most `most_bytes` are used.

        None if the file stays as it is, also because it cannot be compacted now. A call ends the
        use of a store: between it and the next call other processes may use the file.
        """
        if self.read_only or "connection" not in vars(self):
            return None
        # On a full disk, or beside another connection, the file stays as it is.
        with suppress(WarehouseError, duckdb.Error):
            if has_much_free(self.connection, self.name, most_bytes):
                return self.compact()
        return None

    def close(self) -> None:
        """Close the file."""
        if "connection" in vars(self):
            self.connection.close()

    @contextmanager
    def opened_to_files(self, *, writes: bool) -> Iterator["Store"]:
        """The file with other files, instead of this store in the block. Raises QueryError."""
        if self._is_in_memory:
            raise QueryError("SQL on a warehouse in memory opens no files: make one in a file")
        if writes:
            self._require_writable()
        self._let_go()
        opened = open_file(self.name, read_only=not writes, files=True)
        try:
            ((has_files,),) = opened.connection.sql(_HAS_FILES).fetchall()
            if not has_files:
                raise QueryError(
                    f"this process has another connection to {self.name}, which opens no other "
                    "files: close it first"
                )
            for script in self._equipment:
                opened.equip(script)
            yield opened
        finally:
            opened.close()

    # -- Within ----------------------------------------------------------------------------

    @property
    def _is_in_memory(self) -> bool:
        return database_path(self.name) is None

    def _require_writable(self) -> None:
        if self.read_only:
            raise QueryError(f"{self.name} was opened to read only: open it to write")

    def _let_go(self) -> None:
        """Close the connection; the next is made when it is needed."""
        if not self._is_in_memory:
            self.close()
            vars(self).pop("connection", None)
            self._connect = lambda: connect(self.name, read_only=self.read_only)[0]

    def _reopen(self) -> bool:
        is_first, self._is_cautious = not self._is_cautious, True
        self._let_go()
        return is_first and not (self._is_writing or self._is_in_memory)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in the block, or nothing; raises WarehouseError."""
        if self._is_replacing:
            yield
            return
        self.connection.begin()
        self._is_writing = True
        try:
            yield
            self.connection.commit()
        except BaseException as error:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                self.connection.rollback()
            if isinstance(error, CRASHES):
                self._reopen()
            if isinstance(error, duckdb.Error):
                raise WarehouseError(with_remedy(duckdb_says(error))) from error
            raise
        finally:
            self._is_writing = False


_ALL_RUNS = "SELECT run_id FROM runs"
# What stays of a dump that is written again.
_KEPT_OF_DUMPS = ("accepted_changes", "oom_reports")
_SET_OOM = """UPDATE dumps SET oom = TRUE WHERE NOT oom AND dump_id IN
    (SELECT dump_id FROM oom_reports WHERE list_contains($1, run_id) OR list_contains($2, dump_id))
"""
_BESIDE = (".wal", ".wal.checkpoint", ".wal.recovery", ".tmp")
_DUMPS_OF_RUNS = """SELECT run_id, COUNT(*) FROM dumps
    WHERE run_id IN (SELECT UNNEST($1)) GROUP BY run_id"""
_HAS_FILES = "SELECT current_setting('enable_external_access')"
_AMONG = "SELECT * FROM {} WHERE run_id IN (SELECT UNNEST($1))"


# A DuckDB database in memory, and the settings of every connection.


def memory_database() -> duckdb.DuckDBPyConnection:
    """A connection to a new database in memory, before `set_up`."""
    connection = duckdb.connect()
    # What does not fit into memory would go to the folder that the user is in.
    spill = Path(tempfile.gettempdir(), f"memhouse-{os.getpid()}")
    connection.execute(f"SET temp_directory = {quoted(str(spill))}")
    return connection


def set_up(connection: duckdb.DuckDBPyConnection) -> None:
    """The settings of every connection to a warehouse."""
    # All times are shown in UTC, whatever the machine's time zone.
    connection.execute("SET TimeZone = 'UTC'")
    # A table that is absent is an error, and not the Python variable of its name.
    connection.execute("SET python_enable_replacements = false")
    # It would be written among the output of a query that takes more than two seconds. A notebook
    # without ipywidgets has none, and cannot set it.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def confine(connection: duckdb.DuckDBPyConnection, *folders: str) -> None:
    """From now on SQL opens no file but the connection's own and those in these folders.

    It holds for all connections of this process to the same database, and cannot be undone.
    """
    if folders:
        connection.execute(f"SET allowed_directories = [{', '.join(map(quoted, folders))}]")
    connection.execute("SET enable_external_access = false")
