"""Spark on this machine, and memhouse's tables and views in it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from memhouse.schema import arrow
from memhouse.schema.stores.duckdb import DuckDBStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.driver.memory": "1g",
    # The tests' rows are few: what prepares for many takes longer than the query.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# What Spark calls the types that DuckDB's columns have.
TYPES = {
    "BIGINT": "bigint",
    "INTEGER": "int",
    "VARCHAR": "string",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "TIMESTAMP": "timestamp_ntz",
    "VARCHAR[]": "array<string>",
}
# And the types of Arrow.
_ARROW_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "null": "void",
}
# Engines add doubles up in different orders.
NEARLY = 1e-12


@contextmanager
def local_spark(folder: Path) -> Iterator["SparkSession"]:
    """A session of two threads that leaves its files in `folder`."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Executors run the Python that has memhouse.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("memhouse's tests")
    builder = builder.config("spark.sql.warehouse.dir", str(folder))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # Queries that Spark refuses are tested too; pytest shows the error.
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def tables(spark: "SparkSession", store: DuckDBStore, folder: Path) -> dict[str, "DataFrame"]:
    """All tables of a warehouse in Spark, through Parquet files in `folder`."""
    found = {}
    for name in arrow.tables():
        columns = ", ".join(f'"{column}"' for column in arrow.schema(name).names)
        rows = store.rows(f'SELECT {columns} FROM "{name}"').cast(arrow.schema(name))
        found[name] = frame(spark, name, rows, folder)
    return found


def frame(spark: "SparkSession", name: str, rows: pa.Table, folder: Path) -> "DataFrame":
    """Rows in Spark, through a Parquet file in `folder`."""
    # Spark reads nothing from a file whose name starts with an underscore, and says nothing.
    file = folder / f"rows-{name}.parquet"
    pq.write_table(rows, file)
    # Without the schema Spark would start a job to read it from the file.
    schema = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in rows.schema)
    return spark.read.schema(schema).parquet(str(file))


def spark_type(type_: pa.DataType) -> str:
    """What Spark calls a type of Arrow."""
    if pa.types.is_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{each.name}:{spark_type(each.type)}' for each in type_)}>"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    return _ARROW_TYPES.get(str(type_), str(type_))


def assert_same(store: DuckDBStore, query: str, there: "DataFrame", folder: Path) -> int:
    """A query in DuckDB and Spark's answer have the same columns, types and rows: how many.

    The order of rows is not compared. `folder` is made for Spark's answer.
    """
    duck = store.connection
    here = duck.sql(query)
    # Spark has the words of closed lists as text, and sorts them so.
    words = [
        f'CAST("{name}" AS TEXT) AS "{name}"'
        for name, type_ in zip(here.columns, here.types, strict=True)
        if type_.id == "enum"
    ]
    if words:
        here = duck.sql(f"SELECT * REPLACE ({', '.join(words)}) FROM ({query})")
    types = [TYPES.get(str(type_), str(type_)) for type_ in here.types]
    said = [(column.name, column.dataType.simpleString()) for column in there.schema]
    assert said == list(zip(here.columns, types, strict=True))
    there.write.parquet(str(folder))
    expected = _in_order(here)
    found = _in_order(duck.read_parquet(f"{folder}/*.parquet"))
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        assert _alike(expected[name].combine_chunks(), found[name].combine_chunks()), name
    return int(expected.num_rows)


def _in_order(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows, sorted: by doubles last, because they are not quite the same."""
    types = zip(relation.columns, relation.types, strict=True)
    keys = sorted((str(type_) == "DOUBLE", name) for name, type_ in types)
    return relation.order(", ".join(f'"{name}"' for _, name in keys)).to_arrow_table()


def _alike(ours: pa.Array, theirs: pa.Array) -> bool:
    if not pa.types.is_floating(ours.type):
        return ours.equals(theirs.cast(ours.type))
    if not ours.is_null().equals(theirs.is_null()):
        return False
    here, there = ours.fill_null(0).to_numpy(), theirs.fill_null(0).to_numpy()
    return np.allclose(here, there, rtol=NEARLY, atol=0, equal_nan=True)
