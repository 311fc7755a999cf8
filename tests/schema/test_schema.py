"""The warehouse's file: what is stored with it, what is refused."""

import shutil
from pathlib import Path

import duckdb
import pytest

from memhouse.schema import arrow
from memhouse.schema import connection as file_connection
from memhouse.schema.errors import QueryError, WarehouseError
from memhouse.schema.store import Batch, open_file
from memhouse.schema.tables import metadata
from memhouse.schema.versions import SCHEMA_VERSION, layout

from ..support.command import run_memhouse
from ..support.dumps import one_file
from ..support.warehouse import reading, rows


def test_comments_are_stored(filled):
    query = """SELECT table_name, comment FROM duckdb_tables()
        UNION ALL SELECT view_name, comment FROM duckdb_views()"""
    tables = dict(rows(filled, query))
    query = "SELECT table_name, column_name, comment FROM duckdb_columns() ORDER BY column_index"
    columns = rows(filled, query)
    for table in metadata.tables.values():
        assert table.comment
        assert tables[table.name] == table.comment
        assert [row[1:] for row in columns if row[0] == table.name] == [
            (column.name, column.comment) for column in table.columns
        ]
        assert all(column.comment for column in table.columns)


def test_sizes_are_bigint_and_times_are_whole_numbers():
    kinds = {"_bytes": "BIGINT", "_time": "INTEGER"}
    wrong = [
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        for ending, right in kinds.items()
        if column.name.endswith(ending) and not str(column.type).startswith(right)
        # How it is stored nobody reads.
        if column.name[0] != "_"
    ]
    assert wrong == []


def open_and_close(db, **options):
    open_file(str(db), **options).close()


HOW = ({}, {"read_only": True}, {"create": True})


