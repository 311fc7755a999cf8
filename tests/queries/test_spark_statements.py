"""The statements behind commands on Spark: the same rows and types as in DuckDB.

The canned views are tables here, with DuckDB's rows: `test_spark_views.py` shows that Spark works
out the same rows, and to plan them again under each statement takes minutes.
"""

import shutil
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from memhouse.queries.catalogue import views
from memhouse.queries.questions import OWNERS
from memhouse.schema import arrow

from ..support import all_asked, java
from ..support.asked import Asked, statements
from ..support.warehouse import reading, writing
from .test_verify import DAMAGES

if why := java.missing():
    pytest.skip(why, allow_module_level=True)

from ..support.on_spark import differences, plain, show, with_parameters
from ..support.spark import spark_type, tables

pytestmark = [pytest.mark.slow, pytest.mark.scheduled, pytest.mark.xdist_group("spark")]

# What changes tables. A lake is changed by commits, see `schema/lake`.
CHANGING = {
    "schema/history/forget": "DELETE: a lake's history is stored anew as a whole",
    "schema/history/forget_gone": "DELETE: a lake's history is stored anew as a whole",
    "schema/history/set_whether_last": "UPDATE: a lake's history is stored anew as a whole",
}
# What Spark refuses, by a part of its message.
REFUSED = {
    # They ask macros, which Spark has none of; `export` writes their rows.
    **{
        f"queries/statements/{name}": "TABLE_VALUED_FUNCTION"
        for name in ("buffers", "callers", "diff.buffers", "diff.groups", "owners", "timeline")
    },
    "queries/statements/site.state": "INT128",
}
# Columns that have a number without a meaning: it is equal where the text is equal.
HASHES = {"schema/history/lineage_dumps": "signature_id"}
# Their ORDER BY leaves the order of some rows open.
WITH_TIES = {"queries/statements/peaks", "queries/statements/check.accepted"}
# Rows that differ still, and why.
DIFFERENT = {"queries/statements/site.pages": "made_of, a JSON, has other values in Spark"}
CHECKS = sorted(name for name in statements() if name.startswith("queries/checks/"))
OTHERS = sorted(statements().keys() - {*CHECKS, *CHANGING, *REFUSED})


@pytest.fixture(scope="module")
def session(spark):
    """A session with names of its own."""
    return spark.newSession()


def fill_session(session, store, folder) -> None:
    """Give the session the tables and the rows of the canned views."""
    for name, table in tables(session, store, folder).items():
        table.createOrReplaceTempView(name)
    for name in views():
        show(session, name, store.rows(f"SELECT * FROM {name}"), folder)


@pytest.fixture(scope="module")
def everything(session, nights, tmp_path_factory):
    """The store, the session, what was asked by the statement's name, and a folder."""
    folder = tmp_path_factory.mktemp("everything")
    db = folder / "everything.duckdb"
    heard = all_asked.fill_with_everything(db, nights, folder)
    heard += all_asked.all_that_is_asked(db, folder)
    names = {query: name for name, query in statements().items()}
    asked: dict[str, list[Asked]] = {}
    for each in heard:
        asked.setdefault(names.get(each.query, each.query), []).append(each)
    with reading(db) as store:
        fill_session(session, store, folder)
        yield store, asked, folder


def chosen(asked: list[Asked], store) -> list[Asked]:
    """Of each kind of parameters what has the most rows, among the first."""
    kinds: dict[tuple[object, ...], list[Asked]] = {}
    for each in asked:
        same = kinds.setdefault(tuple(map(kind_of, each.parameters)), [])
        if len(same) < 10 and each not in same:
            same.append(each)
    return [max(same, key=lambda each: answer(store, each).num_rows) for same in kinds.values()]


def kind_of(parameter: object) -> object:
    if isinstance(parameter, str):
        return parameter if parameter in OWNERS else "text"
    return bool(parameter) if isinstance(parameter, list) else type(parameter)


