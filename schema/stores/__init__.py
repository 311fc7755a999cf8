"""The store of a warehouse, a DuckDB file, by its name."""

import os
import tempfile
from pathlib import Path

from ..errors import WarehouseError
from ..private_folder import remove_leftovers
from .duckdb import Store, database_path, open_file


def open_store(db: str, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the warehouse at `db`, a DuckDB file or its URL.

    With `create`, what is absent is made. Raises WarehouseError.
    """
    if not read_only:
        remove_leftovers(Path(tempfile.gettempdir()))
    if db and "://" not in db and (db.endswith(os.sep) or Path(db).is_dir()):
        raise WarehouseError(f"{db} is a folder: name a file")
    path = database_path(db) if db and not read_only else None
    if path is not None:
        remove_leftovers(path.resolve().parent)
    return open_file(db, create=create, read_only=read_only)
