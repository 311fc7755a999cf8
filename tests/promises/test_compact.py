"""`memhouse compact`: a smaller file with the same in it, or the file that was there."""

import os
import random
import re
import shutil
import subprocess
import sys
import time

import duckdb
import pytest

import memhouse
from memhouse.schema import connection as file_connection
from memhouse.schema.errors import WarehouseError

from ..support.command import MEMHOUSE, run_memhouse
from ..support.history import NIGHTS
from ..support.rounds import rounds
from ..support.warehouse import everything, rows, writing
from .test_disk import check_one_line, mounted, remount

# Leaves the change in the .wal file, as a kill does.
CHANGE_AND_END = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO run_labels SELECT run_id, 'a', 'b' FROM runs")
os._exit(0)
"""


@pytest.fixture
def pruned(own):
    """The ten nights' warehouse without the first eight, their room still in the file."""
    with writing(own) as store:
        store.delete_runs(NIGHTS[:8])
    return own


def compact(db, *options):
    done = run_memhouse("compact", "--db", db, *options)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr


def catalogue(db):
    """Everything that is no row: tables, columns, views, indexes, and all comments."""
    with duckdb.connect(db, read_only=True) as connection:
        return [
            connection.sql(query).fetchall()
            for query in (
                "SELECT table_name, sql, comment FROM duckdb_tables() ORDER BY ALL",
                "SELECT table_name, column_name, data_type, is_nullable, comment "
                "FROM duckdb_columns() WHERE NOT internal ORDER BY ALL",
                # DuckDB writes the names of an EXCLUDE in any order.
                r"SELECT schema_name, view_name, comment, "
                r"REGEXP_REPLACE(sql, 'EXCLUDE \([^)]*\)', 'EXCLUDE', 'g') "
                r"FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
                "SELECT table_name, constraint_text FROM duckdb_constraints() ORDER BY ALL",
                "SELECT index_name, sql FROM duckdb_indexes() ORDER BY ALL",
            )
        ]


def held(db):
    """Every row of every table, but the journal's entries of compactions."""
    tables = everything(db)
    entries = [row for row in tables["journal"] if row[2] != "compact"]
    return {**tables, "journal": entries}


def leftovers(db):
    return [path.name for path in db.parent.iterdir() if path.name not in (db.name, "dumps")]


def test_a_compacted_warehouse_holds_the_same(pruned):
    """And then there is nothing more to gain."""
    before, size = held(pruned), pruned.stat().st_size
    described = catalogue(pruned)
    said = compact(pruned)
    assert pruned.stat().st_size < 0.8 * size
    assert (held(pruned), catalogue(pruned)) == (before, described)
    assert everything(pruned)["journal"][-1][2] == "compact"
    assert said.startswith(f"{pruned}: ")
    assert len(re.findall(r"[\d.]+ MiB", said)) == 2
    assert leftovers(pruned) == []
    assert run_memhouse("verify", "--db", pruned).returncode == 0
    compacted = pruned.stat()
    compact(pruned)
    assert pruned.stat().st_ino == compacted.st_ino


def test_what_users_add_is_kept(pruned):
    with duckdb.connect(pruned) as connection:
        connection.execute('CREATE SCHEMA "my \'own"; CREATE SEQUENCE s; CREATE MACRO m(x) AS x')
        connection.execute('CREATE TABLE "my \'own"."a b" AS SELECT nextval(\'s\') AS n')
        connection.execute('CREATE VIEW v AS SELECT m(n) AS n FROM "my \'own"."a b"')
    compact(pruned)
    with duckdb.connect(pruned) as connection:
        assert connection.sql("SELECT n, nextval('s') FROM v").fetchall() == [(1, 2)]


def test_changes_that_a_killed_process_left_are_kept(pruned):
    link = pruned.with_name("link.duckdb")
    link.symlink_to(pruned.name)
    subprocess.run([sys.executable, "-c", CHANGE_AND_END, link], check=True)
    assert [path.suffix for path in pruned.parent.iterdir()].count(".wal") == 1
    compact(link)
    assert held(pruned)["run_labels"] == [(night, "a", "b") for night in NIGHTS[8:]]
    assert leftovers(pruned) == ["link.duckdb"]


def test_mode_owner_and_link_stay(pruned, tmp_path):
    pruned.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(pruned, 1234, 1235)
    before = pruned.stat()
    link = tmp_path / "link.duckdb"
    link.symlink_to(pruned.name)
    compact(link)
    after = pruned.stat()
    assert link.is_symlink()
    assert after.st_size < before.st_size
    for field in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, field) == getattr(before, field)


def test_a_file_with_two_names_is_left_alone(pruned, tmp_path):
    os.link(pruned, tmp_path / "second.duckdb")
    check_one_line(run_memhouse("compact", "--db", pruned), str(pruned))
    assert sorted(leftovers(pruned)) == ["second.duckdb"]


def test_what_is_no_warehouse_is_left_alone(tmp_path, db):
    check_one_line(run_memhouse("compact", "--db", db), str(db))
    check_one_line(run_memhouse("compact", "--db", ":memory:"), ":memory:")
    with duckdb.connect(db) as connection:
        connection.execute("CREATE TABLE t AS FROM range(9)")
    check_one_line(run_memhouse("compact", "--db", db), str(db))
    db.write_text("text")
    check_one_line(run_memhouse("compact", "--db", db), str(db))
    assert db.read_text() == "text"


