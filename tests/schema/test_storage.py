"""Where a lake is, and how it is reached: deltalake and the file system must agree."""

import re
import uuid
from contextlib import suppress
from importlib import util

import pytest
from deltalake import DeltaTable

from memhouse.ingest.sources.files import RemotePath
from memhouse.ingest.sources.forward_bytes import FilePart
from memhouse.schema.errors import MissingPackageError, WarehouseError
from memhouse.schema.lake import storage
from memhouse.schema.lake.snapshot import Lake
from memhouse.xla.errors import DumpError

from ..support.s3_refusing import refusing
from ..support.s3_server import NOTHING_ELSE, set_environment

KEYS = {"AWS_ACCESS_KEY_ID": "of-variables", "AWS_SECRET_ACCESS_KEY": "secret"}
CREDENTIALS = """[default]
aws_access_key_id = of-default
aws_secret_access_key = secret
[night]
aws_access_key_id = of-night
aws_secret_access_key = secret
"""
CONFIG = """[default]
region = eu-west-1
endpoint_url = {endpoint}
[profile night]
region = eu-north-1
services = ours
[profile process]
region = eu-south-1
endpoint_url = {endpoint}
credential_process = echo '{{"Version": 1, "AccessKeyId": "of-process", "SecretAccessKey": "x"}}'
[services ours]
s3 =
  endpoint_url = {endpoint}
"""


@pytest.fixture(autouse=True)
def _new_settings():
    """Each test has an environment of its own, as each opening of a lake may have."""
    storage.forget()


@pytest.fixture
def server(tmp_path):
    with refusing(tmp_path) as found:
        yield found


@pytest.fixture
def files(tmp_path, server):
    """A user's AWS configuration: the variables that name it."""
    (tmp_path / "config").write_text(CONFIG.format(endpoint=server.endpoint))
    (tmp_path / "credentials").write_text(CREDENTIALS)
    return {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }


def who_asked(server):
    """The key and the region of deltalake's requests, and of the file system's."""
    bucket = f"bucket-{uuid.uuid4().hex}"
    place = f"s3://{bucket}/lake"
    with suppress(OSError):
        DeltaTable.is_deltatable(place, storage.options(place))
    of_deltalake = server.asked()
    with suppress(OSError):
        storage.filesystem(place).ls(place)
    return of_deltalake, server.asked()


@pytest.mark.slow
def test_both_ask_with_the_keys_and_the_region_that_the_user_set(server, files):
    cases = []
    for region, endpoint in (
        ("AWS_REGION", "AWS_ENDPOINT_URL"),
        ("AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"),
    ):
        said = {**KEYS, region: "eu-west-2", endpoint: server.endpoint}
        cases.append((said, ("of-variables", "eu-west-2")))
    for said, asked in (
        ({}, ("of-default", "eu-west-1")),
        ({"AWS_PROFILE": "night"}, ("of-night", "eu-north-1")),
        ({"AWS_PROFILE": "process"}, ("of-process", "eu-south-1")),
        ({"AWS_PROFILE": "night", "AWS_REGION": "eu-west-3"}, ("of-night", "eu-west-3")),
        # Keys go before the default profile, whose region and endpoint hold.
        (KEYS, ("of-variables", "eu-west-1")),
    ):
        cases.append((files | said, asked))
    for said, asked in cases:
        with pytest.MonkeyPatch.context() as patched:
            set_environment(patched, {**NOTHING_ELSE, **said})
            storage.forget()
            assert who_asked(server) == ({asked}, {asked}), said


