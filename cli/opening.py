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
    """The warehouse, to read unless `write`; waits `wait` seconds while another process uses it."""
    with (writing if write else reading)(db, wait=wait) as store:
        yield Warehouse(store, macros=find_settings().macros)


@contextmanager
def reading(db: str, *, wait: float = 0) -> Iterator[Store]:
    """The warehouse, to read only; waits `wait` seconds while another process uses it."""
    store = _opened(db, wait, read_only=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def writing(db: str, *, wait: float = 0) -> Iterator[Store]:
    """The warehouse, to write; waits `wait` seconds while another process uses it."""
    store = _opened(db, wait)
    try:
        yield store
        store.tidy()
    finally:
        store.close()


@contextmanager
def ingesting(db: str, *, wait: float = 0, deletes: bool = False) -> Iterator[Store]:
    """The warehouse to ingest into: opened, or made, when it is first needed.

    At the end it is tidied if that is quick; where rows were deleted, it may take longer.
    """

    most_bytes = DELETED_BYTES if deletes else QUICK_BYTES
    opened: list[Store] = []

    def connect() -> duckdb.DuckDBPyConnection:
        store = _opened(db, wait, create=True)
        assert isinstance(store, Store)
        opened.append(store)
        return opened[0].connection

    is_new = "://" not in db and not Path(db).exists()
    try:
        yield Store(db, connect, is_new=is_new)
        for store in opened:
            store.tidy(most_bytes)
    finally:
        for store in opened:
            store.close()


def _opened(db: str, wait: float, *, create: bool = False, read_only: bool = False) -> Store:
    """The warehouse with its views; the user is told whom it is waited for."""
    return until_free(
        lambda: open_with_views(db, create=create, read_only=read_only),
        wait,
        lambda busy: print_note(f"{busy.in_use}: waiting up to {wait:g} s for it"),
    )
