"""The tables of a lake as Spark reads them: by the list of files, so without the jar of Delta."""

from typing import TYPE_CHECKING

import pyarrow as pa

from ..schema import arrow
from ..schema.lake.data_files import HISTORY, relations
from ..schema.lake.lake_history import changed_runs
from ..schema.stores.delta import DeltaStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES = {
    pa.string(): "STRING",
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
}
# What Hadoop calls the stores that have another name for deltalake and fsspec.
_HADOOP_SCHEMES = {"s3": "s3a", "az": "abfs"}


def spark_tables(spark: "SparkSession", store: DeltaStore) -> dict[str, "DataFrame"]:
    """Each table of the lake, as it is now; those without a file are empty.

    Raises WarehouseError.
    """
    snapshot = store.lake.snapshot
    found = {}
    # Another process may have stored runs without their history: then it is worked out here.
    is_stored = changed_runs(store.lake) == []
    for name in relations():
        schema = _schema(name)
        files = snapshot.of(name)
        if name in HISTORY and not is_stored:
            rows = store.rows(f'SELECT * FROM "{name}"').select(arrow.schema(name).names)
            found[name] = _local(spark, rows, schema)
        elif files:
            paths = [_hadoop_url(f"{store.name}/{file.path}") for file in files]
            found[name] = spark.read.schema(schema).parquet(*paths)
        else:
            found[name] = spark.sql(f"SELECT {_nulls(name)} WHERE false")
    return found


def _local(spark: "SparkSession", rows: pa.Table, schema: str) -> "DataFrame":
    """Rows of this process in Spark; Spark 3.5 takes no Arrow, and needs executors with Python."""
    if int(spark.version.split(".")[0]) >= 4:
        return spark.createDataFrame(rows, schema)
    values = [tuple(row.values()) for row in rows.to_pylist()]
    return spark.createDataFrame(values, schema)


def _nulls(table: str) -> str:
    return ", ".join(
        f"CAST(NULL AS {_type(column.type)}) AS `{column.name}`" for column in arrow.schema(table)
    )


def _schema(table: str) -> str:
    return ", ".join(f"`{column.name}` {_type(column.type)}" for column in arrow.schema(table))


def _type(column: pa.DataType) -> str:
    return "TIMESTAMP" if pa.types.is_timestamp(column) else _TYPES[column]


def _hadoop_url(file: str) -> str:
    """A file as Spark names it; a folder on a disk is named so on all machines."""
    scheme, is_url, rest = file.partition("://")
    if not is_url:
        return f"file://{file}"
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"
