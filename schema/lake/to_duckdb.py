"""A lake as a DuckDB file: the same rows in a warehouse of its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from .. import arrow
from ..errors import WarehouseError, duckdb_says, with_remedy
from ..private_folder import private_folder, remove_leftovers
from ..quoting import quoted
from ..stores import duckdb_file
from ..stores.duckdb_rows import insertion
from .layout import relations


def write_duckdb(
    connection: duckdb.DuckDBPyConnection, path: Path, finish: Callable[[Path], None]
) -> int:
    """Write all tables that the connection shows to a new file; how many rows.

    `finish` gets the file before it has its name. The file is there as a whole or not at all.
    Raises WarehouseError, also if there is a file of this name.
    """
    if path.exists():
        raise WarehouseError(f"{path} is there already: name a file that is not")
    if not path.parent.is_dir():
        raise WarehouseError(f"cannot make {path}: there is no folder {path.parent}")
    remove_leftovers(path.parent)
    try:
        with private_folder(path) as folder:
            fresh = folder / "fresh"
            duckdb_file.connect(str(fresh), create=True)[0].close()
            rows = _copy(connection, fresh)
            finish(fresh)
            _give_name(fresh, path)
    except OSError as error:
        said = with_remedy(error.strerror or str(error))
        raise WarehouseError(f"cannot make {path}: {said}") from error
    except duckdb.Error as error:
        raise WarehouseError(f"cannot make {path}: {with_remedy(duckdb_says(error))}") from error
    return rows


def _copy(connection: duckdb.DuckDBPyConnection, fresh: Path) -> int:
    """Copy the tables one by one; DuckDB reads, sorts and writes without holding them all."""
    rows = 0
    with _attached(connection, fresh):
        for name in relations():
            statement = insertion(
                name, arrow.schema(name).names, f'_fresh."{name}"', f'memory."{name}"'
            )
            ((inserted,),) = connection.sql(f'SELECT COUNT(*) FROM memory."{name}"').fetchall()
            if inserted:
                connection.execute(statement)
            ((there,),) = connection.sql(f'SELECT COUNT(*) FROM _fresh."{name}"').fetchall()
            if there != inserted:
                raise WarehouseError(f"the copy of {name} differs from the lake: try again")
            rows += inserted
    return rows


@contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, fresh: Path) -> Iterator[None]:
    # What does not fit into memory is sorted beside the file; a journal would take room too.
    settings = {"temp_directory": str(fresh.parent / "sorted"), "checkpoint_threshold": "1KB"}
    for name, value in settings.items():
        connection.execute(f"SET {name} = {quoted(value)}")
    connection.execute(f"ATTACH {quoted(str(fresh))} AS _fresh")
    try:
        yield
    finally:
        with suppress(duckdb.Error):
            connection.execute("DETACH _fresh")
        for name in settings:
            with suppress(duckdb.Error):
                connection.execute(f"RESET {name}")


def _give_name(fresh: Path, path: Path) -> None:
    """The name, unless another process has made a file of that name meanwhile."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise WarehouseError(f"{path} is there already: name a file that is not") from None
    except OSError:  # A file system without links.
        fresh.rename(path)
