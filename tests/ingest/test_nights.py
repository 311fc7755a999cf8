"""A night is the same rows however it is cut and in whatever order it comes."""

import os
import shutil
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memhouse
from memhouse.ingest import writer

from ..support.dumps import DUMPS
from ..support.rounds import rounds
from ..support.warehouse import content

AT = datetime(2026, 11, 26)
HOSTS = {"a": ["cpu", "seeds"], "b": ["cpu/jax-0.9.0", "gpu"], "c": ["cpu", "tpu/flash-v5e"]}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """The dumps of three hosts, which have many programs in common; one of `c` is damaged."""
    folder = tmp_path_factory.mktemp("night")
    for host, samples in HOSTS.items():
        for sample in samples:
            shutil.copytree(DUMPS / sample, folder / host / sample)
    text = min((folder / "c" / "cpu").rglob("*after_optimizations.txt*"))
    text.write_bytes(text.read_bytes()[:-100])
    # `compiled_at` is that of the host that came first.
    for file in folder.rglob("*.*"):
        os.utime(file, (AT.timestamp(), AT.timestamp()))
    return folder


def enter(place, night, order, jobs):
    """The rows of every table once all hosts have entered; with `jobs[host]` jobs each."""
    for host in order:
        with memhouse.open(place) as warehouse:
            warehouse.ingest(night / host, run="night", host=host, at=AT, jobs=jobs[host])
    return content(place, "source")


@pytest.fixture(scope="module")
def expected(night, tmp_path_factory):
    """The rows of the night as it usually comes."""
    place = tmp_path_factory.mktemp("expected") / "night.duckdb"
    rows = enter(place, night, "abc", dict.fromkeys("abc", 1))
    assert {row[0] for row in rows["run_parts"]} == {"night"}
    assert len(rows["modules"]) > 15
    return rows


@pytest.mark.slow
@settings(
    deadline=None,
    max_examples=rounds(10),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_way_through_a_night(data, night, expected, tmp_path_factory):
    at_once = data.draw(st.sampled_from([1, 3, 500]), label="dumps written together")
    order = data.draw(st.permutations("abc"), label="order of hosts")
    jobs = {host: data.draw(st.sampled_from([1, 2]), label="jobs") for host in order}
    place = tmp_path_factory.mktemp("way") / "night.duckdb"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_MAX_DUMPS", at_once)
        assert enter(place, night, order, jobs) == expected
    shutil.rmtree(place.parent)
