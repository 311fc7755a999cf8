"""A lake that Spark makes has the rows of any warehouse of the same dumps, whoever dies."""

import os
import random
import signal
import time
from datetime import UTC, datetime

import pytest

import memhouse
import memhouse.lake
import memhouse.spark
from memhouse.schema.errors import JobError

from ..support.dumps import DUMPS, RUNS
from ..support.lakes import table_rows
from ..support.rounds import rounds
from ..support.spark_submit import executors, start

pytestmark = [
    *(pytest.mark.slow, pytest.mark.scheduled),
    *(pytest.mark.usefixtures("java"), pytest.mark.xdist_group("spark")),
]
AT = datetime(2026, 10, 1, tzinfo=UTC)
ROUNDS = range(rounds(1))


def rows_of(place):
    """Every row of a warehouse; not who ingested when."""
    with memhouse.open(place, read_only=True) as warehouse:
        return table_rows(warehouse._store)


def plain_rows(file, *paths):
    """The rows of a DuckDB file of these paths, each a run."""
    with memhouse.open(file) as warehouse:
        for path in paths:
            warehouse.ingest(path, at=AT)
    return rows_of(file)


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
        # Python's workers start, identify, read and write in this time.
        time.sleep(random.Random(number).uniform(0, 10))


@pytest.fixture
def ingest(place, scratch):
    """What starts `memhouse-spark.py ingest` of all sample dumps."""
    return lambda: start("ingest", "--db", place, f"--at={AT:%Y-%m-%d}", *RUNS, scratch=scratch)


@pytest.mark.parametrize("number", ROUNDS)
def test_spark_makes_the_same_rows_though_an_executor_dies(lake, tmp_path, ingest, number):
    with ingest() as process:
        wait_for_a_moment(number, lake, process)
        for executor in executors(process.pid)[:1]:
            os.kill(executor, signal.SIGKILL)
        status, said = ended(process)
    assert status == 0, said
    assert "cpu: 11 dumps, 11 new modules" in said
    assert rows_of(lake) == plain_rows(tmp_path / "plain.duckdb", *RUNS)


@pytest.mark.parametrize("number", ROUNDS)
def test_nothing_is_seen_of_a_driver_that_died(lake, tmp_path, ingest, number):
    with ingest() as process:
        wait_for_a_moment(number, lake, process)
        process.kill()
        ended(process)
    expected = plain_rows(tmp_path / "plain.duckdb", *RUNS)
    there = rows_of(lake) if lake.exists() else {"runs": [], "dumps": []}
    # Each run is one commit.
    runs = {row[0] for row in there["runs"]}
    assert number or not runs
    assert there["dumps"] == [row for row in expected["dumps"] if row[1] in runs]
    with ingest() as process:
        status, said = ended(process)
    assert status == 0, said
    assert rows_of(lake) == expected


def test_a_path_that_executors_do_not_see_fails_the_job(spark, lake, scratch, monkeypatch):
    """Each process has a current folder of its own, so executors see another one."""
    (scratch / "night").symlink_to(DUMPS / "gpu")
    monkeypatch.chdir(scratch)
    memhouse.lake.init(lake)
    with pytest.raises(JobError, match=r"/proc/self/cwd/night/.* is not the driver's file"):
        memhouse.spark.ingest(spark, lake, "/proc/self/cwd/night")
    assert not any(rows_of(lake).values())


def test_dumps_and_the_lake_may_be_in_a_bucket(spark, bucket, tmp_path, monkeypatch):
    # Executors get these variables; Spark started before the server.
    for name, value in bucket.server.environment.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    night = DUMPS / "gpu"
    for path in night.rglob("*"):
        if path.is_file():
            key = f"dumps/gpu/{path.relative_to(night)}"
            bucket.server.client.put_object(Bucket=bucket.name, Key=key, Body=path.read_bytes())
    memhouse.spark.ingest(spark, bucket.url, f"s3://{bucket.name}/dumps/gpu", at=AT)
    there, expected = rows_of(bucket.url), plain_rows(tmp_path / "plain.duckdb", night)
    # When the files were written.
    del there["runs"], expected["runs"]
    assert there == expected


def test_the_views_of_a_lake_are_spark_s(spark, place):
    with memhouse.open(place) as warehouse:
        warehouse.ingest(DUMPS / "gpu")
        expected = warehouse.sql("SELECT workload, peak_bytes FROM peaks ORDER BY ALL").arrow()
    names = memhouse.spark.views(spark, place)
    assert {"values", "history", "peaks", "trends"} <= set(names)
    found = spark.sql("SELECT workload, peak_bytes FROM peaks ORDER BY ALL").collect()
    assert [row.asDict() for row in found] == expected.to_pylist()