def answer(store, asked: Asked) -> Any:
    """DuckDB's answer."""
    for name, table in asked.tables.items():
        store.connection.register(name, table)
    try:
        return store.rows(asked.query, asked.parameters)
    finally:
        for name in asked.tables:
            store.connection.unregister(name)


def compare(spark, store, asked: Asked, folder, name: str) -> int:
    """Hold Spark's answer against DuckDB's; how many rows they have."""
    ours = answer(store, asked)
    for table_name, table in asked.tables.items():
        show(spark, table_name, table, folder)
    theirs = spark.sql(with_parameters(asked.query, asked.parameters))
    ours_types = {field.name: spark_type(field.type) for field in ours.schema}
    theirs_types = {field.name: field.dataType.simpleString() for field in theirs.schema}
    ours_rows = [[plain(value) for value in row.values()] for row in ours.to_pylist()]
    theirs_rows = [[plain(value) for value in row] for row in theirs.collect()]
    if column := HASHES.get(name):
        for types, rows in ((ours_types, ours_rows), (theirs_types, theirs_rows)):
            numbered(rows, list(types).index(column))
            del types[column]
    assert theirs_types == ours_types
    query = sqlglot.parse_one(asked.query, read="duckdb")
    in_order = query.args.get("order") is not None and name not in WITH_TIES
    assert list(differences(ours_rows, theirs_rows, in_order=in_order)) == []
    return len(ours_rows)


def numbered(rows: list[list[Any]], place: int) -> None:
    """Replace hashes by numbers in the order of their first rows."""
    numbers: dict[object, int] = {}
    for row in sorted(rows, key=lambda row: row[2]):
        if row[place] is not None:
            row[place] = numbers.setdefault(row[place], len(numbers))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=DIFFERENT[name], strict=True))
        if name in DIFFERENT
        else name
        for name in OTHERS
    ],
)
def test_a_statement_has_the_same_rows_on_spark(session, everything, name):
    store, asked, folder = everything
    assert name in asked, "no command asks this"
    cases = chosen(asked[name], store)
    assert sum(compare(session, store, case, folder, name) for case in cases) > 0


def test_what_python_asks_has_the_same_rows_on_spark(session, everything):
    store, asked, folder = everything
    others = [query for query in asked.keys() - statements().keys() if is_of_tables(query)]
    assert len(others) > 10
    for query in others:
        for case in chosen(asked[query], store):
            compare(session, store, case, folder, query)


def is_of_tables(query: str) -> bool:
    return query.lstrip().startswith("SELECT") and "current_setting" not in query


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_finds_the_same_breaches_on_spark(spark, filled, tmp_path, name):
    session = spark.newSession()
    db = shutil.copy(filled, tmp_path / "damaged.duckdb")
    # Several damages may hide each other.
    damage = next(iter(DAMAGES[name.rpartition("/")[2]]))
    with writing(db) as store:
        store.execute(damage)
    check = Asked(statements()[name])
    with reading(db) as store:
        for relation in relations_of(check.query):
            show(session, relation, store.rows(f'SELECT * FROM "{relation}"'), tmp_path)
        assert compare(session, store, check, tmp_path, name) > 0


def relations_of(query: str) -> set[str]:
    """The tables and canned views that a query asks."""
    named = {table.name for table in sqlglot.parse_one(query, read="duckdb").find_all(exp.Table)}
    return named & {*arrow.stored_columns(), *views()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses_it_still_refuses(session, everything, name):
    from pyspark.errors import PySparkException

    _, asked, _ = everything
    case = asked[name][0]
    with pytest.raises(PySparkException, match=REFUSED[name]):
        session.sql(with_parameters(case.query, case.parameters)).collect()


def test_what_changes_tables_is_no_query():
    for name in CHANGING:
        tree = sqlglot.parse_one(statements()[name], read="duckdb")
        assert isinstance(tree, exp.Delete | exp.Update)
