"""Opening the warehouse for a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ..queries.catalogue import open_with_views
from ..schema.compaction import DELETED_BYTES, QUICK_BYTES
from ..schema.errors import until_free
from ..schema.store import Store
from ..warehouse import Warehouse
from .render.text import print_note
from .settings import find_settings


@contextmanager
def open_warehouse(db: str, wait: float = 0, *, write: bool = False) -> Iterator[Warehouse]:
    """Open a warehouse, read-only unless `write`; wait up to `wait` seconds for other processes."""
    store = _open(db, wait, read_only=not write)
    try:
        yield Warehouse(store, macros=find_settings().macros)
        store.tidy()
    finally:
        store.close()


@contextmanager
def reading(db: str, *, wait: float = 0) -> Iterator[Store]:
    """Open the store of a warehouse read-only; wait up to `wait` seconds for other processes."""
    with open_warehouse(db, wait) as warehouse:
        yield warehouse.store


@contextmanager
def ingesting(db: str, *, wait: float = 0, deletes: bool = False) -> Iterator[Store]:
    """Open a warehouse on first use, and create it if it is missing.

    At the end it is compacted if that is quick; with `deletes`, also if it takes longer.
    """
    max_bytes = DELETED_BYTES if deletes else QUICK_BYTES
    opened: list[Store] = []

    def connect() -> duckdb.DuckDBPyConnection:
        store = _open(db, wait, create=True)
        opened.append(store)
        return store.connection

    is_new = "://" not in db and not Path(db).exists()
    try:
        yield Store(db, connect, is_new=is_new)
        for store in opened:
            store.tidy(max_bytes)
    finally:
        for store in opened:
            store.close()


def _open(db: str, wait: float, *, create: bool = False, read_only: bool = False) -> Store:
    """Open a warehouse with its views; while it is in use, wait and print the other process."""
    return until_free(
        lambda: open_with_views(db, create=create, read_only=read_only),
        wait,
        lambda busy: print_note(f"{busy.in_use}: waiting up to {wait:g} s for it"),
    )
