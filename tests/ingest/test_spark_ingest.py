"""An ingest by Spark's executors gives the rows of `memhouse ingest`; without Spark.

What the driver and the executors send each other goes through pickle, as it does between machines.
"""

import pickle
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memhouse
import memhouse.spark
from memhouse.ingest import spark_ingest
from memhouse.ingest.sources.dump_folder import DumpedProgram, find_dumps
from memhouse.ingest.sources.files import RemotePath, open_source, path_of
from memhouse.schema.errors import JobError, UsageError
from memhouse.schema.lake.snapshot import Lake

from ..support.dumps import DATA, DUMPS, RUNS, copy_dump
from ..support.lakes import journal_rows, table_rows

AT = datetime(2026, 10, 1, tzinfo=UTC)
# Archives and profiles, which the driver reads, and damaged dumps.
OTHERS = [DATA / "oom-dumps.tar.zst", DATA / "session", DATA / "oom"]


class Spark:
    """A session whose executors are this process; `between` is called before each job."""

    defaultParallelism = 2  # noqa: N815

    def __init__(self, between=lambda: None):
        self.sparkContext = self
        self._between = between

    def setJobDescription(self, text):  # noqa: N802
        pass

    def parallelize(self, tasks, count):
        assert len(tasks) == count
        self._tasks = tasks
        return self

    def map(self, do):
        self._between()
        self._do = pickle.loads(pickle.dumps(do))
        return self

    def collect(self):
        return [pickle.loads(pickle.dumps(self._do(task))) for task in self._tasks]


@pytest.fixture
def lake(tmp_path):
    return tmp_path / "lake"


def by_spark(lake, *paths, between=lambda: None, **options):
    """Ingest the paths, each as a run; what became of the last."""
    for path in paths:
        summary = memhouse.spark.ingest(Spark(between), f"file://{lake}", path, at=AT, **options)
    return summary


def rows(place):
    with memhouse.open(place, read_only=True) as warehouse:
        return table_rows(warehouse._store), journal_rows(warehouse._store)


def plain_rows(file, *paths):
    """The rows of a DuckDB file of these paths."""
    with memhouse.open(file) as warehouse:
        for path in paths:
            warehouse.ingest(path, at=AT)
    return rows(file)


def version(lake):
    return Lake(str(lake)).snapshot.version


@pytest.mark.scheduled
def test_the_rows_are_those_of_a_plain_ingest(lake, tmp_path):
    by_spark(lake, *RUNS, *OTHERS)
    assert rows(lake) == plain_rows(tmp_path / "plain.duckdb", *RUNS, *OTHERS)


def test_a_program_of_many_hosts_is_read_once(lake, tmp_path, monkeypatch):
    """Other flags make it another dump of the module; a file that is cut, another module."""
    night = tmp_path / "night"
    for host in ("host0", "host1", "host2", "host3", "host4"):
        copy_dump("tpu/llama-v5e/*", night / host)
    flags = next((night / "host3").glob("*.debug_options"))
    flags.write_text(flags.read_text() + "xla_step_marker_location: 1\n")
    hlo = next((night / "host4").glob("*after_optimizations.txt"))
    hlo.write_bytes(hlo.read_bytes()[:5000])
    read = []
    plainly = DumpedProgram.read

    def counted(program, *others, **options):
        read.append(program.key.workload)
        return plainly(program, *others, **options)

    monkeypatch.setattr(DumpedProgram, "read", counted)
    summary = by_spark(lake, night)
    assert (summary.dumps, summary.new_modules) == (5, 2)
    assert sorted(read) == ["host0", "host4"]
    assert rows(lake) == plain_rows(tmp_path / "plain.duckdb", night)


def test_what_is_stored_is_not_stored_again(lake, tmp_path):
    """A dump that is not whole is read again, and its files go."""
    night = copy_dump("cpu/jax-0.10.2/*", tmp_path / "night")
    hlo = next(night.glob("*jit_mixed*after_optimizations.txt"))
    hlo.write_bytes(hlo.read_bytes()[:5000])
    first = by_spark(lake, night)
    assert first.partial == 1
    files, before = sorted(lake.glob("relation=*/*")), version(lake)
    again = by_spark(lake, night)
    assert (again.new_modules, again.unchanged) == (0, again.dumps)
    assert (sorted(lake.glob("relation=*/*")), version(lake)) == (files, before)


def test_nothing_is_stored_of_a_job_that_cannot_be_done(lake, tmp_path, monkeypatch):
    night = copy_dump("cpu/jax-0.10.2/*", tmp_path / "night")
    by_spark(lake, DUMPS / "gpu")
    before = version(lake)
    hlo = next(night.glob("*after_optimizations.txt"))
    text = hlo.read_bytes()
    jobs = []

    def cut():
        hlo.write_bytes(text[:100])

    def changed_later():
        jobs.append(1)
        hlo.write_bytes(text if len(jobs) == 1 else text.swapcase())

    def updated():
        monkeypatch.setattr(spark_ingest, "READER_VERSION", 10_000)

    def elsewhere():
        monkeypatch.setattr(spark_ingest, "write_file", written_elsewhere)

    def killed():
        raise RuntimeError("Job aborted\nOSError: [Errno 28] No space left on device\n\tat x.y")

    write = spark_ingest.write_file

    def written_elsewhere(place, *others):
        return write(str(tmp_path / "elsewhere"), *others)

    for between, why in {
        hlo.unlink: f"{hlo.name} is not the driver's file of {len(text)} bytes",
        cut: f"{hlo.name} is not the driver's file of {len(text)} bytes",
        changed_later: "dump module_0000.* changed while it was read",
        updated: "another version of memhouse",
        killed: r"^Spark could not identify dumps: OSError: \[Errno 28\] No space left on device$",
        elsewhere: "executors write to another folder",
    }.items():
        hlo.write_bytes(text)
        with pytest.raises(JobError, match=why):
            by_spark(lake, night, between=between)
        assert version(lake) == before
        monkeypatch.undo()


def test_a_file_that_nobody_can_read_is_a_failure_of_its_dump(lake, tmp_path, monkeypatch):
    night = copy_dump("cpu/jax-0.10.2/*", tmp_path / "night")
    hlo = next(night.glob("*after_optimizations.txt"))
    hlo.unlink()
    hlo.symlink_to(hlo.name)
    summary = by_spark(lake, night)
    assert any(hlo.name in problem for problem in summary.problems)


def test_paths_may_be_urls():
    paths = {
        "s3a://bucket/night/": RemotePath("s3://bucket/night"),
        "gcs://bucket/night": RemotePath("gs://bucket/night"),
        "file:///dumps/night": Path("/dumps/night"),
        "dumps/night": Path("dumps/night"),
    }
    assert {given: path_of(given) for given in paths} == paths
    with pytest.raises(UsageError, match="http://"):
        path_of("http://host/night")


@pytest.mark.slow
def test_dumps_are_found_in_a_bucket(bucket):
    for path in sorted((DUMPS / "cpu").rglob("*")):
        if path.is_file():
            key = f"night/{path.relative_to(DUMPS / 'cpu')}"
            bucket.server.client.put_object(Bucket=bucket.name, Key=key, Body=path.read_bytes())
    here, there = (
        find_dumps(open_source(place, lambda name: True, ExitStack(), pytest.fail), pytest.fail)
        for place in (DUMPS / "cpu", path_of(f"s3://{bucket.name}/night"))
    )
    assert [program.key for program in here] == [program.key for program in there]
    assert [p.fingerprint().module_id for p in here] == [p.fingerprint().module_id for p in there]
