"""Makes a DuckDB file as small as it can be: a copy in a fresh file that replaces it.

DuckDB reuses the space of deleted rows, but gives space back only at the end of the file.
"""

import os
import shutil
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from .connection import FRESH, connect, database_path
from .errors import WarehouseError, duckdb_says, until_free, with_remedy
from .journal import entries, entry
from .private_folder import private_folder
from .readable import figures_table, quoted
from .table_rows import insert_all

# A store is compacted unasked if it uses no more: about half a second, or 15 s after runs were
# deleted.
QUICK_BYTES = 8 << 20
DELETED_BYTES = 256 << 20
# Less is not worth a copy: the next ingest fills it.
_FEW_BYTES = 1 << 20
_MOSTLY_USED = 0.8
_LONGEST_WAIT_SECONDS = 60
_EMPTY_LOG = "0 bytes"
# Two copies differ a little, by which thread wrote what.
_SAME = 0.99


@dataclass(frozen=True)
class Compacted:
    """How many bytes a warehouse took before it was compacted, and how many it takes since."""

    before_bytes: int
    after_bytes: int

    def _repr_html_(self) -> str:
        figures = [("before_bytes", self.before_bytes), ("after_bytes", self.after_bytes)]
        return figures_table("compacted", figures)


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
    connection.execute(f"ATTACH OR REPLACE {file} AS _fresh {FRESH}")
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
