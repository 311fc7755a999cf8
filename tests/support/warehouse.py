"""Warehouses: filled from dumps, and read row by row."""

from pathlib import Path
from typing import Any

from memhouse.cli.warehouse import reading, writing
from memhouse.ingest.pipeline import Summary, ingest
from memhouse.ingest.workers import Readers
from memhouse.schema.stores.duckdb import driver


def fill(db: Path, *paths: Path, jobs: int = 1, **options: Any) -> list[Summary]:
    """Ingest the paths into a warehouse; what became of each."""
    with writing(str(db)) as engine, Readers(jobs) as readers:
        return [
            ingest(lambda: engine, path, tool_version="test", readers=readers, **options)
            for path in paths
        ]


def rows(db: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on a warehouse."""
    with reading(str(db)) as connection:
        return driver(connection).sql(query).fetchall()


def everything(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, sorted."""
    with reading(str(db)) as connection:
        duck = driver(connection)
        names = duck.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        return {
            name: duck.sql(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall() for (name,) in names
        }
