"""A lake has the rows of the warehouse that was published to it, whatever came in between."""

import os
import random
import signal
import subprocess
import sys
import time

import duckdb
import pyarrow as pa
import pytest

import memhouse
from memhouse.queries.catalogue import public_views
from memhouse.schema import publish
from memhouse.schema.errors import WarehouseError

from ..support.command import MEMHOUSE, run_memhouse
from ..support.history import NIGHTS
from ..support.rounds import rounds
from ..support.warehouse import fill, reading

deltalake = pytest.importorskip("deltalake")
FIGURES = "SELECT workload, peak_bytes, total_bytes FROM {} ORDER BY ALL"
TRENDS = "SELECT run_id, workload, metric, value FROM {} ORDER BY ALL"


def relations():
    """All relations that a lake has, and whether they are written whole."""
    tables = {name: name in publish.WHOLE_TABLES for name in publish._tables()}
    return tables | {name: name in publish.WHOLE_VIEWS for name in public_views()}


def rows(table, names):
    """Rows in an order of their own; floats to seven digits."""
    with duckdb.connect() as connection:
        connection.register("given", table)
        shown = ", ".join(
            f'CAST("{name}" AS FLOAT) AS "{name}"'
            if pa.types.is_floating(table.schema.field(name).type)
            else f'"{name}"'
            for name in names
        )
        return connection.sql(f"SELECT {shown} FROM given ORDER BY ALL").fetchall()


def assert_published(lake, db):
    """Each relation of the lake has the rows of the file; but for the columns that change."""
    with reading(db) as store:
        for name in relations():
            there = deltalake.DeltaTable(str(lake / name)).to_pyarrow_table()
            here = store.rows(f'SELECT * FROM "{name}"')
            names = there.schema.names
            assert set(here.schema.names) - set(names) <= {
                *publish.CHANGING_COLUMNS,
                "_short_shape",
                "_long_shape",
            }, name
            assert rows(there, names) == rows(here, names), name


def publish_to(lake, db, *options):
    done = run_memhouse("publish", lake, "--db", db, *options)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.fixture(scope="module")
def published(history, tmp_path_factory):
    """A lake of the ten nights. Only read it."""
    lake = tmp_path_factory.mktemp("published") / "lake"
    publish_to(lake, history)
    return lake


def test_night_by_night_or_at_once_it_is_the_file(tmp_path, nights, history, published):
    assert_published(published, history)
    db, lake = tmp_path / "nights.duckdb", tmp_path / "lake"
    for start in range(0, len(NIGHTS), 3):
        fill(db, *(nights / name for name in NIGHTS[start : start + 3]))
        publish_to(lake, db)
    # Nothing is new, but a label.
    assert run_memhouse("label", NIGHTS[0], "branch=main", "--db", db).returncode == 0
    assert "no new run" in publish_to(lake, db, "--compact", "--vacuum")[0]
    assert_published(lake, db)


def test_polars_and_duckdb_read_it_as_it_is(published, history):
    polars = pytest.importorskip("polars")
    with reading(history) as store:
        for name, query in (("peaks", FIGURES), ("trends", TRENDS)):
            expected = store.connection.sql(query.format(name)).fetchall()
            place = str(published / name)
            with polars.SQLContext({name: polars.scan_delta(place)}) as context:
                assert context.execute(query.format(name)).collect().rows() == expected
            dataset = deltalake.DeltaTable(place).to_pyarrow_dataset()
            with duckdb.connect() as connection:
                connection.register("published", dataset)
                found = connection.sql(query.format("published")).fetchall()
                assert found == expected


def test_a_run_that_changed_is_told_and_published_again(tmp_path, nights):
    db, lake = tmp_path / "nights.duckdb", tmp_path / "lake"
    fill(db, nights / "2026-10-01", run_id="night")
    fill(db, nights / "2026-10-02", run_id="other")
    publish_to(lake, db)
    fill(db, nights / "2026-10-05", run_id="night", replaces=True)
    (note,) = publish_to(lake, db)[1:]
    assert note.startswith("run 'night' has changed since it was published")
    assert len(publish_to(lake, db, "--again", "night")) == 1
    with reading(db) as store:
        for name in ("runs", "dumps", "peaks", "buffers", "trends"):
            there = deltalake.DeltaTable(str(lake / name)).to_pyarrow_table()
            here = store.rows(f'SELECT * FROM "{name}"')
            assert rows(there, there.schema.names) == rows(here, there.schema.names), name


