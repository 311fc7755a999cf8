"""Opening the warehouse for a command: tables by `schema`, views by `queries`."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

import sqlalchemy as sa

from ..queries.catalogue import use_views
from ..schema.errors import WarehouseBusyError
from ..schema.stores.duckdb import open_warehouse
from .render.output import print_note

_ASK_AGAIN_SECONDS = 0.2


@contextmanager
def reading(db: str, *, wait: float = 0) -> Iterator[sa.Connection]:
    """A connection that can only read; waits `wait` seconds for a warehouse in use."""
    engine = _opened(db, wait, read_only=True)
    try:
        with engine.connect() as connection:
            use_views(connection, read_only=True)
            # A query that fails takes its transaction with it; the views are to stay.
            connection.commit()
            yield connection
    finally:
        engine.dispose()


@contextmanager
def writing(db: str, *, wait: float = 0, create: bool = True) -> Iterator[sa.Engine]:
    """An engine that can write; with `create` a warehouse that is not there yet is made.

    Waits `wait` seconds for a warehouse in use.
    """
    engine = _opened(db, wait, create=create)
    try:
        with engine.begin() as connection:
            use_views(connection, read_only=False)
        yield engine
    finally:
        engine.dispose()


def _opened(db: str, wait: float, *, create: bool = False, read_only: bool = False) -> sa.Engine:
    """The warehouse, open; the user is told whom it is waited for."""
    end = monotonic() + wait
    told = False
    while True:
        try:
            return open_warehouse(db, create=create, read_only=read_only)
        except WarehouseBusyError as busy:
            if monotonic() >= end:
                raise
            if not told:
                print_note(f"{busy.in_use}: waiting up to {wait:g} s for it")
                told = True
        sleep(_ASK_AGAIN_SECONDS)
