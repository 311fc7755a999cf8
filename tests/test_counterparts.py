"""What the tests rely on: an S3 server on this machine, Java, groups of tests in one process."""

import os
import subprocess
import sys

import pytest

from .support import java as java_support


def test_a_second_put_of_a_name_is_refused(bucket):
    """The commit of a lake depends on it: of two writers of one version, one must lose."""
    client, key = bucket.server.client, "_delta_log/00000000000000000000.json"
    client.put_object(Bucket=bucket.name, Key=key, Body=b"first", IfNoneMatch="*")
    with pytest.raises(client.exceptions.ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=bucket.name, Key=key, Body=b"second", IfNoneMatch="*")
    assert client.get_object(Bucket=bucket.name, Key=key)["Body"].read() == b"first"
    assert bucket.keys() == [key]


def test_other_processes_find_the_bucket(bucket):
    program = f"import s3fs; print(s3fs.S3FileSystem().exists({bucket.name!r}))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "True\n", run.stderr


def test_a_bucket_is_a_tests_own(bucket, s3, monkeypatch):
    assert bucket.keys() == []
    assert os.environ["AWS_ENDPOINT_URL"] == s3.endpoint
    assert "AWS_PROFILE" not in os.environ


def fake_java(folder, version):
    (folder / "bin").mkdir()
    command = folder / "bin" / "java"
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    command.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("version", ["17.0.10", "21", "25.0.1"])
def test_spark_takes_this_java(tmp_path, version):
    assert java_support.missing_java(fake_java(tmp_path, version)) is None


@pytest.mark.parametrize(("version", "said"), [("1.8.0_412", 8), ("11.0.22", 11)])
def test_spark_does_not_take_an_old_java(tmp_path, version, said):
    why = java_support.missing_java(fake_java(tmp_path, version))
    assert why == f"{tmp_path}/bin/java is Java {said}, and Spark needs 17"


def test_there_may_be_no_java(tmp_path, monkeypatch):
    assert java_support.missing_java(str(tmp_path)) == f"{tmp_path}/bin/java is not installed"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_support.missing_java(None) == "java is not installed"


@pytest.mark.xdist_group("any")
def test_a_group_is_seen(request):
    """Else each worker starts a Spark of its own."""
    is_by_group = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@any") == is_by_group
