"""The warehouse's file: what is stored with it, what is refused, how it is upgraded."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from memhouse.schema import migrations
from memhouse.schema.stores import duckdb as warehouse
from memhouse.schema.stores.duckdb import (
    SCHEMA_VERSION,
    WarehouseError,
    driver,
    forget_blocks,
    open_warehouse,
)
from memhouse.schema.tables import metadata

from ..support.command import run_memhouse
from ..support.dumps import RUNS, one_file
from ..support.warehouse import everything, fill, rows

REVISION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{number:04}", "{number_before:04}"


def upgrade():
    op.add_column("runs", sa.Column("mood", sa.Text, comment="how it went"))
    op.execute("UPDATE runs SET mood = 'fine'")
    op.execute("DELETE FROM run_labels")
    {then}
"""


@pytest.mark.parametrize("table", metadata.tables.values(), ids=lambda table: table.name)
def test_comments_are_stored(filled, table):
    assert table.comment
    query = f"SELECT comment FROM duckdb_tables() WHERE table_name = '{table.name}'"
    assert rows(filled, query) == [(table.comment,)]
    query = f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{table.name}'"
    assert rows(filled, f"{query} ORDER BY column_index") == [
        (column.name, column.comment) for column in table.columns
    ]
    assert all(column.comment for column in table.columns)


def test_sizes_are_bigint_and_times_are_whole_numbers(filled):
    wrong = rows(
        filled,
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal AND (ends_with(column_name, '_bytes') "
        "  AND data_type NOT IN ('BIGINT', 'HUGEINT') "
        "OR ends_with(column_name, '_time') AND data_type <> 'INTEGER') "
        "AND table_name IN (SELECT table_name FROM duckdb_tables())",
    )
    assert wrong == []


def open_and_close(db, **options):
    engine = open_warehouse(str(db), **options)
    engine.dispose()


def set_version(db, version):
    with duckdb.connect(str(db)) as connection:
        connection.execute(f"UPDATE schema_version SET version_num = '{version:04}'")


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"create": True}])
def test_a_newer_schema_is_refused(copied, options):
    set_version(copied, SCHEMA_VERSION + 1)
    with pytest.raises(WarehouseError, match="upgrade memhouse") as error:
        open_and_close(copied, **options)
    assert str(copied) in str(error.value)
    assert f"schema version {SCHEMA_VERSION + 1}" in str(error.value)


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"create": True}])
def test_another_duckdb_database_is_refused_and_left_alone(db, options):
    with duckdb.connect(str(db)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    with pytest.raises(WarehouseError, match="no warehouse of memhouse"):
        open_and_close(db, **options)
    with duckdb.connect(str(db)) as connection:
        assert connection.sql("SHOW TABLES").fetchall() == [("mine",)]


@pytest.mark.parametrize("content", [b"not a database\n" * 1000, b"x"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(db, content):
    db.write_bytes(content)
    with pytest.raises(WarehouseError, match="is not a DuckDB database"):
        open_and_close(db, create=True)
    assert db.read_bytes() == content


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://host/base", "postgresql is no store of memhouse"),
        ("postgresql+psycopg://host/base", "postgresql is no store of memhouse"),
        ("sqlite:///some.db", "sqlite is no store of memhouse"),
        ("nothing://here", "nothing is no store of memhouse"),
        ("://", "://"),
    ],
)
def test_other_stores_are_refused(url, said):
    with pytest.raises(WarehouseError) as error:
        open_and_close(url, create=True)
    assert said in str(error.value)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(WarehouseError, match="there is no folder"):
        open_and_close(tmp_path / "gone/memhouse.duckdb", create=True)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(WarehouseError, match=str(tmp_path)):
        open_and_close(tmp_path, create=True)


def test_no_warehouse_is_a_hint(db):
    with pytest.raises(WarehouseError, match="make one with `memhouse ingest PATH`"):
        open_and_close(db)
    assert not db.exists()


def test_an_empty_database_becomes_a_warehouse_only_by_ingest(db):
    duckdb.connect(str(db)).close()
    with pytest.raises(WarehouseError, match="is empty: fill it with `memhouse ingest PATH`"):
        open_and_close(db, read_only=True)
    open_and_close(db, create=True)
    assert rows(db, "SELECT version_num FROM schema_version") == [(f"{SCHEMA_VERSION:04}",)]


def test_a_url_names_a_file(tmp_path):
    open_and_close(f"duckdb:///{tmp_path}/by-url.duckdb", create=True)
    assert (tmp_path / "by-url.duckdb").exists()


def test_a_file_in_use_is_named(copied):
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, copied],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(WarehouseError, match=r"is in use by process \d+ \("):
            open_and_close(copied, read_only=True)
        holder.communicate(b"\n")


