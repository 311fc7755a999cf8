"""The canned views on Spark have the rows and types that they have in DuckDB."""

import shutil

import pytest

from memhouse.queries.catalogue import views
from memhouse.queries.on_spark import register
from memhouse.queries.spark_sql import to_spark

from ..support.dumps import DUMPS, RUNS
from ..support.spark import assert_same, tables
from ..support.warehouse import fill, reading

# One worker starts Spark, and the others do not. Each change has `test_spark_ddl.py` instead.
pytestmark = [pytest.mark.slow, pytest.mark.scheduled, pytest.mark.xdist_group("spark")]
# The keys a and b of four rows; one text is missing.
ROWS = """(
    SELECT 'x' AS a, 3 AS b UNION ALL SELECT 'y', 2 UNION ALL SELECT 'x', 1 UNION ALL SELECT NULL, 0
) AS t"""


def test_texts_are_joined_alike(everything, spark, tmp_path):
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
        assert assert_same(everything, query, there, tmp_path / f"joined-{number}") == 2


@pytest.fixture(scope="module")
def everything(history, tmp_path_factory):
    """A warehouse of the ten nights, of all sample dumps, and of two hosts that differ."""
    db = shutil.copy(history, tmp_path_factory.mktemp("spark") / "everything.duckdb")
    fill(db, *RUNS)
    for host, sample in (("a", "jax-0.9.0"), ("b", "jax-0.10.2")):
        fill(db, DUMPS / "cpu" / sample, run_id="hosts", host=host)
    with reading(db, files=True) as store:
        yield store


@pytest.fixture(scope="module")
def registered(spark, everything, tmp_path_factory):
    """The same in Spark."""
    session = spark.newSession()
    register(session, tables(session, everything, tmp_path_factory.mktemp("tables")))
    return session


@pytest.mark.parametrize("view", views())
def test_a_view_is_the_same_in_spark(everything, registered, view, tmp_path):
    query = f"SELECT * FROM {view}"
    assert assert_same(everything, query, registered.sql(query), tmp_path / "answer")
