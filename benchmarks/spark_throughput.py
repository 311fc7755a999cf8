"""The speed of an ingest into a lake on two executors of Spark, and by `--jobs 2`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from bench import Bench, measure
from dumps import Module, lay_copies
from figures import Figure
from process import in_turn, memhouse

from memhouse import lake
from memhouse import spark as on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many times as many modules the second ingest has.
_TIMES = 3
# At least this part of what two jobs read in a second.
_LIMIT = 0.9


def spark_throughput(bench: Bench) -> list[Figure]:
    """Few and many copies of the largest module, and of the next largest ones."""
    largest, *others = bench.dumps.modules[: 1 + bench.options.modules]
    with _session(bench.new_path("spark")) as spark:
        return [
            _figure(bench, spark, "large modules", [largest]),
            _figure(bench, spark, "smaller modules", others),
        ]


def _figure(bench: Bench, spark: "SparkSession", name: str, modules: list[Module]) -> Figure:
    """How fast Spark is beside two jobs, beyond what few copies take."""
    few, many = bench.options.copies, _TIMES * bench.options.copies
    folders = [lay_copies(bench.new_path("copies"), modules, count) for count in (few, many)]
    works = [partial(_jobs, bench, folder) for folder in folders]
    works += [partial(_executors, bench, spark, folder) for folder in folders]
    two_few, two_many, spark_few, spark_many = map(median, in_turn(bench.few_rounds, *works))
    parts = (
        f"{(many - few) * len(modules)} modules more: {two_many - two_few:.2f} s by two jobs, "
        f"{spark_many - spark_few:.2f} s on executors; few take {two_few:.2f} and {spark_few:.2f} s"
    )
    ratio = (two_many - two_few) / (spark_many - spark_few)
    return Figure(
        f"executors beside --jobs 2: {name}", [ratio], "", _LIMIT, at_least=True, parts=parts
    )


def _jobs(bench: Bench, folder: Path) -> float:
    place = lake.init(bench.new_path("lake"))
    return memhouse("ingest", "--db", place, "--jobs", "2", folder).seconds


def _executors(bench: Bench, spark: "SparkSession", folder: Path) -> float:
    place = lake.init(bench.new_path("lake"))
    start = perf_counter()
    on_spark.ingest(spark, place, folder)
    return perf_counter() - start


@contextmanager
def _session(folder: Path) -> Iterator["SparkSession"]:
    """Two executors on this machine, of a core each."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    builder = builder.config("spark.sql.warehouse.dir", str(folder))
    spark = (
        builder.config("spark.ui.showConsoleProgress", "false")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    measure([spark_throughput])
