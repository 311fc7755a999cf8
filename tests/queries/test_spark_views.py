"""The canned views on Spark have the rows and types that they have in DuckDB."""

import shutil

import pytest

from memhouse.queries.catalogue import views
from memhouse.queries.spark_sql import to_spark
from memhouse.queries.spark_views import register

from ..support.dumps import RUNS
from ..support.spark import assert_same, tables
from ..support.warehouse import fill, reading

# One worker starts Spark, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
# These are compared with each change: what is dearest to get wrong, or the most SQL.
ALWAYS = ("runs_summary", "peak_buffers", "trends", "latest", "memory_by_scope")
# The keys a and b of four rows; one text is missing.
ROWS = """(
    SELECT 'x' AS a, 3 AS b UNION ALL SELECT 'y', 2 UNION ALL SELECT 'x', 1 UNION ALL SELECT NULL, 0
) AS t"""


def texts_are_joined_alike(store, spark, folder):
    for number, texts in enumerate(
        (
            "DISTINCT a, ', ' ORDER BY a",
            "DISTINCT a, ', ' ORDER BY a DESC",
            "a, '+' ORDER BY b",
            "a, '+' ORDER BY b DESC",
            "a ORDER BY b",
        )
    ):
        query = f"""SELECT STRING_AGG({texts}) AS joined FROM {ROWS} UNION ALL
            SELECT STRING_AGG({texts}) FROM {ROWS} WHERE a IS NULL"""
        there = spark.sql(to_spark(query))
        assert assert_same(store, query, there, folder / f"joined-{number}") == 2


def test_views_of_the_samples_are_the_same_in_spark(copied, spark, tmp_path):
    """All views are registered, and so planned; some are read."""
    # Spark's answers are Parquet files, which other connections to the same file would not open.
    with reading(copied, files=True) as store:
        session = spark.newSession()
        register(session, tables(session, store, tmp_path))
        for view in ALWAYS:
            there = session.sql(f"SELECT * FROM {view}")
            assert assert_same(store, f"SELECT * FROM {view}", there, tmp_path / f"answer-{view}")
        texts_are_joined_alike(store, session, tmp_path)


@pytest.fixture(scope="module")
def everything(history, tmp_path_factory):
    """A warehouse of the ten nights and of all sample dumps."""
    db = shutil.copy(history, tmp_path_factory.mktemp("spark") / "everything.duckdb")
    fill(db, *RUNS)
    with reading(db, files=True) as store:
        yield store


@pytest.fixture(scope="module")
def registered(spark, everything, tmp_path_factory):
    """The same in Spark."""
    session = spark.newSession()
    register(session, tables(session, everything, tmp_path_factory.mktemp("tables")))
    return session


@pytest.mark.scheduled
@pytest.mark.parametrize("view", views())
def test_a_view_is_the_same_in_spark(everything, registered, view, tmp_path):
    query = f"SELECT * FROM {view}"
    assert assert_same(everything, query, registered.sql(query), tmp_path / "answer")
