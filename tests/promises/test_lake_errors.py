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


DAMAGE = {
    "the first commit is gone": (lambda lake: (lake / FIRST).unlink(), "its log is damaged"),
    "a commit between others is gone": (
        lambda lake: (lake / SECOND).unlink(),
        "its log is damaged: restore the files in _delta_log from a copy",
    ),
    "a commit is cut": (
        lambda lake: os.truncate(lake / FIRST, 100),
        "its log is damaged: restore the files in _delta_log from a copy",
    ),
    "files of a table are gone": (
        delete_files_of_dumps,
        ".parquet is gone (if the lake was vacuumed meanwhile, give the same command again",
    ),
    "a file of a table is cut": (
        cut_files_of_dumps,
        ".parquet is damaged: its length is not as written: restore it from a copy, or drop what",
    ),
    "Delta is newer": (
        lambda lake: replace(lake / FIRST, '"minReaderVersion":1', '"minReaderVersion":99'),
        "a newer program changed its format (Unsupported minimum reader version 99): upgrade",
    ),
    "the layout is newer": (make_newer, "upgrade memhouse"),
}


@pytest.mark.parametrize("command", [READING, WRITING], ids=["read", "write"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_lake_is_left_as_it_is(lake, damage, command):
    do, said = DAMAGE[damage]
    do(lake)
    before = content(lake)
    assert said in refused(command, lake)
    assert content(lake) == before


def test_files_without_a_log_are_no_place_for_a_new_lake(lake):
    for commit in (lake / "_delta_log").iterdir():
        commit.unlink()
    before = content(lake)
    for command in (READING, WRITING):
        assert "its log is gone, its files are there: restore" in refused(command, lake)
    (lake / "_delta_log").rmdir()
    for command in (READING, WRITING):
        assert "its log is gone, its files are there: restore" in refused(command, lake)
    assert content(lake) == before


def test_no_lake_is_made_within_a_lake(lake):
    """The outer lake's vacuum would delete it."""
    before = content(lake)
    done = run_memhouse("lake", "init", lake / "team" / "b")
    assert done.returncode == 1
    assert f"it is inside the lake {lake}, whose vacuum would delete it" in done.stderr
    assert content(lake) == before


def test_a_folder_of_other_files_does_not_become_a_lake(tmp_path):
    dumps = Path(shutil.copytree(OTHER_NIGHT, tmp_path / "dumps"))
    before = content(dumps)
    done = run_memhouse("lake", "init", dumps)
    assert done.returncode == 1
    assert "it holds other files, such as module_" in done.stderr
    assert "which a vacuum would delete: name a folder that is empty or not there" in done.stderr
    assert done.stderr.count("\n") == 1
    assert content(dumps) == before
    assert not (dumps / "_delta_log").exists()


def test_a_file_does_not_become_a_lake(tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    done = run_memhouse("lake", "init", file)
    assert done.returncode == 1
    assert done.stderr == f"error: cannot make a lake of {file}: it is a file: name a folder\n"
    assert file.read_text() == "text"


def test_hidden_files_may_be_where_a_lake_is_made(tmp_path):
    (tmp_path / ".gitkeep").touch()
    assert run_memhouse("lake", "init", tmp_path).returncode == 0


@pytest.mark.parametrize("url", ["s4://bucket/memhouse", "s3:/bucket/memhouse"])
def test_a_slip_in_a_url_makes_no_folder(tmp_path, url):
    done = run_memhouse("lake", "init", url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {url} is not a URL of a lake: use s3://, gs://, abfs://, az:// or a folder\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_lake_that_newer_programs_write_is_only_read(lake):
    replace(lake / FIRST, '"minWriterVersion":2', '"minWriterVersion":99')
    assert run_memhouse(*READING, "--db", lake).returncode == 0
    log = sorted((lake / "_delta_log").iterdir())
    assert "a newer program changed its format" in refused(WRITING, lake)
    assert sorted((lake / "_delta_log").iterdir()) == log
    assert "2 " not in run_memhouse("sql", "SELECT COUNT(*) FROM runs", "--db", lake).stdout


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
    assert wrote.stderr.startswith(f"error: cannot use the lake {lake}: permission is denied: ")
    assert wrote.stderr.count("\n") == 1


# --- in an object store ---------------------------------------------------------------------


def asking(endpoint):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    return {**NOTHING_ELSE, **keys, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint}


REFUSALS = [
    (403, "InvalidAccessKeyId", "the credentials are wrong: check AWS_PROFILE, or AWS_ACCESS_KE"),
    (403, "SignatureDoesNotMatch", "the credentials are wrong: check AWS_PROFILE"),
    (400, "ExpiredToken", "the credentials have expired: get new ones"),
    (403, "AccessDenied", "access is denied: ask the bucket's owner for permission to list and"),
    (404, "NoSuchBucket", "there is no such bucket: make it, or name another"),
    (301, "PermanentRedirect", "the bucket is in another region: name its region with AWS_REGI"),
    (503, "SlowDown", "the object store is overloaded: give the same command again later"),
]


@pytest.mark.parametrize(
    ("status", "code", "said"), REFUSALS, ids=[code for _, code, _ in REFUSALS]
)
def test_a_refusal_says_what_to_do(tmp_path, status, code, said):
    with refusing(tmp_path, status, code) as server:
        for command in (READING, WRITING):
            told = refused(command, "s3://bucket/lake", asking(server.endpoint))
            assert told.startswith(f"cannot use the lake s3://bucket/lake: {said}")


def test_a_machine_without_a_role_has_no_credentials():
    said = "Operation not supported: an error occurred while loading credentials: IMDS is disabled"
    told = str(lake_error("s3://bucket/lake", OSError(said)))
    assert "there are no credentials: set AWS_PROFILE" in told


def test_no_credentials(tmp_path):
    with refusing(tmp_path) as server:
        env = {name: said for name, said in asking(server.endpoint).items() if "KEY" not in name}
        told = refused(READING, "s3://bucket/lake", env)
        assert "there are no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and" in told


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as port:
        address = f"http://127.0.0.1:{port.getsockname()[1]}"
    for command in (READING, WRITING):
        told = refused(command, "s3://bucket/lake", asking(address))
        assert f"{address} does not answer: check the network, and AWS_ENDPOINT_URL" in told


@pytest.mark.slow
def test_nobody_answers():
    """Where packets vanish, ten seconds are enough."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        address = f"http://127.0.0.1:{full.getsockname()[1]}"
        assert f"{address} does not answer" in refused(READING, "s3://b/l", asking(address))


def test_a_bucket_that_is_not_there(bucket):
    for command in (READING, WRITING):
        assert "there is no such bucket" in refused(command, "s3://nothing-here/lake")


@pytest.mark.slow
def test_a_bucket_that_may_only_be_read(bucket, tmp_path):
    assert run_memhouse("ingest", "--db", bucket.url, NIGHT).returncode == 0
    before = bucket.keys()
    with refusing(tmp_path, behind=bucket.server.endpoint) as server:
        read = run_memhouse("runs", "--db", bucket.url, env={"AWS_ENDPOINT_URL": server.endpoint})
        assert "seeds" in read.stdout, read.stderr
        told = refused(WRITING, bucket.url, {"AWS_ENDPOINT_URL": server.endpoint})
        new = refused(WRITING, f"{bucket.url}-new", {"AWS_ENDPOINT_URL": server.endpoint})
    assert "-new: access is denied: ask the bucket's owner" in new
    assert f"cannot use the lake {bucket.url}: access is denied: ask the bucket's owner" in told
    assert bucket.keys() == before
    assert run_memhouse("ingest", "--db", bucket.url, OTHER_NIGHT).returncode == 0
