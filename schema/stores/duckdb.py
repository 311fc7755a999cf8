"""Opening, creating and upgrading a warehouse."""

import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Computed
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.compiler import compiles

from ..errors import WarehouseError as WarehouseError
from ..errors import opening_error, with_remedy
from ..tables import metadata

SCHEMA_VERSION = 1
VERSION_TABLE = "schema_version"

# Of a new warehouse. Each table rounds up to whole blocks: DuckDB's own of 256 KiB make a
# night of small modules 15 MB, these 5. In smaller ones DuckDB does not pack integers.
_BLOCK_BYTES = 32768
_FEW_BLOCKS = "8MB"
_ONE_DIGIT = re.compile(r"\.\d")


def open_warehouse(db: str, *, create: bool = False, read_only: bool = False) -> sa.Engine:
    """Open the warehouse at `db`, a file's path or a SQLAlchemy URL of DuckDB.

    With `create`, an absent or empty database becomes a new warehouse. A warehouse of an
    older schema version is upgraded in one transaction, unless `read_only`.
    Raises WarehouseError, and of a warehouse that another process has open its subclass
    WarehouseBusyError.
    """
    if not db:
        raise WarehouseError("--db or MEMHOUSE_DB is empty: name the warehouse")
    url = _url(db)
    path = None if url.database in (None, "", ":memory:") else Path(str(url.database))
    if path is not None and not path.exists() and not create:
        raise WarehouseError(
            f"there is no warehouse at {path}: make one with `memhouse ingest PATH`, "
            "or name another with --db or MEMHOUSE_DB"
        )
    if path is not None and not path.parent.is_dir():
        raise WarehouseError(f"cannot make {path}: there is no folder {path.parent}")
    engine = sa.create_engine(url, connect_args={"read_only": read_only})
    sa.event.listen(engine, "connect", _use_utc)
    try:
        if path is not None and not path.exists():
            _create_file(path)
        _prepare(engine, name=str(path or db), create=create, read_only=read_only)
    except (DBAPIError, duckdb.Error) as error:
        engine.dispose()
        raise opening_error(error, str(path or db)) from error
    except OSError as error:
        engine.dispose()
        reason = with_remedy(error.strerror or str(error))
        raise WarehouseError(f"cannot make {path}: {reason}") from error
    except BaseException:
        engine.dispose()
        raise
    return engine


def _create_file(path: Path) -> None:
    """An empty database of small blocks, there wholly or not at all.

    Not by a setting of the connection: DuckDB refuses a second connection to a file, from
    the user's notebook for one, whose settings differ.
    """
    target = path.resolve()
    with tempfile.TemporaryDirectory(prefix=".memhouse-", dir=target.parent) as folder:
        fresh = Path(folder, "fresh")
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {_literal(fresh)} AS fresh (BLOCK_SIZE {_BLOCK_BYTES})")
        try:
            # A rename would replace the file of another process that was quicker.
            os.link(fresh, target)
        except FileExistsError:
            return
        except OSError:  # A file system without links.
            fresh.rename(target)


def _literal(path: Path) -> str:
    """A path as SQL: ATTACH takes no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


def _use_utc(connection: Any, _record: object) -> None:
    """Show all times in UTC, whatever the machine's time zone."""
    connection.execute("SET TimeZone = 'UTC'")


def forget_blocks(engine: sa.Engine) -> None:
    """Give back the memory of the blocks that were read and written.

    DuckDB keeps them until they take most of the machine's memory, and then the next reader's
    dump has no room.
    """
    if engine.url.database in (None, "", ":memory:"):
        return
    with engine.connect() as connection:
        limit = str(connection.exec_driver_sql("SELECT current_setting('memory_limit')").scalar())
        try:
            # A lower limit is the way to make it let go; what is in use stays.
            with suppress(DBAPIError):
                connection.exec_driver_sql(f"SET memory_limit = '{_FEW_BLOCKS}'")
        finally:
            # It says 18.8 GiB of 18.87, and 18.7 GiB once it has been given those 18.8.
            exact = _ONE_DIGIT.sub(r"\g<0>5", limit)
            connection.exec_driver_sql(f"SET memory_limit = '{exact}'")


