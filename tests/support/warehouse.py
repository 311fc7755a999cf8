"""Warehouses: filled from dumps, and read row by row."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memhouse.ingest.pipeline import Summary, ingest
from memhouse.ingest.workers import Workers
from memhouse.queries.catalogue import use_views
from memhouse.schema.arrow import sql_name, stored_columns, tables
from memhouse.schema.store import Store, open_file


@contextmanager
def writing(db: Path) -> Iterator[Store]:
    """A warehouse to write to, made if it is not there."""
    store = open_file(str(db), create=True)
    try:
        use_views(store)
        yield store
    finally:
        store.close()


@contextmanager
def reading(db: Path, *, files: bool = False) -> Iterator[Store]:
    """A warehouse to read; with `files`, beside other files."""
    store = open_file(str(db), read_only=True, files=files)
    try:
        yield store
    finally:
        store.close()


def fill(db: Path, *paths: Path, jobs: int = 1, **options: Any) -> list[Summary]:
    """Ingest the paths into a warehouse; what became of each."""
    with writing(db) as store, Workers(jobs) as workers:
        return [
            ingest(store, path, tool_version="test", workers=workers, **options) for path in paths
        ]


def rows(db: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on a warehouse."""
    with reading(db) as store:
        return list(store.connection.sql(query).fetchall())


def everything(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, sorted."""
    with reading(db) as store:
        duck = store.connection
        return {
            name: duck.sql(f"SELECT * FROM {sql_name(name)} ORDER BY ALL").fetchall()
            for name in tables()
        }


def content(db: Path, *but: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row but the journal's, without when the runs entered: what two warehouses share.

    Nor have the rows the columns in `but`.
    """
    left_out = {"run_at", "ingested_at", "entered_at", *but}
    with reading(db) as store:
        duck = store.connection
        found = {}
        for name in tables():
            kept = [f'"{column}"' for column in stored_columns()[name] if column not in left_out]
            if name != "journal":
                query = f"SELECT {', '.join(kept)} FROM {sql_name(name)} ORDER BY ALL"
                found[name] = duck.sql(query).fetchall()
        return found
