"""memhouse's tables and canned views in a Spark session, by the names that they have in DuckDB."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ..schema.errors import MissingPackageError
from .catalogue import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