def test_a_run_that_grew_after_an_interrupted_publish_is_whole(tmp_path, nights, monkeypatch):
    """Also one that was to be published again: what there is of it goes first."""
    db, lake = tmp_path / "nights.duckdb", tmp_path / "lake"
    fill(db, nights / "2026-10-01/llama-cpu", run_id="night", host="a")
    append = publish.Lake.append

    def interrupted(self, relation, table, key):
        if relation.name == "peaks":
            raise KeyboardInterrupt
        append(self, relation, table, key)

    for options in ((), ("night",)):
        with monkeypatch.context() as patched, memhouse.open(db) as warehouse:
            patched.setattr(publish.Lake, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                warehouse.publish(str(lake), again=options)
        fill(db, nights / "2026-10-01/decode-v5e", run_id="night", host=f"b{len(options)}")
        assert len(publish_to(lake, db)) == 1
        assert_published(lake, db)
    done = run_memhouse("publish", lake, "--db", db, "--again", "unknown")
    assert done.returncode == 2
    assert "'unknown' is not in the warehouse" in done.stderr


def test_names_of_folders_are_any_text(tmp_path, nights):
    db, lake = tmp_path / "night.duckdb", tmp_path / "a (b) 'é"
    fill(db, nights / NIGHTS[0] / "llama-cpu", run_id="it's")
    publish_to(lake, db)
    assert (lake / "peaks/_delta_log").is_dir()
    publish_to(lake, db, "--again", "it's")


def test_a_warehouse_without_all_runs_leaves_relations_across_runs(tmp_path, nights):
    lake = tmp_path / "lake"
    for night in NIGHTS[:2]:
        fill(tmp_path / f"{night}.duckdb", nights / night)
    assert len(publish_to(lake, tmp_path / f"{NIGHTS[0]}.duckdb")) == 1
    (note,) = publish_to(lake, tmp_path / f"{NIGHTS[1]}.duckdb")[1:]
    assert note.startswith("the lake has 1 run that this warehouse lacks: trends and other")
    main = tmp_path / "main.duckdb"
    parts = [tmp_path / f"{night}.duckdb" for night in NIGHTS[:2]]
    assert run_memhouse("merge", main, *parts).returncode == 0
    assert len(publish_to(lake, main)) == 1
    assert_published(lake, main)


def start(lake, db):
    return subprocess.Popen(
        [MEMHOUSE, "publish", lake, "--db", db],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_two_processes_publish_different_runs_at_once(tmp_path, nights):
    lake = tmp_path / "lake"
    parts = [tmp_path / f"{night}.duckdb" for night in NIGHTS[:2]]
    for part, night in zip(parts, NIGHTS, strict=False):
        fill(part, nights / night)
    running = [start(lake, part) for part in [*parts, parts[0]]]
    for process in running:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    main = tmp_path / "main.duckdb"
    assert run_memhouse("merge", main, *parts).returncode == 0
    publish_to(lake, main)
    assert_published(lake, main)


@pytest.mark.slow
def test_a_killed_publish_is_invisible_and_completed_by_the_next(tmp_path, nights):
    db, lake = tmp_path / "nights.duckdb", tmp_path / "lake"
    chance = random.Random(3)
    fill(db, *(nights / name for name in NIGHTS[:2]))
    began = time.monotonic()
    publish_to(tmp_path / "alone", db)
    seconds = max(1.0, time.monotonic() - began)
    killed = 0
    for _ in range(rounds(5)):
        process = start(lake, db)
        time.sleep(chance.uniform(0.3, 0.4 * seconds))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        if (lake / "runs/_delta_log").exists():
            there = deltalake.DeltaTable(str(lake / "runs")).to_pyarrow_table()
            if len(there):
                break
    assert killed > 0
    publish_to(lake, db)
    assert_published(lake, db)


def test_an_object_store_is_reached_as_deltalake_does(bucket, nights, tmp_path):
    db = tmp_path / "night.duckdb"
    fill(db, nights / NIGHTS[0])
    publish_to(bucket.url, db)
    assert "no new run" in publish_to(bucket.url, db)[0]
    there = deltalake.DeltaTable(f"{bucket.url}/peaks").to_pyarrow_table()
    with reading(db) as store:
        here = store.rows("SELECT * FROM peaks")
    assert rows(there, there.schema.names) == rows(here, there.schema.names)


def test_wrong_places_are_refused_with_a_line(tmp_path, history, published):
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text("no folder")
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    wrong = {
        file: "is a file: name a folder or a URL",
        other: "holds other files",
        tmp_path / "100%25": "takes no '%'",
        tmp_path / "a[b]": "takes no '['",
        "nowhere://bucket/lake": "cannot publish to",
        "s3://": "cannot publish to",
    }
    for place, says in wrong.items():
        done = run_memhouse("publish", place, "--db", history)
        assert done.returncode == 1
        assert (says in done.stderr, done.stderr.count("\n")) == (True, 1), done.stderr
    done = run_memhouse("publish", tmp_path / "lake", "--db", tmp_path / "absent.duckdb")
    assert done.returncode == 1
    assert not (tmp_path / "lake").exists()


def test_a_lake_with_other_columns_is_left_alone(tmp_path, nights):
    db, lake = tmp_path / "night.duckdb", tmp_path / "lake"
    fill(db, nights / NIGHTS[0])
    deltalake.write_deltalake(str(lake / "runs"), pa.table({"run_id": ["x"], "mood": ["good"]}))
    with memhouse.open(db) as warehouse, pytest.raises(WarehouseError, match="another version"):
        warehouse.publish(str(lake))


def test_without_the_package_a_line_says_what_to_install(tmp_path, history, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    done = run_memhouse("publish", tmp_path / "lake", "--db", history)
    assert done.returncode == 1
    assert "pip install 'memhouse[lake]'" in done.stderr
