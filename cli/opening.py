"""Opening the warehouse for a command: tables by `schema`, views by `queries`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..queries.catalogue import open_with_views
from ..schema.errors import until_free
from ..schema.lake.snapshot import is_made
from ..schema.lake.storage import is_lake, location
from ..schema.stores.base import QUICK_BYTES, Store
from ..schema.stores.duckdb import DuckDBStore
from .render.text import print_note

if TYPE_CHECKING:
    import duckdb


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
def ingesting(db: str, *, wait: float = 0, most_bytes: int = QUICK_BYTES) -> Iterator[Store]:
    """The warehouse to ingest into: opened, or made, when it is first needed.

    At the end it is tidied if it uses at most `most_bytes`.
    """
    if is_lake(db):
        is_new = not is_made(location(db))
        store = _opened(db, wait, create=True)
        if is_new:
            # A slip in a URL makes one too.
            print_note(f"{db} is a new lake")
        try:
            yield store
            store.tidy(most_bytes)
        finally:
            store.close()
        return
    opened: list[DuckDBStore] = []

    def connect() -> "duckdb.DuckDBPyConnection":
        store = _opened(db, wait, create=True)
        assert isinstance(store, DuckDBStore)
        opened.append(store)
        return opened[0].connection

    is_new = "://" not in db and not Path(db).exists()
    try:
        yield DuckDBStore(db, connect, is_new=is_new)
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
