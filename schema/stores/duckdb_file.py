"""A DuckDB file that is a warehouse: opening, creating and upgrading it."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from ..arrow import stored_columns
from ..errors import UnpreparedError, WarehouseError, opening_error, with_remedy
from ..journal import entries, entry
from ..memory_database import confine, memory_database, set_up
from ..private_folder import private_folder
from ..quoting import quoted
from ..versions import LAYOUTS, SCHEMA_VERSION, layout, layout_digest
from .duckdb_rows import insert_all

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