def test_an_endpoint_may_be_ignored_or_no_url_and_a_profile_may_be_missing(files, monkeypatch):
    said = {**files, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    set_environment(monkeypatch, {**NOTHING_ELSE, **said})
    assert "AWS_ENDPOINT_URL" not in storage.options("s3://bucket-ignored/lake")
    for name, value in (("AWS_PROFILE", "nobody"), ("AWS_ENDPOINT_URL", "127.0.0.1:9000")):
        set_environment(monkeypatch, {**NOTHING_ELSE, **files, name: value})
        storage.forget()
        with pytest.raises(WarehouseError, match=re.escape(value)):
            storage.options("s3://bucket/lake")


@pytest.mark.slow
def test_no_setting_lets_two_commits_of_one_version_through(bucket, monkeypatch):
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    import pyarrow as pa
    from deltalake import CommitProperties, write_deltalake
    from deltalake.exceptions import CommitFailedError

    found = storage.options(bucket.url)
    rows = pa.table({"a": [1]})
    write_deltalake(bucket.url, rows, storage_options=found)
    tables = [DeltaTable(bucket.url, storage_options=found) for _ in range(2)]
    once = CommitProperties(max_commit_retries=0)
    write_deltalake(tables[0], rows, mode="append", commit_properties=once)
    with pytest.raises(CommitFailedError):
        tables[1].delete(commit_properties=once)
    assert DeltaTable(bucket.url, storage_options=found).version() == 1


@pytest.mark.slow
def test_little_is_read_of_a_large_file(bucket):
    """DuckDB reads here and there; the file system must not fetch what lies between."""
    content = bytes(8 << 20)
    files = storage.filesystem(bucket.url)
    files.pipe_file(f"{bucket.url}/file", content)
    with files.open(f"{bucket.url}/file") as file:
        file.seek(4 << 20)
        file.read(100)
        assert file.cache.total_requested_bytes <= 1 << 17


def test_a_missing_package_is_named(monkeypatch):
    find = util.find_spec
    for scheme, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("abfs", "adlfs")):

        def without(name, package=package):
            return None if name == package else find(name)

        monkeypatch.setattr(storage, "find_spec", without)
        for ask in (storage.options, storage.filesystem):
            with pytest.raises(MissingPackageError, match=f"pip install {package}"):
                ask(f"{scheme}://without/lake")


def test_what_names_a_lake(tmp_path):
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    for db in ("s3://b/x", "s3a://b/x", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x"):
        assert storage.is_lake(db)
    assert storage.is_lake(str(tmp_path / "lake"))
    for db in (str(tmp_path), str(tmp_path / "x.duckdb"), "duckdb:///x.duckdb", "nothing"):
        assert not storage.is_lake(db)


def test_every_reader_takes_the_location():
    places = {
        "s3a://bucket/a/": "s3://bucket/a",
        "gcs://bucket/a": "gs://bucket/a",
        "file:///lakes/a/": "/lakes/a",
    }
    assert {db: storage.location(db) for db in places} == places
    with pytest.raises(WarehouseError, match="s3://"):
        storage.location("s3://")


def test_a_lake_that_is_opened_again_takes_the_environment_of_then(server, monkeypatch):
    """In a notebook credentials expire, and the user sets others."""
    place = "s3://bucket/lake"
    set_environment(monkeypatch, NOTHING_ELSE | {"AWS_ENDPOINT_URL": server.endpoint})
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    before = storage.filesystem(place), storage.options(place)
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert (storage.filesystem(place), storage.options(place)) == before
    with suppress(WarehouseError):
        Lake(place)
    assert storage.filesystem(place) is not before[0]
    assert storage.options(place)["AWS_REGION"] == "us-east-2"


def test_places_of_a_store_share_a_client():
    assert storage.filesystem("s3://a/b") is storage.filesystem("s3://c/d")


@pytest.mark.slow
def test_a_part_of_a_file_is_read_alone(bucket):
    bucket.server.client.put_object(Bucket=bucket.name, Key="profile", Body=b"0123456789")
    path = RemotePath(f"s3://{bucket.name}/profile")
    assert FilePart(path, 3, 4).read() == path.part(3, 4) == b"3456"
    with pytest.raises(DumpError, match="byte 10"):
        FilePart(path, 8, 4).read()
