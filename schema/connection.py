"""A connection to a DuckDB file that is a warehouse: opening, creating and confining it."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from .ddl import create_tables
from .errors import UnpreparedError, WarehouseError, not_duckdb, opening_error, with_remedy
from .history import series
from .private_folder import private_folder
from .readable import quoted
from .tables import INTERNAL
from .versions import SCHEMA_VERSION, layout

# Each table rounds up to whole blocks, so DuckDB's default of 256 KiB wastes space on small
# modules. In blocks smaller than 32 KiB DuckDB does not pack integers.
BLOCK_BYTES = 32768
_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")
# The oldest DuckDB whose clients open the file.
STORAGE_VERSION = "v1.4.0"
FRESH = f"(BLOCK_SIZE {BLOCK_BYTES}, STORAGE_VERSION '{STORAGE_VERSION}')"


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
        _refuse_other_formats(path)
        # DuckDB takes a relative `md:x` for a database of MotherDuck.
        connection = duckdb.connect(str(path.absolute()), read_only=read_only)
        # From now on our lock keeps `compact` away.
        if os.path.samestat(before, path.stat()):
            return connection
        connection.close()


def _refuse_other_formats(path: Path) -> None:
    """Raise WarehouseError for a file without DuckDB's header.

    DuckDB downloads an extension for a file of SQLite, and opens a database in memory for Parquet.
    """
    # DuckDB itself reports a folder, and a file that cannot be read.
    if path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as file:
            if file.read(12)[8:] != b"DUCK":
                raise WarehouseError(not_duckdb(str(path)))


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
            connection.execute(f"ATTACH {quoted(str(fresh))} AS fresh {FRESH}")
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
