"""The policies that `docs/lake.md` gives are enough, and give no more than it says."""

import re
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
import pytest

from ..support.command import run_memhouse
from ..support.dumps import DUMPS
from ..support.s3_server import REGION, s3_server

DOCUMENT = Path(__file__).parents[2] / "docs/lake.md"
POLICY = re.compile(r"^For (\w+(?: \w+)?).*?:\n\n```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
LAKE = "s3://bucket/memhouse"
KEYS = '"arn:aws:s3:::bucket/memhouse/*"'


def policies():
    """The policies of the document, by who gets them."""
    return dict(POLICY.findall(DOCUMENT.read_text()))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs memhouse as one of the three, on a server that holds each to its policy."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        server.client.create_bucket(Bucket="bucket")
        root = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        iam = boto3.client("iam", endpoint_url=server.endpoint, region_name=REGION, **root)
        keys = {}
        for who, policy in policies().items():
            name = who.replace(" ", "-")
            iam.create_user(UserName=name)
            # The server holds a deletion of many keys against the bucket, S3 against each key.
            policy = policy.replace(KEYS, f'[{KEYS}, "arn:aws:s3:::bucket"]')
            iam.put_user_policy(UserName=name, PolicyName="policy", PolicyDocument=policy)
            keys[who] = iam.create_access_key(UserName=name)["AccessKey"]
        # From now on the server asks whether one may.
        headers = {"Content-Type": "text/plain"}
        urlopen(Request(f"{server.endpoint}/moto-api/reset-auth", b"0", headers))

        def run_as(who, *args):
            key = {
                "AWS_ACCESS_KEY_ID": keys[who]["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys[who]["SecretAccessKey"],
            }
            return run_memhouse(*args, env=server.environment | key)

        yield run_as


@pytest.mark.slow
@pytest.mark.scheduled
def test_a_writer_writes_a_reader_reads_and_only_one_deletes(run):
    written: list[tuple[str | Path, ...]] = [
        ("lake", "init", LAKE),
        ("ingest", "--db", LAKE, DUMPS / "seeds", DUMPS / "gpu"),
        ("label", "--db", LAKE, "gpu", "team=a"),
        ("lake", "compact", "--db", LAKE),
        ("prune", "--db", LAKE, "gpu"),
    ]
    for args in written:
        done = run("writers", *args)
        assert done.returncode == 0, done.stderr
    done = run("readers", "verify", "--db", LAKE)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    vacuum = ("lake", "vacuum", "--db", LAKE, "--retention", "0h", "--force")
    refused: list[tuple[str, tuple[str | Path, ...]]] = [
        ("readers", ("ingest", "--db", LAKE, DUMPS / "gpu")),
        ("readers", ("label", "--db", LAKE, "seeds", "team=a")),
        ("writers", vacuum),
    ]
    for who, args in refused:
        done = run(who, *args)
        assert done.returncode == 1
        assert done.stderr.startswith("error: "), done.stderr
        assert done.stderr.count("\n") == 1
    assert run("who vacuums", *vacuum).returncode == 0
    done = run("readers", "verify", "--db", LAKE)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
