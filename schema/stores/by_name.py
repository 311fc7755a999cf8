"""Opens the store that a name tells: a DuckDB file, or a lake."""

import os
from pathlib import Path

from ..errors import WarehouseError
from ..lake.storage import is_lake, location
from .base import Store
from .duckdb import open_store as open_file


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the warehouse at `db`: a lake's URL or folder, else a DuckDB file or its URL.

    With `create`, what is absent is made. Raises WarehouseError.
    """
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
        raise WarehouseError(
            f"{db} is a folder, but no lake: make one with `memhouse lake init {db}`, "
            "or name a file"
        )
    return open_file(db, create=create, read_only=read_only)
