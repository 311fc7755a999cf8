"""The canned views on Spark have the rows and types that they have in DuckDB."""

import shutil

import pytest
import sqlglot

from memhouse.queries.catalogue import views
from memhouse.queries.spark_sql import to_spark
from memhouse.queries.spark_views import register, spark_views

from ..support.dumps import RUNS
from ..support.spark import assert_same, tables
from ..support.warehouse import fill, reading

# A view with a row for every buffer and every time is compared at some times: Spark needs
# minutes for the others.
SOME = {"_counted_buffers": "WHERE is_peak OR time % 64 = 0"}
# One worker starts Spark, and the others do not.
in_spark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def everything(history, tmp_path_factory):
    """A warehouse of the ten nights and of all sample dumps."""
    db = shutil.copy(history, tmp_path_factory.mktemp("spark") / "everything.duckdb")
    fill(db, *RUNS)
    # Spark's answers are Parquet files.
    with reading(db, files=True) as store:
        yield store


@pytest.fixture(scope="module")
def registered(spark, everything, tmp_path_factory):
    """The same in Spark."""
    register(spark, tables(spark, everything, tmp_path_factory.mktemp("tables")))
    return spark


@pytest.mark.parametrize("view", [pytest.param(view, marks=in_spark) for view in views()])
def test_a_view_is_the_same_in_spark(everything, registered, view, tmp_path):
    query = f"SELECT * FROM {view} {SOME.get(view, '')}"
    assert assert_same(everything, query, registered.sql(query), tmp_path / "answer")


# --- what sqlglot leaves to us ------------------------------------------------------------


@pytest.mark.parametrize("view", views())
def test_a_view_parses_as_sql_of_spark(view):
    assert sqlglot.parse_one(spark_views()[view], read="spark")


# The keys a and b of four rows; one text is missing.
ROWS = """(
    SELECT 'x' AS a, 3 AS b UNION ALL SELECT 'y', 2 UNION ALL SELECT 'x', 1 UNION ALL SELECT NULL, 0
) AS t"""


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "texts",
    [
        "DISTINCT a, ', ' ORDER BY a",
        "DISTINCT a, ', ' ORDER BY a DESC",
        "a, '+' ORDER BY b",
        "a, '+' ORDER BY b DESC",
        "a ORDER BY b",
    ],
)
def test_texts_are_joined_alike(everything, spark, texts, tmp_path):
    query = f"SELECT STRING_AGG({texts}) AS joined FROM {ROWS}"
    nothing = f"SELECT STRING_AGG({texts}) AS joined FROM {ROWS} WHERE a IS NULL"
    for number, asked in enumerate([query, nothing]):
        there = spark.sql(to_spark(asked))
        assert assert_same(everything, asked, there, tmp_path / str(number)) == 1


@pytest.mark.parametrize("texts", ["DISTINCT a, ', ' ORDER BY a", "a, '+' ORDER BY b", "a"])
def test_texts_are_joined_without_what_spark_3_lacks(texts):
    assert "LISTAGG" not in to_spark(f"SELECT STRING_AGG({texts}) FROM t")


def test_texts_in_two_directions_are_refused():
    with pytest.raises(sqlglot.UnsupportedError, match="all keys up"):
        to_spark("SELECT STRING_AGG(a, ',' ORDER BY b, c DESC) FROM t")
