"""memhouse on Spark: runs that executors ingest and publish to a lake.

    import memhouse.spark

    memhouse.spark.ingest(spark, ["/dumps/2026-10-01", "/dumps/2026-10-02"], "s3://bucket/memhouse")

Executors need the driver's memhouse with the extra `lake`, and see the paths as the driver does.
To read a lake, Spark needs nothing of memhouse: see `memhouse publish`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import UsageError
from . import open as open_warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ingest"]


def ingest(
    spark: SparkSession,
    paths: Sequence[str | os.PathLike[str]],
    url: str,
    *,
    labels: Mapping[str, str] | None = None,
    tasks: int | None = None,
) -> list[str]:
    """Ingest each path as a run of its name and publish it; lines about files and runs, by path.

    Relations across runs, such as `trends`, are not written: a publish from a file with all runs
    writes them.

    Args:
        paths: folders, archives or files, by names that all executors see.
        url: the lake, as `memhouse publish` takes it.
        labels: labels of every run.
        tasks: number of tasks that share the paths (default: one a path).
    """

    def ingest_partition(part: Iterable[str]) -> Iterator[str]:
        for path in part:
            with (
                tempfile.TemporaryDirectory(prefix="memhouse-") as folder,
                open_warehouse(Path(folder, "part.duckdb")) as warehouse,
            ):
                summary = warehouse.ingest(path, labels=labels)
                published = warehouse.publish(lake, across_runs=False)
                yield from (f"{path}: {line}" for line in (*summary.problems, *published.notes))

    names = [os.path.abspath(path) for path in paths]  # noqa: PTH100 (a link's name is the run's)
    if len({Path(name).name for name in names}) < len(names):
        raise UsageError("two of these paths have one name, which names the run", "paths")
    # Executors have a current folder of their own.
    lake = url if "://" in url else os.path.abspath(url)  # noqa: PTH100
    return (
        spark.sparkContext.parallelize(names, tasks or len(names))
        .mapPartitions(ingest_partition)
        .collect()
    )
