"""A lake that cannot be used: one line that says what to do, and every file as it was."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from memhouse.schema.lake.lake_errors import lake_error

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS
from ..support.s3_refusing import refusing
from ..support.s3_server import NOTHING_ELSE

NIGHT = DUMPS / "seeds"
OTHER_NIGHT = DUMPS / "cpu" / "jax-0.9.0"
READING, WRITING = ["runs"], ["ingest", OTHER_NIGHT]
FIRST = "_delta_log/00000000000000000000.json"
SECOND = "_delta_log/00000000000000000001.json"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A lake of one night. Only read it."""
    lake = tmp_path_factory.mktemp("lakes") / "lake"
    assert run_memhouse("lake", "init", lake).returncode == 0
    done = run_memhouse("ingest", "--db", lake, NIGHT)
    assert done.returncode == 0, done.stderr
    return lake


@pytest.fixture
def lake(sample, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(sample, tmp_path / "lake"))


def refused(command, lake, env=None):
    """The one line that a command says of a lake."""
    done = run_memhouse(*command, "--db", lake, env=env)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("error: ").rstrip("\n")


def content(lake):
    return {file: file.read_bytes() for file in lake.rglob("*") if file.is_file()}


def replace(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def delete_files_of_dumps(lake):
    shutil.rmtree(lake / "relation=dumps")


def cut_files_of_dumps(lake):
    for file in (lake / "relation=dumps").iterdir():
        os.truncate(file, 100)


def make_newer(lake):
    replace(lake / FIRST, '"memhouse.lakeVersion":"', '"memhouse.lakeVersion":"99')


# What is done to the lake, and what of it the line names.
DAMAGE = {
    "the first commit is gone": (lambda lake: (lake / FIRST).unlink(), "log"),
    "a commit between others is gone": (lambda lake: (lake / SECOND).unlink(), "_delta_log"),
    "a commit is cut": (lambda lake: os.truncate(lake / FIRST, 100), "_delta_log"),
    "files of a table are gone": (delete_files_of_dumps, ".parquet is gone"),
    "a file of a table is cut": (cut_files_of_dumps, ".parquet is damaged"),
    "Delta is newer": (
        lambda lake: replace(lake / FIRST, '"minReaderVersion":1', '"minReaderVersion":99'),
        "version 99",
    ),
    "the layout is newer": (make_newer, "upgrade memhouse"),
}


def test_a_damaged_lake_is_left_as_it_is(sample, tmp_path):
    for number, (damage, (do, said)) in enumerate(DAMAGE.items()):
        lake = Path(shutil.copytree(sample, tmp_path / str(number)))
        do(lake)
        before = content(lake)
        for command in (READING, WRITING):
            assert said in refused(command, lake), damage
        assert content(lake) == before, damage


def test_files_without_a_log_are_no_place_for_a_new_lake(lake):
    for commit in (lake / "_delta_log").iterdir():
        commit.unlink()
    before = content(lake)
    for command in (READING, WRITING):
        assert "its log is gone" in refused(command, lake)
    (lake / "_delta_log").rmdir()
    for command in (READING, WRITING):
        assert "its log is gone" in refused(command, lake)
    assert content(lake) == before


def test_a_lake_is_made_only_where_its_vacuum_deletes_nothing_else(lake, tmp_path):
    dumps = Path(shutil.copytree(OTHER_NIGHT, tmp_path / "dumps"))
    file = tmp_path / "file"
    file.write_text("text")
    before = content(tmp_path)
    for place, named in (
        (lake / "team" / "b", str(lake)),
        (dumps, "module_"),
        (file, str(file)),
        ("s4://bucket/memhouse", "s4://bucket/memhouse"),
        ("s3:/bucket/memhouse", "s3:/bucket/memhouse"),
    ):
        done = run_memhouse("lake", "init", place, cwd=tmp_path)
        assert done.returncode == 1, place
        assert done.stderr.startswith("error: ")
        assert named in done.stderr
        assert done.stderr.count("\n") == 1
    assert content(tmp_path) == before
    (tmp_path / "new").mkdir()
    (tmp_path / "new/.gitkeep").touch()
    assert run_memhouse("lake", "init", tmp_path / "new").returncode == 0


def test_a_lake_that_newer_programs_write_is_only_read(lake):
    replace(lake / FIRST, '"minWriterVersion":2', '"minWriterVersion":99')
    assert run_memhouse(*READING, "--db", lake).returncode == 0
    log = sorted((lake / "_delta_log").iterdir())
    assert "upgrade memhouse" in refused(WRITING, lake)
    assert sorted((lake / "_delta_log").iterdir()) == log
    assert "2 " not in run_memhouse("sql", "SELECT COUNT(*) FROM runs", "--db", lake).stdout


@pytest.mark.scheduled
def test_a_folder_that_may_only_be_read(lake):
    # The superuser may write everywhere, unless it gives up this right.
    prefix = []
    if os.geteuid() == 0:
        prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"]).returncode:
            pytest.skip("the superuser's rights cannot be taken away here")
    folders = [lake, *(folder for folder in lake.rglob("*") if folder.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        before = content(lake)
        read = subprocess.run([*prefix, MEMHOUSE, "runs", "--db", lake], capture_output=True)
        wrote = subprocess.run(
            [*prefix, MEMHOUSE, "ingest", OTHER_NIGHT, "--db", lake], capture_output=True, text=True
        )
        assert content(lake) == before
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert read.returncode == 0
    assert wrote.returncode == 1
    assert wrote.stderr.startswith("error: ")
    assert str(lake) in wrote.stderr
    assert wrote.stderr.count("\n") == 1


# --- in an object store ---------------------------------------------------------------------


def asking(endpoint):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    return {**NOTHING_ELSE, **keys, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint}


# What S3 answers, and what the line names for it.
REFUSALS = [
    (403, "InvalidAccessKeyId", "AWS_PROFILE"),
    (403, "SignatureDoesNotMatch", "AWS_PROFILE"),
    (400, "ExpiredToken", "expired"),
    (403, "AccessDenied", "permission"),
    (404, "NoSuchBucket", "no such bucket"),
    (301, "PermanentRedirect", "AWS_REGION"),
    (503, "SlowDown", "overloaded"),
]


@pytest.mark.scheduled
def test_a_refusal_says_what_to_do(tmp_path):
    for number, (status, code, said) in enumerate(REFUSALS):
        with refusing(tmp_path, status, code) as server:
            for command in (READING, WRITING) if number == 0 else (READING,):
                told = refused(command, "s3://bucket/lake", asking(server.endpoint))
                assert said in told, code


def test_a_machine_without_a_role_has_no_credentials():
    said = "Operation not supported: an error occurred while loading credentials: IMDS is disabled"
    told = str(lake_error("s3://bucket/lake", OSError(said)))
    assert "AWS_PROFILE" in told


def test_no_credentials(tmp_path):
    with refusing(tmp_path) as server:
        env = {name: said for name, said in asking(server.endpoint).items() if "KEY" not in name}
        told = refused(READING, "s3://bucket/lake", env)
        assert "AWS_PROFILE, or AWS_ACCESS_KEY_ID" in told


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as port:
        address = f"http://127.0.0.1:{port.getsockname()[1]}"
    for command in (READING, WRITING):
        told = refused(command, "s3://bucket/lake", asking(address))
        assert address in told


@pytest.mark.scheduled
def test_nobody_answers():
    """Where packets vanish, ten seconds are enough."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        address = f"http://127.0.0.1:{full.getsockname()[1]}"
        assert address in refused(READING, "s3://b/l", asking(address))


@pytest.mark.scheduled
def test_a_bucket_that_may_only_be_read(bucket, tmp_path):
    assert run_memhouse("ingest", "--db", bucket.url, NIGHT).returncode == 0
    before = bucket.keys()
    with refusing(tmp_path, behind=bucket.server.endpoint) as server:
        read = run_memhouse("runs", "--db", bucket.url, env={"AWS_ENDPOINT_URL": server.endpoint})
        assert "seeds" in read.stdout, read.stderr
        told = refused(WRITING, bucket.url, {"AWS_ENDPOINT_URL": server.endpoint})
        new = refused(WRITING, f"{bucket.url}-new", {"AWS_ENDPOINT_URL": server.endpoint})
    assert f"{bucket.url}-new: " in new
    assert f"{bucket.url}: " in told
    assert bucket.keys() == before
    assert run_memhouse("ingest", "--db", bucket.url, OTHER_NIGHT).returncode == 0
