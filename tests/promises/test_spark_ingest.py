"""A lake that Spark makes has the rows of any warehouse of the same dumps, whoever dies."""

import os
import random
import signal
import time
from collections import Counter
from datetime import UTC, datetime

import pytest

import memhouse
import memhouse.spark
from memhouse.schema import arrow
from memhouse.schema.errors import JobError
from memhouse.schema.lake.data_files import relations
from memhouse.schema.lake.snapshot import Lake

from ..support.dumps import DATA, DUMPS, RUNS
from ..support.rounds import rounds
from ..support.spark_submit import executors, start
from ..support.warehouse import reading

pytestmark = [
    *(pytest.mark.slow, pytest.mark.scheduled),
    *(pytest.mark.usefixtures("java"), pytest.mark.xdist_group("spark")),
]
# Who ingested a run, and when.
_OF_INGEST = {"ingested_at", "tool_version"}
ROUNDS = range(rounds(1))
ARCHIVES = [DATA / "oom-dumps.tar.zst", DATA / "session"]


def all_rows(store):
    """How often each row is there, by table."""
    found = {}
    for name in relations():
        columns = [f'"{c}"' for c in arrow.schema(name).names if c not in _OF_INGEST]
        rows = store.rows(f'SELECT {", ".join(columns)} FROM "{name}"').to_pylist()
        found[name] = Counter(tuple(row.values()) for row in rows)
    return found


def rows_of_lake(place):
    with memhouse.open(place, read_only=True) as warehouse:
        return all_rows(warehouse._store)


@pytest.fixture
def lake(tmp_path):
    """The folder of a lake that is not there yet."""
    return tmp_path / "lake"


@pytest.fixture
def place(lake):
    """The same as a URL."""
    return f"file://{lake}"


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def ended(process):
    """The exit status, and what is said: spark-submit prints what Python says on stdout."""
    printed, said = process.communicate()
    own = [line for line in said.splitlines() if " INFO " not in line and " WARN " not in line]
    return process.returncode, "\n".join([printed, *own])


def wait_for_a_moment(number, lake, process):
    """Wait until a file is written; after the first round for any time while they work."""
    while not (list(lake.glob("relation=*/*.parquet")) if number == 0 else executors(process.pid)):
        assert process.poll() is None, ended(process)
        time.sleep(0.01)
    if number:
        # Python's workers start, list, identify, read and write in this time.
        time.sleep(random.Random(number).uniform(0, 10))


@pytest.mark.parametrize("number", ROUNDS)
def test_spark_makes_the_same_rows_though_an_executor_dies(filled, lake, place, scratch, number):
    with start("ingest", "--db", place, "--tasks=8", *RUNS, scratch=scratch) as process:
        wait_for_a_moment(number, lake, process)
        for executor in executors(process.pid)[:1]:
            os.kill(executor, signal.SIGKILL)
        status, said = ended(process)
    assert status == 0, said
    assert "cpu: 11 dumps, 11 new modules" in said
    with reading(filled) as store:
        assert rows_of_lake(place) == all_rows(store)


@pytest.mark.parametrize("number", ROUNDS)
def test_nothing_is_seen_of_a_driver_that_died(filled, lake, place, scratch, number):
    with start("ingest", "--db", place, *RUNS, scratch=scratch) as process:
        wait_for_a_moment(number, lake, process)
        process.kill()
        ended(process)
    with reading(filled) as store:
        expected = all_rows(store)
    there = rows_of_lake(place) if lake.exists() else {"runs": Counter(), "dumps": Counter()}
    # Each run is one commit.
    runs = {row[0] for row in there["runs"]}
    assert number or not runs
    assert there["dumps"] == Counter(row for row in expected["dumps"] if row[1] in runs)
    with start("ingest", "--db", place, *RUNS, scratch=scratch) as process:
        status, said = ended(process)
    assert status == 0, said
    assert rows_of_lake(place) == expected


def rows_of(file, *paths, **options):
    """The rows of a DuckDB file of these paths."""
    with memhouse.open(file) as warehouse:
        for path in paths:
            warehouse.ingest(path, **options)
        return all_rows(warehouse._store)


def test_stored_dumps_are_not_stored_again(spark, lake, place):
    memhouse.spark.ingest(spark, place, DUMPS / "gpu")
    version = Lake(str(lake)).snapshot.version
    again = memhouse.spark.ingest(spark, place, DUMPS / "gpu")
    assert (again.new_modules, again.unchanged) == (0, again.dumps)
    assert Lake(str(lake)).snapshot.version == version


def test_archives_and_sessions_are_read_by_executors(spark, place, tmp_path):
    for path in ARCHIVES:
        memhouse.spark.ingest(spark, place, path)
    assert rows_of_lake(place) == rows_of(tmp_path / "plain.duckdb", *ARCHIVES)


def test_a_path_that_executors_do_not_see_fails_the_job(spark, place, scratch, monkeypatch):
    """Each process has a current folder of its own, so executors see another one."""
    (scratch / "night").symlink_to(DUMPS / "gpu")
    monkeypatch.chdir(scratch)
    reason = r"cannot read it \(No such file or directory\), and the driver can"
    with pytest.raises(JobError, match=f"/proc/self/cwd/night/.*{reason}"):
        memhouse.spark.ingest(spark, place, "/proc/self/cwd/night")
    assert not any(map(sum, (rows.values() for rows in rows_of_lake(place).values())))


def test_dumps_and_the_lake_may_be_in_a_bucket(spark, bucket, tmp_path, monkeypatch):
    # Executors get these variables; Spark started before the server.
    for name, value in bucket.server.environment.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    night = DUMPS / "gpu"
    for path in night.rglob("*"):
        if path.is_file():
            key = f"dumps/gpu/{path.relative_to(night)}"
            bucket.server.client.put_object(Bucket=bucket.name, Key=key, Body=path.read_bytes())
    url, at = f"s3://{bucket.name}/dumps/gpu", datetime(2026, 10, 1, tzinfo=UTC)
    memhouse.spark.ingest(spark, bucket.url, url, at=at)
    found, expected = rows_of_lake(bucket.url), rows_of(tmp_path / "plain.duckdb", night, at=at)
    assert [row[-1] for row in found.pop("runs")] == [url]
    del expected["runs"]
    assert found == expected


def test_the_views_of_a_lake_are_spark_s(spark, place):
    with memhouse.open(place) as warehouse:
        warehouse.ingest(DUMPS / "gpu")
        expected = warehouse.sql("SELECT workload, peak_bytes FROM peaks ORDER BY ALL").arrow()
    names = memhouse.spark.views(spark, place)
    assert {"values", "history", "peaks", "trends"} <= set(names)
    found = spark.sql("SELECT workload, peak_bytes FROM peaks ORDER BY ALL").collect()
    assert [row.asDict() for row in found] == expected.to_pylist()
