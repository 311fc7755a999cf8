"""How programs are divided among tasks of Spark, and what a task does; without Spark."""

import os
import pickle
import shutil
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.archived_files import archives_under, close_archive, listing, shared_archive
from memhouse.ingest.sources.dump_folder import find_dumps
from memhouse.ingest.sources.files import RemotePath, open_source, path_of
from memhouse.ingest.sources.shared_paths import UnseenError, shared
from memhouse.ingest.spark_packing import pack
from memhouse.ingest.spark_tasks import code_digest, identify_job, perform
from memhouse.schema.errors import UsageError

from ..support.dumps import DATA, DUMPS, copy_dump
from ..support.rounds import rounds

PROGRAMS = st.lists(
    st.tuples(st.integers(0, 1000), st.sampled_from([None, "a.tar", "b.tar"])), max_size=30
)


@settings(max_examples=rounds(50))
@given(programs=PROGRAMS, count=st.integers(1, 8))
def test_every_program_is_in_one_task(programs, count):
    groups = [[place] for place in range(len(programs))]
    tasks = pack(groups, count, lambda p: programs[p][0], lambda p: programs[p][1])
    assert sorted(place for task in tasks for place in task) == list(range(len(programs)))
    assert len(tasks) <= count
    assert all(tasks)


def test_programs_of_one_module_stay_together_in_order():
    tasks = pack([[0, 3, 5], [1], [2], [4]], 2, lambda place: 10, lambda place: None)
    assert any(task[:3] == [0, 3, 5] or task[-3:] == [0, 3, 5] for task in tasks)


def test_an_archive_is_unpacked_by_few_tasks_but_shared_if_it_is_all():
    of_one = pack([[n] for n in range(8)], 2, lambda place: 10, lambda place: "night.tar")
    assert [len(task) for task in of_one] == [4, 4]
    two = ["a.tar"] * 3 + ["b.tar"] * 3
    beside = pack([[n] for n in range(6)], 2, lambda place: 10, lambda place: two[place])
    assert sorted(map(sorted, beside)) == [[0, 1, 2], [3, 4, 5]]


def test_the_largest_programs_are_spread_first():
    sizes = [1, 1, 100, 1, 90, 1]
    tasks = pack([[n] for n in range(6)], 2, lambda place: sizes[place], lambda place: None)
    assert [2 in task and 4 in task for task in tasks] == [False, False]


def test_a_file_that_is_gone_is_no_failed_dump(tmp_path):
    """Otherwise a path that executors do not see would be stored as dumps that failed."""
    (program,) = find_dumps(
        open_source(DUMPS / "gpu", lambda name: True, ExitStack(), _warn), _refuse
    )
    file = next(iter(program.files.values()))
    copy = Path(shutil.copy(str(file.location), tmp_path))
    location = shared(copy, file.size)
    assert location.open("rb").read() == copy.read_bytes()
    copy.unlink()
    with pytest.raises(UnseenError, match="No such file"):
        location.open("rb")


def test_another_file_of_the_same_path_is_told(tmp_path):
    path = tmp_path / "module_0000.a.cpu_after_optimizations.txt"
    path.write_text("HloModule a")
    location = shared(path, path.stat().st_size)
    path.write_text("HloModule another")
    with pytest.raises(UnseenError, match=r"17 .* 11"):
        location.open("rb")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_nobody_may_read_is_a_failure_of_the_dump(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("HloModule a")
    path.chmod(0)
    with pytest.raises(PermissionError):
        shared(path, 11).open("rb")


def test_a_relative_path_is_sent_as_a_whole_one(monkeypatch):
    monkeypatch.chdir(DATA)
    assert str(shared(Path("xprof.json"), 1)) == str(DATA / "xprof.json")


def test_a_listed_archive_is_what_is_unpacked():
    """The driver lists and groups what a task saw, and a file is unpacked where it is opened."""
    archive = DATA / "oom-dumps.tar.zst"
    (found,) = archives_under(archive)
    listed = pickle.loads(pickle.dumps(listing(shared_archive(found))))
    files = {file.path: file for file in listed.opened(PurePosixPath(), _refuse)}
    with ExitStack() as cleanup:
        plain = {
            file.path: file
            for file in open_source(archive, _any, cleanup, _warn)
            if file.path in files
        }
        assert files.keys() == plain.keys()
        for path, file in files.items():
            sent = pickle.loads(pickle.dumps(file))
            assert sent.location.content is None
            assert sent.read() == plain[path].read()
            assert (file.modified, file.size) == (plain[path].modified, plain[path].size)
    close_archive()


def _warn(text):
    raise AssertionError(text)


def _refuse(file, error):
    raise error


def _any(name):
    return True


def test_a_task_of_another_version_is_refused():
    result = pickle.loads(perform("another digest", identify_job, b"is not looked at"))
    assert isinstance(result, str)
    assert "version" in result


def test_a_task_identifies_programs(tmp_path):
    folder = copy_dump("cpu/*/*jit_mixed*", tmp_path / "dump")
    with ExitStack() as cleanup:
        found = find_dumps(open_source(folder, _any, cleanup, _warn), _refuse)
    programs = list(enumerate(found))
    done = pickle.loads(perform(code_digest(), identify_job, pickle.dumps(programs)))
    (result,) = done
    assert [(place, of.module_id) for place, of in result] == [
        (place, program.fingerprint().module_id) for place, program in programs
    ]
    assert all(of.content is None for _, of in result)


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
        find_dumps(open_source(place, _any, ExitStack(), _warn), _refuse)
        for place in (DUMPS / "cpu", path_of(f"s3://{bucket.name}/night"))
    )
    assert [program.key for program in here] == [program.key for program in there]
    assert [p.fingerprint().module_id for p in here] == [p.fingerprint().module_id for p in there]
