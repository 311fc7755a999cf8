"""The catalogue finds the SQL by itself: the files of `views/`, `statements/` and `checks/`."""

import itertools
import re
from contextlib import closing
from pathlib import Path

import duckdb

from memhouse import queries
from memhouse.queries.catalogue import (
    checks,
    examples,
    metadata,
    open_with_views,
    statements,
)
from memhouse.schema import arrow
from memhouse.schema.arrow import stored_keys
from memhouse.schema.ddl import INDEXED
from memhouse.schema.errors import QueryError
from memhouse.schema.metrics import METRICS

from ..support.warehouse import fill, reading


def files(folder):
    """The SQL of a folder: text by name."""
    found = (Path(queries.__file__).parent / folder).glob("*.sql")
    if folder == "statements":
        return dict(itertools.chain(*(statements(file.stem).items() for file in found)))
    return {file.stem: file.read_text() for file in found}


_VIEWS = "SELECT schema_name, view_name AS name, view_oid FROM duckdb_views() WHERE NOT internal"


def test_every_relation_has_a_grain_a_key_an_example_and_comments():
    for name, table in metadata().tables.items():
        assert re.search(r"(?:^|[.:?] )A row per ", table.comment), name
        key = re.search(r" Key: ([a-z_, ]+)\.$", table.comment)
        assert key, name
        assert sorted(key[1].split(", ")) == sorted(table.primary_key.c.keys()), name
        assert examples()[name], name
        assert all(column.comment for column in table.c), name


def test_views_are_made_once(db):
    fill(db)
    found = []
    for read_only in (False, True):
        with closing(open_with_views(str(db), read_only=read_only)) as store:
            found.append(store.rows(f"{_VIEWS} ORDER BY ALL"))
    assert found[0] == found[1]
    assert found[0].num_rows > 50


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
        names = [f"{row['schema_name']}.{row['name']}" for row in store.rows(_VIEWS).to_pylist()]
        listed = store.connection.sql("FROM internal.metric_names").fetchall()
        counts = {name: store.rows(f"SELECT * FROM {name}").num_rows for name in names}
    assert failed == []
    # Tables of facts.
    there = {name: count for name, count in counts.items() if count}
    assert there.keys() == {"internal.devices", "internal.metric_names"}
    assert listed == [
        *(
            (name, "bytes", metric.better == "higher", metric.regresses)
            for name, metric in METRICS.items()
        ),
        ("flops", "flops", False, False),
    ]


def test_internal_tables_are_not_listed(filled):
    with reading(filled) as store:
        listed = set(store.listed_tables()["table"].to_pylist())
    assert listed == set(arrow.public_tables())


def test_every_check_is_a_file_or_one_of_all_keys():
    of_keys = {"keys_are_unique", "references_lead_to_rows"}
    assert [check.name for check in checks()] == sorted(of_keys | files("checks").keys())
    (check,) = [check for check in checks() if check.name == "keys_are_unique"]
    assert re.findall(r'FROM (?:internal\.)?"(\w+)"', check.sql) == [
        key for key in stored_keys() if key not in INDEXED
    ]
