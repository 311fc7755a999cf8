"""The SQL that registers a lake in Spark's catalog, and memhouse's SQL in Spark's dialect."""

import pytest
import sqlglot
from sqlglot import exp

import memhouse.lake
from memhouse.queries.catalogue import views
from memhouse.queries.on_spark import ddl, spark_views
from memhouse.queries.spark_sql import to_spark
from memhouse.schema import arrow
from memhouse.schema.lake.data_files import relations

from ..support.command import run_memhouse


def test_the_table_then_every_relation_then_every_view():
    """Each view uses only what is there before it, and a relation has its own columns in order."""
    text = ddl("s3://bucket/o'hare")
    table, *made = [found for found in sqlglot.parse(text, read="spark") if found is not None]
    assert table.find(exp.Table).name == "memhouse_lake"
    assert r"LOCATION 's3://bucket/o\'hare'" in text
    assert [view.this.name for view in made] == [*relations(), *views()]
    assert {view.kind for view in made} == {"VIEW"}
    there = {"memhouse_lake"}
    for view in made:
        name = view.this.name
        common = {table.alias for table in view.find_all(exp.CTE)}
        used = {table.name for table in view.expression.find_all(exp.Table)}
        assert used - common - {""} <= there, name
        there.add(name)
        if name in relations():
            assert view.expression.named_selects == arrow.schema(name).names
            assert view.find(exp.Literal).this == name


def test_the_command_prints_it(tmp_path):
    place = memhouse.lake.init(tmp_path / "lake")
    done = run_memhouse("lake", "ddl", "--db", place, "--dialect", "spark")
    assert done.stdout == ddl(place) == memhouse.lake.ddl(place)
    assert f"LOCATION 'file://{place}'" in done.stdout


def test_every_view_parses_as_sql_of_spark_and_calls_what_sqlglot_knows_there():
    """A macro or a function of DuckDB alone stays as it is: Spark would not know it."""
    unknown = {
        (view, call.name)
        for view in views()
        for call in sqlglot.parse_one(spark_views()[view], read="spark").find_all(exp.Anonymous)
    }
    assert unknown == set()


def test_texts_are_joined_without_what_spark_3_lacks():
    for texts in ("DISTINCT a, ', ' ORDER BY a", "a, '+' ORDER BY b", "a"):
        assert "LISTAGG" not in to_spark(f"SELECT STRING_AGG({texts}) FROM t")
    with pytest.raises(sqlglot.UnsupportedError, match="all keys up"):
        to_spark("SELECT STRING_AGG(a, ',' ORDER BY b, c DESC) FROM t")