def fetch(connection: sa.Connection, query: str, parameters: Sequence[object] = ()) -> pa.Table:
    """The rows of a query; `$1` and so on in it are the parameters.

    Of a statement that has no rows, such as SET, an empty table. Raises duckdb.Error.
    """
    duck = driver(connection)

    def run() -> pa.Table:
        relation = duck.sql(query, params=list(parameters))
        return pa.table({}) if relation is None else relation.to_arrow_table()

    # DuckDB hears nothing of Ctrl-C while it fetches: another thread must wait for that.
    with ThreadPoolExecutor(1) as thread:
        rows = thread.submit(run)
        try:
            return rows.result()
        except KeyboardInterrupt:
            duck.interrupt()
            raise


def driver(connection: sa.Connection) -> duckdb.DuckDBPyConnection:
    """DuckDB's own connection under a SQLAlchemy one: the way for Arrow, in and out."""
    wrapped: duckdb.DuckDBPyConnection = connection.connection.driver_connection  # type: ignore[assignment]
    return wrapped


@compiles(Computed, "duckdb")
def _generated(element: Computed, compiler: Any, **options: Any) -> str:
    """A generated column's DDL: DuckDB knows only those worked out when they are read."""
    return f"GENERATED ALWAYS AS ({compiler.sql_compiler.process(element.sqltext)}) VIRTUAL"


def _url(db: str) -> sa.URL:
    try:
        url = sa.make_url(db) if "://" in db else sa.URL.create("duckdb", database=db)
    except ArgumentError:
        raise WarehouseError(
            f"{db} is no SQLAlchemy URL: give a file's path or a duckdb:///PATH URL"
        ) from None
    if url.get_backend_name() != "duckdb":
        raise WarehouseError(
            f"{url.get_backend_name()} is no store of memhouse: give a file's path "
            "or a duckdb:///PATH URL"
        )
    return url


def _prepare(engine: sa.Engine, *, name: str, create: bool, read_only: bool) -> None:
    """Create or upgrade the tables as needed, all in one transaction."""
    with engine.begin() as connection:
        version = _stored_version(connection)
        if version is None:
            if _has_tables(connection):
                raise WarehouseError(
                    f"{name} is a DuckDB database, but no warehouse of memhouse: name another file"
                )
            if not create or read_only:
                raise WarehouseError(
                    f"{name} is empty: fill it with `memhouse ingest PATH`, or name another file"
                )
            _create_tables(connection)
            _store_version(connection)
        elif version > SCHEMA_VERSION:
            raise WarehouseError(
                f"{name} has schema version {version}, this memhouse knows up to "
                f"{SCHEMA_VERSION}: upgrade memhouse"
            )
        elif version < SCHEMA_VERSION:
            if read_only:
                raise WarehouseError(
                    f"{name} has the older schema version {version}: "
                    "any `memhouse ingest` into it upgrades it"
                )
            from ..migrations import upgrade  # Alembic is slow to import and seldom needed

            upgrade(connection)


def _create_tables(connection: sa.Connection) -> None:
    """Create all tables with their comments, as one script: 300 statements, one by one, take
    longer than a small night's ingest."""
    script: list[str] = []
    collector = sa.create_mock_engine(
        connection.engine.url,
        lambda ddl, *_: script.append(str(ddl.compile(dialect=connection.dialect))),
    )
    metadata.create_all(collector, checkfirst=False)
    driver(connection).execute(";\n".join(script))


def _stored_version(connection: sa.Connection) -> int | None:
    known = connection.exec_driver_sql(
        f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{VERSION_TABLE}'"
    ).first()
    if known is None:
        return None
    row = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").one()
    return int(row[0])


def _has_tables(connection: sa.Connection) -> bool:
    return connection.exec_driver_sql("SELECT 1 FROM duckdb_tables() LIMIT 1").first() is not None


def _store_version(connection: sa.Connection) -> None:
    # The table is Alembic's, so that its later upgrades find what they left.
    connection.exec_driver_sql(
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    )
    connection.exec_driver_sql(f"COMMENT ON TABLE {VERSION_TABLE} IS 'The schema version.'")
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{SCHEMA_VERSION:04}')")