def test_ids_and_times_survive_every_reader(filled):
    """Ids are exact as doubles, no time has a zone, and each memory space has its name."""
    with duckdb.connect(str(filled), read_only=True) as connection:
        columns = connection.sql(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        assert [row for row in columns if "TIME ZONE" in row[2]] == []
        tables = arrow.stored_columns()
        for table, column, type_ in columns:
            if table in tables and (column.endswith("_id") and type_ == "BIGINT"):
                query = f"SELECT MAX({column}) FROM {arrow.sql_name(table)}"
                ((largest,),) = connection.sql(query).fetchall()
                assert (largest or 0) < 2**53, (table, column)
            if table in tables and column == "space" and table != "kernel_parts":
                query = f'SELECT DISTINCT memory_space, space FROM "{table}" ORDER BY ALL'
                found = connection.sql(query).fetchall()
                # A CPU's main memory is the host's.
                assert found[:2] == [(0, "hbm"), (0, "host")], table
                assert all(space for _, space in found), table


def test_another_layout_is_refused_and_left_alone(filled, tmp_path):
    copied = Path(shutil.copy(filled, tmp_path / "copied.duckdb"))
    db = tmp_path / "other.duckdb"
    changes = [
        (copied, "UPDATE internal.schema_version SET version = version + 1"),
        (copied, "UPDATE internal.schema_version SET version = version - 1, layout = 'another'"),
        # Of other columns.
        (copied, "CREATE OR REPLACE TABLE internal.schema_version AS SELECT '1' AS version_num"),
        # And no warehouse at all.
        (db, "CREATE TABLE mine AS SELECT 1 AS one"),
    ]
    for place, change in changes:
        with duckdb.connect(str(place)) as connection:
            connection.execute(change)
        before = place.read_bytes()
        for options in HOW:
            with pytest.raises(WarehouseError) as error:
                open_and_close(place, **options)
            assert str(place) in str(error.value)
            assert str(error.value).count("\n") == 0
            if place == copied:
                assert "another version of memhouse: ingest" in str(error.value)
        assert place.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(db):
    # DuckDB would download an extension for SQLite, and keep rows in memory for Parquet.
    for content in (
        b"not a database\n" * 1000,
        b"x",
        b"SQLite format 3\0" * 1000,
        b"PAR1" * 1000,
    ):
        db.write_bytes(content)
        with pytest.raises(WarehouseError, match=str(db)):
            open_and_close(db, create=True)
        assert db.read_bytes() == content
        for command in (["peaks"], ["ingest", one_file("seeds/002*")]):
            run = run_memhouse(*command, cwd=db.parent)
            assert (run.returncode, run.stdout) == (1, "")
            assert run.stderr.startswith("error: memhouse.duckdb is not a DuckDB database: ")
            assert len(run.stderr.splitlines()) == 1


def test_other_stores_are_refused():
    for url, named in {
        "postgresql://host/base": "postgresql ",
        "postgresql+psycopg://host/base": "postgresql ",
        "sqlite:///some.db": "sqlite ",
        "nothing://here": "nothing ",
        "://": "://",
    }.items():
        with pytest.raises(WarehouseError, match=named):
            open_and_close(url, create=True)


def test_what_is_not_there_or_a_folder_is_refused(tmp_path, db):
    for place, options in (
        (tmp_path / "gone/memhouse.duckdb", {"create": True}),
        (tmp_path, {"create": True}),
        (db, {}),
    ):
        with pytest.raises(WarehouseError, match=str(place)):
            open_and_close(place, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_colon_is_a_files(tmp_path, monkeypatch):
    """To DuckDB `md:` and `sqlite:` name databases that it downloads an extension for."""
    monkeypatch.chdir(tmp_path)
    open_and_close("md:nights", create=True)
    assert rows("md:nights", "SELECT COUNT(*) FROM runs") == [(0,)]


def test_an_empty_database_becomes_a_warehouse_only_by_ingest(db):
    duckdb.connect(str(db)).close()
    with pytest.raises(WarehouseError, match="memhouse ingest"):
        open_and_close(db, read_only=True)
    open_and_close(db, create=True)
    assert rows(db, "SELECT version, layout FROM internal.schema_version") == [
        (SCHEMA_VERSION, layout())
    ]


def test_a_url_names_a_file(tmp_path):
    open_and_close(f"duckdb:///{tmp_path}/by-url.duckdb", create=True)
    assert (tmp_path / "by-url.duckdb").exists()


def test_reading_cannot_write(copied):
    store = open_file(str(copied), read_only=True)
    with pytest.raises(QueryError, match="read-only"):
        store.rows("DELETE FROM runs")
    store.close()


@pytest.mark.parametrize("limit", [None, "1GB"])
def test_blocks_that_were_read_are_forgotten_and_the_users_limit_stays(copied, monkeypatch, limit):
    monkeypatch.setattr(file_connection, "_FEW_BLOCKS", "100KB")
    store = open_file(str(copied))

    def ask(query):
        return store.connection.sql(query).fetchall()[0][0]

    held = "SELECT SUM(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
    if limit:
        store.connection.execute(f"SET memory_limit = '{limit}'")
    before = ask("SELECT current_setting('memory_limit')")
    for _ in range(3):
        ask('SELECT SUM(length(concat(COLUMNS(*)))) FROM "values"')
        assert ask(held) > 100_000
        store.write(Batch({}))
        assert ask(held) < 100_000
        assert ask("SELECT current_setting('memory_limit')") == before
    assert limit is None or before == "953.6 MiB"
    store.close()


def test_a_warehouse_in_memory_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = open_file("duckdb:///:memory:", create=True)
    store.write(Batch({}))
    assert store.rows("SELECT COUNT(*) AS runs FROM runs").to_pylist() == [{"runs": 0}]
    assert list(tmp_path.iterdir()) == []
    store.close()


def test_no_query_writes_its_progress_among_its_output(filled):
    """DuckDB would, of one that takes more than two seconds, whether or not to a terminal."""
    with reading(filled) as store:
        setting = store.connection.sql("SELECT current_setting('enable_progress_bar')")
        assert setting.fetchall() == [(False,)]
