"""The SQL that registers a lake in Spark's catalog."""

import sqlglot
from sqlglot import exp

import memhouse.lake
from memhouse.queries.catalogue import views
from memhouse.queries.spark_ddl import ddl
from memhouse.schema import arrow
from memhouse.schema.lake.layout import relations

from ..support.command import run_memhouse


def statements(text):
    return [found for found in sqlglot.parse(text, read="spark") if found is not None]


def test_the_table_then_every_relation_then_every_view(tmp_path):
    table, *made = statements(ddl("s3://bucket/memhouse"))
    assert table.find(exp.Table).name == "memhouse_lake"
    assert "LOCATION 's3://bucket/memhouse'" in table.sql("spark")
    assert [view.this.name for view in made] == [*relations(), *views()]
    assert {view.kind for view in made} == {"VIEW"}


def test_a_relation_has_its_own_columns_in_order():
    found = {view.this.name: view for view in statements(ddl("s3://bucket/memhouse"))[1:]}
    for name in relations():
        assert found[name].expression.named_selects == arrow.schema(name).names
        assert found[name].find(exp.Literal).this == name


def test_each_view_uses_only_what_is_there_before_it():
    there = {"memhouse_lake"}
    for view in statements(ddl("s3://bucket/memhouse"))[1:]:
        common = {table.alias for table in view.find_all(exp.CTE)}
        used = {table.name for table in view.expression.find_all(exp.Table)}
        assert used - common - {""} <= there, view.this.name
        there.add(view.this.name)


def test_a_place_with_a_quote_stays_a_text():
    assert r"LOCATION 's3://bucket/o\'hare'" in ddl("s3://bucket/o'hare")


def test_the_command_prints_it(tmp_path):
    place = memhouse.lake.init(tmp_path / "lake")
    done = run_memhouse("lake", "ddl", "--db", place, "--dialect", "spark")
    assert done.stdout == ddl(place) == memhouse.lake.ddl(place)
    assert f"LOCATION 'file://{place}'" in done.stdout
