"""memhouse: a SQL warehouse for the memory dumps of the XLA compiler.

    import memhouse

    with memhouse.open("memhouse.duckdb") as warehouse:
        warehouse.ingest("dumps/2026-10-01")
        peaks = warehouse.sql("SELECT workload, peak_bytes FROM peaks").df()

The `memhouse` command does the same from a shell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

# What a command does not need it must not import: pyarrow, DuckDB and SQLAlchemy come in
# where they are used.
if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import sqlalchemy

    from .ingest.pipeline import Summary

__version__ = "0.1.0"
__all__ = ["Rows", "Warehouse", "__version__", "open"]


def open(db: str | os.PathLike[str] = "memhouse.duckdb", *, read_only: bool = False) -> Warehouse:
    """Open the warehouse at `db`, a path or a duckdb:/// URL; make it if it is not there.

    Opened `read_only` it can be read by several at once, but must be there. Raises
    memhouse.schema.warehouse.WarehouseError.
    """
    from .queries.catalogue import use_views
    from .schema.stores.duckdb import open_warehouse

    engine = open_warehouse(os.fspath(db), create=not read_only, read_only=read_only)
    connection = engine.connect()
    use_views(connection, read_only=read_only)
    connection.commit()
    return Warehouse(engine, connection)


@dataclass(frozen=True)
class Rows:
    """The rows of a query, as Arrow keeps them."""

    table: pyarrow.Table

    def arrow(self) -> pyarrow.Table:
        """The rows as a pyarrow table."""
        return self.table

    def df(self) -> pandas.DataFrame:
        """The rows as a pandas data frame; pandas must be installed."""
        return self.table.to_pandas()

    def pl(self) -> polars.DataFrame:
        """The rows as a polars data frame; polars must be installed."""
        import polars

        frame = polars.from_arrow(self.table)
        assert isinstance(frame, polars.DataFrame), "a table makes a frame"
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)


class Warehouse:
    """An open warehouse; close it, or use it in a `with` statement."""

    def __init__(self, engine: sqlalchemy.Engine, connection: sqlalchemy.Connection) -> None:
        self._engine = engine
        self._connection = connection

    def sql(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a query; `$1` and so on in it are the parameters. Raises duckdb.Error."""
        from .schema.stores.duckdb import fetch

        return Rows(fetch(self._connection, query, parameters))

    def ingest(
        self,
        path: str | os.PathLike[str],
        *,
        run: str | None = None,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        jobs: int = 1,
    ) -> Summary:
        """Ingest the dumps under `path` as one run, as `memhouse ingest` does.

        `at` with no time zone is UTC. What is wrong with single files is in the summary's
        problems, and in `dump_files`.
        """
        from .ingest.pipeline import ingest
        from .ingest.workers import Readers

        with Readers(jobs) as readers:
            return ingest(
                lambda: self._engine,
                Path(path),
                tool_version=__version__,
                readers=readers,
                run_id=run,
                run_at=at,
                labels=dict(labels or {}),
            )

    def close(self) -> None:
        """Let go of the database file."""
        self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
