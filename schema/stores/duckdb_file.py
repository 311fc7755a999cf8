"""A DuckDB file that is a warehouse: opening, creating and upgrading it."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from ..errors import UnpreparedError, WarehouseError, opening_error, with_remedy
from ..memory_database import memory_database, set_up
from ..quoting import quoted

# Each table rounds up to whole blocks, so DuckDB's default of 256 KiB wastes space on small
# modules. In blocks smaller than 32 KiB DuckDB does not pack integers.
BLOCK_BYTES = 32768
_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")
_UPGRADES = Path(__file__).parents[1] / "upgrades"


def connect(
    db: str, *, create: bool = False, read_only: bool = False
) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection to the warehouse at `db`, a file's path or a duckdb:/// URL, and its name.

    With `create`, an absent or empty database becomes a new warehouse. A warehouse of an
    older schema version is upgraded in one transaction, unless `read_only`.
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
    except duckdb.Error as error:
        connection.close()
        raise opening_error(error, name) from error
    except BaseException:
        connection.close()
        raise
    return connection, name


def schema_version() -> int:
    """The schema version of this memhouse."""
    return max(number for number, _ in _upgrades())


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
    with tempfile.TemporaryDirectory(prefix=".memhouse-", dir=target.parent) as folder:
        fresh = Path(folder, "fresh")
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
    newest = schema_version()
    version = _stored_version(connection)
    if version is None:
        if connection.sql("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchall():
            raise WarehouseError(
                f"{name} is a DuckDB database, but not a warehouse of memhouse: name another file"
            )
        if not create or read_only:
            raise UnpreparedError(
                f"{name} is empty: fill it with `memhouse ingest PATH`, or name another file"
            )
    elif version > newest:
        raise WarehouseError(
            f"{name} has schema version {version}, this memhouse knows up to {newest}: "
            "upgrade memhouse"
        )
    elif version < newest and read_only:
        raise UnpreparedError(
            f"{name} has the older schema version {version}: "
            "any `memhouse ingest` into it upgrades it"
        )
    if version == newest:
        return
    scripts = [file.read_text() for number, file in _upgrades() if number > (version or 0)]
    with one_thread(connection):
        connection.begin()
        try:
            for script in scripts:
                connection.execute(script)
            connection.execute("DELETE FROM schema_version")
            connection.execute("INSERT INTO schema_version VALUES ($1)", [newest])
            connection.commit()
        except BaseException:
            # A failed commit has already ended the transaction.
            with suppress(duckdb.Error):
                connection.rollback()
            raise


def _upgrades() -> list[tuple[int, Path]]:
    """The number and file of each script in `schema/upgrades/`, in order.

    The first script creates the tables of version 1. Each later script upgrades to its number.
    """
    return [(int(file.name[:4]), file) for file in sorted(_UPGRADES.glob("[0-9]*.sql"))]


def _stored_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The schema version of an open database, None if it is not a warehouse."""
    try:
        ((version,),) = connection.sql("SELECT MAX(version) FROM schema_version").fetchall()
    except duckdb.CatalogException:  # There is no such table.
        return None
    return int(version or 0)
