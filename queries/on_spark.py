"""memhouse's tables and canned views on Spark, by the names that they have in DuckDB."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from ..schema import arrow
from ..schema.errors import MissingPackageError
from ..schema.lake.data_files import HISTORY, relations
from ..schema.lake.lake_history import changed_runs
from .catalogue import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..schema.stores.delta import DeltaStore


def register(spark: "SparkSession", tables: Mapping[str, "DataFrame"]) -> None:
    """Give the session the tables and all canned views as temporary views.

    `tables` are all of memhouse's tables by name, each with the columns of `schema/arrow.py`.
    Temporary views of the same names are replaced, and the session's time zone becomes UTC.
    Raises MissingPackageError without sqlglot.
    """
    canned = spark_views()
    # DuckDB's is UTC too.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    for name, query in canned.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")


@cache
def spark_views() -> dict[str, str]:
    """The queries of all canned views in Spark's SQL by name: each uses only views before it.

    Raises MissingPackageError without sqlglot.
    """
    try:
        from .spark_sql import to_spark
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise MissingPackageError(
            "views on Spark need sqlglot: pip install 'memhouse[spark]'"
        ) from None
    return {name: to_spark(view.sql) for name, view in views().items()}


# The tables of a lake as Spark reads them: by the list of files, so without the jar of Delta.

_TYPES = {
    pa.string(): "STRING",
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
}
# What Hadoop calls the stores that have another name for deltalake and fsspec.
_HADOOP_SCHEMES = {"s3": "s3a", "az": "abfs"}


def spark_tables(spark: "SparkSession", store: "DeltaStore") -> dict[str, "DataFrame"]:
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


# SQL that registers a lake in Spark's catalog.

_TABLE = "memhouse_lake"
_HEAD = """\
-- The lake {place} in Spark: its Delta table, a view for each
-- table of memhouse, and memhouse's own views. Give it in a schema of its own, to a Spark that
-- has Delta's package; where it does not know s3://, write s3a://. Spark may only read the lake:
-- memhouse writes, compacts and cleans it.
-- The views reckon times in UTC: SET TIME ZONE 'UTC' in each session."""


def ddl(place: str) -> str:
    """The statements, each ended by a semicolon.

    The history in Spark is as it was stored last, after an ingest. Raises MissingPackageError
    without sqlglot.
    """
    literal = place if "://" in place else f"file://{place}"
    statements = [
        f"CREATE TABLE IF NOT EXISTS {_TABLE} USING delta LOCATION {_quoted(literal)}",
        *(_view(name, _relation(name)) for name in relations()),
        *(_view(name, query) for name, query in spark_views().items()),
    ]
    return "\n\n".join([_HEAD.format(place=place), *(f"{text};" for text in statements)]) + "\n"


def _view(name: str, query: str) -> str:
    return f"CREATE OR REPLACE VIEW `{name}` AS\n{query}"


def _relation(name: str) -> str:
    columns = ", ".join(f"`{column}`" for column in arrow.schema(name).names)
    return f"SELECT {columns}\nFROM {_TABLE}\nWHERE relation = {_quoted(name)}"


def _quoted(text: str) -> str:
    """A text in Spark's SQL, where a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
