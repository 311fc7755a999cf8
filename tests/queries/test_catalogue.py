"""The catalogue finds the SQL by itself: the files of `views/`, `statements/` and `checks/`."""

import itertools
import re
from contextlib import closing
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp

from memhouse import queries
from memhouse.queries.catalogue import checks, macros, public_views, statements, use_views, views
from memhouse.schema.errors import QueryError
from memhouse.schema.metrics import METRICS
from memhouse.schema.stores.duckdb import open_file
from memhouse.schema.tables import INTERNAL, KEYS, metadata

from ..support.warehouse import fill, reading


def files(folder):
    """The SQL of a folder: text by name."""
    found = (Path(queries.__file__).parent / folder).glob("*.sql")
    if folder == "statements":
        return dict(itertools.chain(*(statements(file.stem).items() for file in found)))
    return {file.stem: file.read_text() for file in found}


def test_every_create_view_is_a_view_and_those_with_an_underscore_are_helpers():
    made = [re.findall(r"CREATE VIEW (\w+)", text) for text in files("views").values()]
    written = set(itertools.chain(*made))
    assert all(made)
    made = [re.findall(r"CREATE MACRO (\w+)", text) for text in files("macros").values()]
    assert sorted(itertools.chain(*made)) == sorted(macros())
    # Rows as the file has them, to which the view itself adds run, workload, module and dump.
    added = {f"_{grain}_{name}" for grain in ("dump", "module") for name in public_views()}
    assert written <= set(views()) <= written | added
    helpers = {name for name in views() if name.startswith("_")}
    assert set(views()) - set(public_views()) == helpers != set()


def test_a_view_uses_only_tables_and_views_before_it():
    there, wrong = set(metadata.tables), []
    for name, view in views().items():
        query = sqlglot.parse_one(view.sql, read="duckdb")
        steps = {cte.alias for cte in query.find_all(exp.CTE)}
        used = {table.name for table in query.find_all(exp.Table)} - steps - {""}
        # The catalogue tells views from steps by their names alone.
        wrong += [(name, used - there, steps & set(views()))] * bool(
            used - there or steps & set(views())
        )
        there.add(name)
    assert wrong == []


def test_views_are_made_once(db):
    fill(db)
    oids = "SELECT view_oid FROM duckdb_views() WHERE NOT internal"
    for read_only in (False, True):
        with closing(open_file(str(db), read_only=read_only)) as store:
            before = store.rows(oids)
            use_views(store, read_only=read_only)
            assert before == store.rows(oids)
    assert before.num_rows == len(views())


def test_every_statement_and_view_runs_on_an_empty_warehouse(db):
    fill(db)
    failed = []
    with reading(db) as store:
        for name, text in files("statements").items():
            query = text.replace("{check}", "SELECT 1 AS module_id, 'x' AS breach")
            (parsed,) = duckdb.extract_statements(query)
            try:
                found = store.rows(query, [None] * len(parsed.named_parameters))
                failed += [name] * (found.num_columns == 0 or not query.startswith("-- "))
            except QueryError as error:
                failed.append(f"{name}: {error}")
        counts = {name: store.rows(f"SELECT * FROM {name}").num_rows for name in views()}
    assert failed == []
    # Tables of facts.
    there = {name: count for name, count in counts.items() if count}
    assert there.keys() == {"_devices", "_metric_names"}
    assert there["_metric_names"] == len(METRICS)


def test_internal_tables_are_not_listed(filled):
    with reading(filled) as store:
        listed = set(store.listed_tables()["table"].to_pylist())
    assert listed == set(metadata.tables) - INTERNAL


def test_every_check_is_a_file_or_that_of_all_keys():
    assert [check.name for check in checks()] == sorted({*files("checks"), "keys_are_unique"})
    (check,) = [check for check in checks() if check.name == "keys_are_unique"]
    assert re.findall(r'FROM "(\w+)"', check.sql) == list(KEYS)
