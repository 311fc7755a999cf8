"""Damaged `.hlo.pb`: an outcome each, in bounded time and memory, and no crash."""

import random
import re
import time
import tracemalloc

import pytest

from memhouse.ingest.errors import DumpError
from memhouse.ingest.model.join import join_parts
from memhouse.ingest.model.worked_out import work_out
from memhouse.ingest.readers.hlo_proto import identify_hlo_proto, read_hlo_proto
from tests.ingest.readers.test_hlo_proto import BINARIES, MIXED, MODULE, SAMPLES, SCHEDULE
from tests.support.protos import changed, damaged, field, mutated
from tests.support.rounds import rounds

SMALL = [file for file in SAMPLES if not file.startswith("gpu")]


def outcome(data):
    """The module that a binary gives; the error if it is refused."""
    try:
        identify_hlo_proto(data)
        parts = read_hlo_proto(data)
    except DumpError as error:
        return error
    found = work_out(parts, platform="tpu", changelist=None, completes=True)
    return join_parts(found.parts, found.attribution, found.program)


def make(seed):
    """A damaged copy of a real binary, made again by its seed."""
    chance = random.Random(seed)
    data = (BINARIES / chance.choice(SMALL)).read_bytes()
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        change = chance.choice((damaged, mutated))
        data = change(chance, data) if data else data
    return data


def test_damaged_binaries_have_an_outcome():
    outcomes = [outcome(make(seed)) for seed in range(rounds(150))]
    refused = [found for found in outcomes if isinstance(found, DumpError)]
    for error in refused:
        assert re.search(r"byte \d+|no module|is empty", str(error))
        # A binary has no lines.
        assert error.line is None
    # Damage to what no table says is not noticed.
    assert 40 < len(refused) < len(outcomes)


DONORS = (18, 0)
HOSTILE = {
    "many empty computations": lambda: field(1, field(1, b"f") + field(3, b"") * 150_000),
    "many empty instructions": lambda: changed(
        MIXED.read_bytes(), [MODULE, (3, 0)], lambda c: c + field(2, b"") * 150_000
    ),
    "many module numbers": lambda: changed(
        MIXED.read_bytes(), [MODULE], lambda m: m + field(5, 1) * 150_000
    ),
    "a long list": lambda: changed(
        MIXED.read_bytes(), [MODULE, (3, 0), (2, 0)], lambda i: i + field(36, b"\1" * 1_000_000)
    ),
    "many donors": lambda: changed(
        MIXED.read_bytes(), [MODULE, DONORS], lambda _: field(1, b"") * 150_000
    ),
    "many unknown fields": lambda: changed(
        MIXED.read_bytes(), [MODULE, (3, 0), (2, 0)], lambda i: i + field(99, 1) * 100_000
    ),
    "nested tuples": lambda: changed(
        MIXED.read_bytes(), [MODULE, (3, 0), (2, 0), (3, 0)], lambda _: _nested(99, 10_000)
    ),
    "maps within maps": lambda: changed(
        MIXED.read_bytes(), [MODULE, SCHEDULE], lambda s: s + b"\xa2\x04\xff\xff\x0f" * 200_000
    ),
}


def _nested(depth, width):
    shape = field(2, 13) + field(4, field(2, 11)) * width
    for _ in range(depth):
        shape = field(2, 13) + field(4, shape)
    return shape


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_binary_costs_little(name):
    data = HOSTILE[name]()
    tracemalloc.start()
    begin = time.process_time()
    try:
        outcome(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100 * len(data) + 20 * 2**20
    assert time.process_time() - begin < 30
