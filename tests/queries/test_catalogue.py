"""The catalogue finds the SQL by itself: a file in `views/` is a view, and so on."""

import re
from contextlib import closing
from importlib import resources

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from memhouse import queries
from memhouse.queries.catalogue import checks, public_views, statement, use_views, views
from memhouse.schema.stores.duckdb import open_store
from memhouse.schema.tables import INTERNAL, KEYS, metadata

from ..support.warehouse import reading


def files(folder):
    """The SQL files of a folder: text by name."""
    found = (resources.files(queries) / folder).iterdir()
    return {file.name.removesuffix(".sql"): file.read_text() for file in found}


STATEMENTS = sorted(files("statements"))
EVERYTHING = {
    f"{folder}/{name}": text
    for folder in ("views", "statements", "checks")
    for name, text in files(folder).items()
}


# --- views --------------------------------------------------------------------------------


def test_every_file_is_a_view():
    assert set(views()) == set(files("views"))


def test_helpers_are_not_public():
    assert [name for name in views() if name.startswith("_")]
    assert not [name for name in public_views() if name.startswith("_")]


@pytest.mark.parametrize("view", sorted(files("views")))
def test_a_view_uses_only_tables_and_views_before_it(view):
    order = list(views())
    there = {*metadata.tables, *order[: order.index(view)]}
    query = sqlglot.parse_one(views()[view].sql, read="duckdb")
    steps = {cte.alias for cte in query.find_all(exp.CTE)}
    used = {table.name for table in query.find_all(exp.Table)} - steps - {""}
    assert used <= there
    # The catalogue tells views from steps by their names alone.
    assert not steps & set(order)


@pytest.mark.parametrize("read_only", [False, True])
def test_views_are_made_once(db, read_only):
    with closing(open_store(str(db), create=True)) as store:
        use_views(store, read_only=False)
    with closing(open_store(str(db), read_only=read_only)) as store:
        before = store.rows("SELECT view_oid FROM duckdb_views() WHERE NOT internal")
        use_views(store, read_only=read_only)
        after = store.rows("SELECT view_oid FROM duckdb_views() WHERE NOT internal")
    assert before.num_rows == len(views())
    assert before == after


# --- statements and checks ----------------------------------------------------------------


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_runs_on_an_empty_warehouse(db, name):
    query = statement(name).replace("{check}", "SELECT 1 AS module_id, 'x' AS breach")
    (parsed,) = duckdb.extract_statements(query)
    with closing(open_store(str(db), create=True)) as store:
        use_views(store, read_only=False)
        found = store.rows(query, [None] * len(parsed.named_parameters))
    assert found.num_columns > 0
    assert query.startswith("-- ")


def test_internal_tables_are_not_listed(filled):
    with reading(filled) as store:
        listed = set(store.listed_tables()["table"].to_pylist())
    assert listed == set(metadata.tables) - INTERNAL


def test_every_check_is_a_file_or_that_of_all_keys():
    names = [check.name for check in checks()]
    assert names == sorted({*files("checks"), "keys_are_unique"})


def test_every_table_with_a_key_is_checked():
    (check,) = [check for check in checks() if check.name == "keys_are_unique"]
    assert re.findall(r'FROM "(\w+)"', check.sql) == list(KEYS)


# --- all files ----------------------------------------------------------------------------


# What a name means today is asked by name, also where several series have had the name.
BY_NAME = {"views/_newest", "statements/find_module"}


@pytest.mark.parametrize("file", sorted(EVERYTHING.keys() - BY_NAME))
def test_no_query_spells_the_key_of_a_series_out(file):
    """Only `history` knows which dumps belong together."""
    query = sqlglot.parse_one(EVERYTHING[file].replace("{check}", "SELECT 1"), read="duckdb")
    parts = {"module_name", "occurrence", "platform"}
    for window in query.find_all(exp.Window):
        keys = {
            column.name
            for part in window.args.get("partition_by") or ()
            for column in part.find_all(exp.Column)
        }
        assert not keys & parts
    for equality in query.find_all(exp.EQ):
        assert not {column.name for column in equality.find_all(exp.Column)} & (
            parts - {"module_name"}
        )