def test_reading_needs_no_right_to_write(copied):
    copied.chmod(0o444)
    assert rows(copied, "SELECT COUNT(*) FROM runs") == [(len(RUNS),)]


def test_reading_cannot_write(copied):
    engine = open_warehouse(str(copied), read_only=True)
    with (
        engine.connect() as connection,
        pytest.raises(duckdb.Error, match="read-only"),
    ):
        driver(connection).execute("DELETE FROM runs")
    engine.dispose()


def revise(tmp_path, monkeypatch, then="pass"):
    """Let this memhouse have one schema version more."""
    folder = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, folder)
    number = SCHEMA_VERSION + 1
    (folder / f"versions/{number:04}_mood.py").write_text(
        REVISION.format(number=number, number_before=SCHEMA_VERSION, then=then)
    )
    monkeypatch.setattr(migrations, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(warehouse, "SCHEMA_VERSION", number)


@pytest.fixture
def older(db):
    """A warehouse that will be older than this memhouse."""
    fill(db, one_file("seeds/002*"), labels={"branch": "main"})
    return db


def columns(db):
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.sql(
            "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()


def test_the_newest_revision_is_the_schema_version():
    versions = Path(migrations.__file__).parent / "versions"
    newest = max(versions.glob("[0-9]*.py"))
    spec = importlib.util.spec_from_file_location("newest", newest)
    revision = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(revision)
    assert revision.revision == f"{SCHEMA_VERSION:04}"


def test_an_older_schema_is_upgraded(older, tmp_path, monkeypatch):
    before = everything(older)
    revise(tmp_path, monkeypatch)
    open_and_close(older)
    after = everything(older)
    assert after["schema_version"] == [(f"{SCHEMA_VERSION + 1:04}",)]
    assert after["runs"] == [(*before["runs"][0], "fine")]
    assert after["run_labels"] == []
    same = set(before) - {"schema_version", "runs", "run_labels"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert ("runs", "mood", "VARCHAR", "how it went") in columns(older)
    # Once is enough.
    open_and_close(older)
    assert everything(older) == after


def test_an_upgrade_that_fails_leaves_the_warehouse_as_it_was(older, tmp_path, monkeypatch):
    before, columns_before = everything(older), columns(older)
    revise(tmp_path, monkeypatch, then="raise RuntimeError('out of luck')")
    with pytest.raises(RuntimeError, match="out of luck"):
        open_and_close(older)
    monkeypatch.undo()
    assert everything(older) == before
    assert columns(older) == columns_before


def test_an_upgrade_whose_sql_fails_leaves_the_warehouse_as_it_was(older, tmp_path, monkeypatch):
    before = everything(older)
    revise(tmp_path, monkeypatch, then="op.execute('DELETE FROM gone')")
    with pytest.raises(WarehouseError, match="gone"):
        open_and_close(older)
    monkeypatch.undo()
    assert everything(older) == before


def test_reading_does_not_upgrade(older, tmp_path, monkeypatch):
    revise(tmp_path, monkeypatch)
    before = older.read_bytes()
    with pytest.raises(WarehouseError, match="has the older schema version"):
        open_and_close(older, read_only=True)
    assert older.read_bytes() == before


@pytest.mark.parametrize("command", [["peaks"], ["ingest", one_file("seeds/002*")]])
def test_every_command_says_it_in_one_line(tmp_path, command):
    (tmp_path / "memhouse.duckdb").write_text("no database")
    run = run_memhouse(*command, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("error: memhouse.duckdb is not a DuckDB database")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("limit", [None, "1GB"])
def test_blocks_that_were_read_are_forgotten_and_the_users_limit_stays(copied, monkeypatch, limit):
    monkeypatch.setattr(warehouse, "_FEW_BLOCKS", "100KB")
    engine = open_warehouse(str(copied))

    def ask(query):
        with engine.connect() as connection:
            return connection.exec_driver_sql(query).scalar()

    held = "SELECT SUM(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
    if limit:
        ask(f"SET memory_limit = '{limit}'")
    before = ask("SELECT current_setting('memory_limit')")
    for _ in range(3):
        ask("SELECT COUNT(_short_shape || instruction) FROM instructions")
        assert ask(held) > 100_000
        forget_blocks(engine)
        assert ask(held) < 100_000
        assert ask("SELECT current_setting('memory_limit')") == before
    assert limit is None or before == "953.6 MiB"
    engine.dispose()


def test_a_warehouse_in_memory_forgets_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = open_warehouse("duckdb:///:memory:", create=True)
    forget_blocks(engine)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM runs").scalar() == 0
    assert list(tmp_path.iterdir()) == []
    engine.dispose()
