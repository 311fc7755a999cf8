"""An S3 server on a port of this machine: moto's, in a process of its own.

A server in a thread would share Python's lock with the test, and a test that kills its clients
needs a server that lives on.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

REGION = "us-east-1"
_STARTS_WITHIN_SECONDS = 60
# The server says its port in a line that ends like this.
_ADDRESS = "Running on http://127.0.0.1:"


@dataclass(frozen=True)
class S3Server:
    """A running server, whose data is gone when it ends."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables that point every S3 client to the server, in this process and in others."""
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "NO_PROXY": "127.0.0.1",
            **NOTHING_ELSE,
        }

    @cached_property
    def client(self) -> Any:
        """boto3's client, for what a test does behind memhouse's back."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )


# No client may find another account: neither in the user's files nor by asking a cloud.
NOTHING_ELSE = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class Bucket:
    """A bucket of a test's own."""

    server: S3Server
    name: str

    @property
    def url(self) -> str:
        """A place in the bucket where nothing is yet."""
        return f"s3://{self.name}/memhouse"

    def keys(self) -> list[str]:
        """The keys of everything in the bucket, also of what no commit names."""
        pages = self.server.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """A server on a free port for the time of the block; its log goes to the folder."""
    log = folder / "s3_server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            # The system chooses the port, so no other process takes it in between.
            [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", "0"],
            stdout=output,
            stderr=output,
        )
    try:
        yield S3Server(f"http://127.0.0.1:{_port(process, log)}")
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that the server listens on, once it does."""
    give_up = time.monotonic() + _STARTS_WITHIN_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        said = log.read_text(errors="replace").partition(_ADDRESS)[2]
        if "\n" in said:
            return int(said.split()[0])
        time.sleep(0.02)
    raise RuntimeError(f"the S3 server did not start: {log.read_text(errors='replace')}")


def set_environment(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Make these the only variables that S3 clients of this process and its children see."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
