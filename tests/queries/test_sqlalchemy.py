"""The warehouse in SQLAlchemy: what `metadata` declares, and what an engine reads from a file."""

import itertools
import shutil

import pytest
from sqlalchemy import MetaData, create_engine, func, inspect, select

from memhouse.queries.catalogue import metadata, public_views
from memhouse.schema import arrow


@pytest.fixture(scope="module")
def engine(filled, tmp_path_factory):
    # Another test of this process may have the file open otherwise.
    own = shutil.copy(filled, tmp_path_factory.mktemp("sqlalchemy"))
    engine = create_engine(f"duckdb:///{own}", connect_args={"read_only": True})
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def asked(engine):
    with engine.connect() as connection:
        yield connection


def test_an_engine_lists_what_is_public_with_comments(engine):
    inspector = inspect(engine)
    assert sorted(inspector.get_table_names()) == sorted(arrow.public_tables())
    assert sorted(inspector.get_view_names()) == sorted(public_views())
    for name, table in metadata().tables.items():
        columns = {column["name"]: column["comment"] for column in inspector.get_columns(name)}
        assert columns == {column.name: column.comment for column in table.c}, name
        comment = inspector.get_table_comment(name)["text"]
        assert " ".join(comment.split()) == " ".join(table.comment.split()), name
        # A file has the keys of small tables alone.
        key = inspector.get_pk_constraint(name)["constrained_columns"]
        assert key in ([], table.primary_key.c.keys()), name
        assert inspector.get_foreign_keys(name) == [], name
    reflected = MetaData()
    reflected.reflect(engine, views=True)
    assert reflected.tables.keys() == metadata().tables.keys()
    assert [*reflected.tables["peaks"].c.keys()] == [*public_views()["peaks"].columns]


def test_views_are_selected_from_and_joined_by_their_keys(asked):
    peaks, runs, dumps = (metadata().tables[name] for name in ("peaks", "runs", "dumps"))
    query = select(peaks.c.workload, runs.c.run_id, dumps.c.status, peaks.c.peak_bytes)
    query = query.select_from(peaks.join(runs).join(dumps, peaks.c.dump_id == dumps.c.dump_id))
    (row,) = asked.execute(query.where(peaks.c.workload == "llama-v5e", peaks.c.is_latest))
    assert row == ("llama-v5e", "tpu", "ok", 321896448)


def test_every_foreign_key_joins_and_leads_to_rows(asked):
    """At most one leads from a relation to another, so that a join needs no condition."""
    tables = metadata().tables
    for table in tables.values():
        to = [key.referred_table.name for key in table.foreign_key_constraints]
        assert len(to) == len(set(to)), table.name
        # `verify` checks those of tables.
        is_view = table.name in public_views()
        for key in table.foreign_key_constraints if is_view else ():
            other = key.referred_table.alias()
            pairs = zip(key.columns, key.elements, strict=True)
            same = [column == other.c[element.column.name] for column, element in pairs]
            row = select(func.count()).select_from(table)
            row = row.where([*key.columns][-1].is_not(None), ~select(other).where(*same).exists())
            assert asked.execute(row).scalar() == 0, (table.name, key.column_keys)
    for left, right in itertools.combinations(tables.values(), 2):
        if {fk.column.table for fk in left.foreign_keys} >= {right}:
            assert left.join(right).onclause is not None