def test_a_warehouse_that_cannot_be_replaced_says_why(pruned):
    before = held(pruned)
    with (
        memhouse.open(pruned, read_only=True) as warehouse,
        pytest.raises(WarehouseError, match=r"cannot compact .* read-only"),
    ):
        warehouse.compact()
    with (
        memhouse.open(pruned) as warehouse,
        duckdb.connect(pruned),
        pytest.raises(WarehouseError, match="close"),
    ):
        warehouse.compact()
    assert held(pruned) == before


def test_the_library_compacts_and_goes_on(pruned):
    before, size = held(pruned), pruned.stat().st_size
    with memhouse.open(pruned) as warehouse:
        compacted = warehouse.compact()
        assert (compacted.before_bytes, compacted.after_bytes) == (size, pruned.stat().st_size)
        warehouse.label(NIGHTS[9], labels={"a": "b"})
        assert len(warehouse.runs()) == 2
    after = held(pruned)
    assert after.pop("run_labels") == [(NIGHTS[9], "a", "b")]
    assert after["journal"].pop()[2:4] == ("label", NIGHTS[9])
    assert before.pop("run_labels") == []
    assert after == before


# --- full disks, kills, other processes -------------------------------------------------------


@pytest.mark.slow
def test_a_disk_without_room_for_both_leaves_the_warehouse_as_it_is(tmp_path, pruned):
    before, size = held(pruned), pruned.stat().st_size
    with mounted(tmp_path / "disk", f"size={int(size * 1.3)}") as disk:
        db = shutil.copy(pruned, disk / "memhouse.duckdb")
        check_one_line(run_memhouse("compact", "--db", db), "No space left on device")
        assert held(db) == before
        assert leftovers(db) == []
        remount(disk, f"size={size * 3}")
        compact(db)
        assert held(db) == before


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(rounds(2)))
def test_a_killed_compaction_leaves_a_whole_warehouse(pruned, round_):
    before = held(pruned)
    folder = pruned.parent
    process = subprocess.Popen([MEMHOUSE, "compact", "--db", pruned], stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob(".memhouse-*")):
        time.sleep(0.0005)
    time.sleep(random.Random(round_).uniform(0, 0.15))
    process.kill()
    process.wait()
    assert run_memhouse("verify", "--db", pruned).returncode == 0
    assert held(pruned) == before
    assert all(name.startswith(".memhouse-") for name in leftovers(pruned))
    compact(pruned)
    assert held(pruned) == before
    assert leftovers(pruned) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_who_opened_the_old_file_gets_the_new_one(pruned, monkeypatch, read_only):
    """Another process may compact between our opening of the file and our lock on it."""
    connect = duckdb.connect

    def too_late(*args, **kwargs):
        monkeypatch.setattr(file_connection.duckdb, "connect", connect)
        opened = connect(*args, **kwargs)
        # The old file keeps its lock, as if it had been taken a moment later.
        pruned.unlink()
        shutil.copy(compacted, pruned)
        return opened

    compacted = shutil.copy(pruned, pruned.with_name("compacted.duckdb"))
    compact(compacted)
    monkeypatch.setattr(file_connection.duckdb, "connect", too_late)
    connection, _ = file_connection.connect(str(pruned), read_only=read_only)
    ((blocks,),) = connection.sql("SELECT total_blocks FROM pragma_database_size()").fetchall()
    connection.close()
    assert blocks * 32768 <= compacted.stat().st_size < (blocks + 1) * 32768


# --- without being asked ----------------------------------------------------------------------

# Of numbers that cannot be packed: 8 bytes each.
BALLAST = "CREATE TABLE ballast AS SELECT hash(range) AS n FROM range(800_000)"
# Rows after the ballast: the file cannot just end earlier.
LAST = "CREATE TABLE last AS SELECT hash(range) AS n FROM range(100_000)"


def sql(db, *statements):
    for statement in statements:
        assert run_memhouse("sql", "--write", statement, "--db", db).returncode == 0


def test_much_free_room_goes_without_being_asked(own):
    """After a command, and when the library closes the warehouse; a little room stays."""
    size, inode = own.stat().st_size, own.stat().st_ino
    assert run_memhouse("prune", NIGHTS[7], "--db", own).returncode == 0
    assert own.stat().st_ino == inode
    sql(own, BALLAST, LAST)
    assert own.stat().st_size > size + (7 << 20)
    sql(own, "DROP TABLE ballast")
    assert own.stat().st_size < size + (2 << 20)
    sql(own, BALLAST, LAST.replace("last", "last2"))
    large = own.stat().st_size
    with memhouse.open(own) as warehouse:
        warehouse.store.execute("DROP TABLE ballast")
        assert own.stat().st_size >= large
    assert own.stat().st_size < large - (6 << 20)
    assert run_memhouse("verify", "--db", own).returncode == 0


def test_prune_says_what_it_gave_back(own):
    ((run, module),) = rows(
        own,
        "SELECT MIN(run_id), module_id FROM dumps GROUP BY module_id "
        "HAVING COUNT(*) = 1 ORDER BY ALL LIMIT 1",
    )
    numbers = "SELECT CAST(hash(range) >> 33 AS INTEGER) AS n FROM range(400_000)"
    many = f"SELECT {module}, n, n, n, n, '' FROM ({numbers})"
    sql(own, f"INSERT INTO uses {many}", LAST)
    done = run_memhouse("prune", run, "--db", own)
    _, gained = done.stderr.splitlines()
    before, after = map(float, re.findall(r"([\d.]+) MiB", gained))
    assert gained.startswith(f"{own}: ")
    assert (before > 10, after < 6) == (True, True)
