"""Damaged `.hlo.pb`: an outcome each, in bounded time and memory, and no crash."""

import random
import tracemalloc

import pytest

from memhouse.ingest.readers.hlo_proto import read_hlo_proto
from memhouse.ingest.readers.proto_identity import identify_hlo_proto
from memhouse.ingest.sources.program import Key
from memhouse.xla.errors import DumpError
from memhouse.xla.parts import Parts
from tests.ingest.readers.test_hlo_proto import BINARIES, MIXED, MODULE, SAMPLES, SCHEDULE
from tests.support.joined import joined
from tests.support.protos import changed, damaged, field, mutated
from tests.support.rounds import rounds

SMALL = [file for file in SAMPLES if not file.startswith("gpu")]


def outcome(data):
    """The module that a binary gives; the error if it is refused."""
    try:
        identify_hlo_proto(data)
        program, assignment = read_hlo_proto(data)
    except DumpError as error:
        return error
    return joined(Parts(assignment, program=program, is_binary=True), Key(".", "f", platform="tpu"))


def make(seed):
    """A damaged copy of a real binary, made again by its seed."""
    chance = random.Random(seed)
    data = (BINARIES / chance.choice(SMALL)).read_bytes()
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        change = chance.choice((damaged, mutated))
        data = change(chance, data) if data else data
    return data


def test_damaged_binaries_have_an_outcome():
    outcomes = [outcome(make(seed)) for seed in range(rounds(60))]
    refused = [found for found in outcomes if isinstance(found, DumpError)]
    # A binary has no lines.
    assert {error.line for error in refused} == {None}
    # Damage to what no table says is not noticed.
    assert 16 < len(refused) < len(outcomes)


DONORS = (18, 0)


def _nested(depth, width):
    shape = field(2, 13) + field(4, field(2, 11)) * width
    for _ in range(depth):
        shape = field(2, 13) + field(4, shape)
    return shape


# Of each: the message of jit_mixed that is changed, and how.
FIRST = [MODULE, (3, 0), (2, 0)]
HOSTILE = {
    "many empty instructions": (FIRST[:2], lambda c: c + field(2, b"") * 50_000),
    "many module numbers": ([MODULE], lambda m: m + field(5, 1) * 50_000),
    "a long list": (FIRST, lambda i: i + field(36, b"\1" * 300_000)),
    "many donors": ([MODULE, DONORS], lambda _: field(1, b"") * 50_000),
    "many unknown fields": (FIRST, lambda i: i + field(99, 1) * 50_000),
    "nested tuples": ([*FIRST, (3, 0)], lambda _: _nested(99, 5_000)),
    "maps within maps": ([MODULE, SCHEDULE], lambda s: s + b"\xa2\x04\xff\xff\x0f" * 50_000),
}


@pytest.mark.slow
def test_a_hostile_binary_costs_little():
    """Each once took as long as its square, or much memory."""
    made = {name: changed(MIXED.read_bytes(), *change) for name, change in HOSTILE.items()}
    made["many empty computations"] = field(1, field(1, b"f") + field(3, b"") * 50_000)
    failures = []
    for name, data in made.items():
        tracemalloc.start()
        try:
            outcome(data)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        if most >= 100 * len(data) + 20 * 2**20:
            failures.append((name, most, len(data)))
    assert failures == []
