"""Opening the warehouse for a command: tables by `schema`, views by `queries`."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from ..queries.catalogue import use_views
from ..schema.warehouse import open_warehouse


@contextmanager
def reading(db: str) -> Iterator[sa.Connection]:
    """A connection that can only read."""
    engine = open_warehouse(db, read_only=True)
    try:
        with engine.connect() as connection:
            use_views(connection, read_only=True)
            # A query that fails takes its transaction with it; the views are to stay.
            connection.commit()
            yield connection
    finally:
        engine.dispose()


@contextmanager
def writing(db: str) -> Iterator[sa.Engine]:
    """An engine that can write; a warehouse that is not there yet is made."""
    engine = open_warehouse(db, create=True)
    try:
        with engine.begin() as connection:
            use_views(connection, read_only=False)
        yield engine
    finally:
        engine.dispose()
