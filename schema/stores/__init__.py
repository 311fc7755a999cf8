"""The stores: a DuckDB file and a lake; a name tells which one it is."""

import os
import tempfile
from pathlib import Path

from ..errors import WarehouseError
from ..lake.storage import is_lake, location
from ..private_folder import remove_leftovers
from ..readable import command
from .base import Store
from .duckdb import database_path, open_file


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the warehouse at `db`: a lake's URL or folder, else a DuckDB file or its URL.

    With `create`, what is absent is made. Raises WarehouseError.
    """
    if not read_only:
        remove_leftovers(Path(tempfile.gettempdir()))
    # A lake without its log is one still: what is wrong is told.
    if is_lake(db) or (db and any(Path(db).glob("relation=*"))):
        from .delta import DeltaStore

        store = DeltaStore(db, create=create, read_only=read_only)
        # Says at once what is wrong with the lake.
        _ = store.lake
        return store
    if "://" not in db:
        # Raises for a URL with a slip.
        location(db)
    if db and "://" not in db and (db.endswith(os.sep) or Path(db).is_dir()):
        make = command("lake", "init", names=[db])
        raise WarehouseError(
            f"{db} is a folder, but no lake: make one with `{make}`, or name a file"
        )
    path = database_path(db) if db and not read_only else None
    if path is not None:
        remove_leftovers(path.resolve().parent)
    return open_file(db, create=create, read_only=read_only)
