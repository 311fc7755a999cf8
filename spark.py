"""memhouse on Spark: the tables and views of a lake as Spark's, and ingest by its executors.

    import memhouse.spark

    memhouse.spark.ingest(spark, "s3://bucket/memhouse", "s3://dumps/2026-10-01")
    memhouse.spark.views(spark, "s3://bucket/memhouse")
    spark.sql("SELECT workload, peak_bytes FROM peaks").show()

Executors need the driver's version of memhouse. To read a lake Spark needs no jar of Delta; to
read s3:// it needs hadoop-aws, as clusters have it. Ingest needs neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from . import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .ingest.pipeline import Summary
    from .schema.stores.delta import DeltaStore

__all__ = ["ingest", "views"]


def views(spark: SparkSession, url: str | os.PathLike[str]) -> list[str]:
    """Register the tables of a lake and all canned views as temporary views; their names.

    They show the lake as it is now: call again to see what was stored since. The session's time
    zone becomes UTC. Raises WarehouseError, and MissingPackageError without `memhouse[spark]`.
    """
    from .queries.on_spark import register, spark_tables, spark_views

    with _lake(url, read_only=True) as store:
        tables = spark_tables(spark, store)
        register(spark, tables)
    return [*tables, *spark_views()]


def ingest(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *paths: str | os.PathLike[str],
    run: str | None = None,
    labels: Mapping[str, str] | None = None,
    at: datetime | None = None,
    tasks: int | None = None,
) -> Summary:
    """Ingest the dumps under the paths into a lake as one run, as `Warehouse.ingest` does.

    `paths` are folders, archives or files, or URLs such as s3://dumps/2026-10-01, by which all
    executors see the same: a path that one does not see is an error, and nothing is stored then.
    With a `run` there may be several. `tasks` is how many tasks read at most, by default two a
    core. Raises JobError, UsageError and WarehouseError.
    """
    from .ingest.pipeline import ingest as ingest_paths
    from .ingest.sources.files import path_of
    from .ingest.spark_ingest import Executors
    from .queries.arguments import check_labels

    # Executors have a current folder of their own.
    given = [path.absolute() if isinstance(path, Path) else path for path in map(path_of, paths)]
    with _lake(url) as store:
        executors = Executors(spark, store.name, given, tasks)
        summary = ingest_paths(
            store,
            *given,
            tool_version=__version__,
            workers=executors,
            run_id=run,
            run_at=at,
            labels=check_labels(labels),
        )
        executors.discard_files()
        store.tidy()
        return summary


@contextmanager
def _lake(url: str | os.PathLike[str], *, read_only: bool = False) -> Iterator[DeltaStore]:
    """The lake at a URL or in a folder. A URL where nothing is becomes one if it is written to."""
    from .queries.catalogue import use_views
    from .schema.stores.delta import DeltaStore

    db = os.fspath(url)
    # Of a folder's name that is mistyped nothing may be left.
    store = DeltaStore(db, create=not read_only and "://" in db, read_only=read_only)
    try:
        use_views(store, read_only=read_only)
        yield store
    finally:
        store.close()
