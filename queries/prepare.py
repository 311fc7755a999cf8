"""Writes the file that new warehouses are copied from: `python -m memhouse.queries.prepare`.

Building a wheel runs it, and so do the tests, because DuckDB takes 0.3 s to make all tables, views
and comments by SQL.
"""

import tempfile
from pathlib import Path

from ..schema.stores.duckdb import open_file, prepared_file
from .catalogue import use_views


def prepare() -> None:
    """Write an empty warehouse to where `open_file` looks for it."""
    file = prepared_file()
    for older in file.parent.glob("prepared-*.duckdb"):
        older.unlink()
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder, file.name)
        store = open_file(str(made), create=True)
        use_views(store, read_only=False)
        store.close()
        made.rename(file)


if __name__ == "__main__":
    prepare()
