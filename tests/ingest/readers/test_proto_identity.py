"""What a HloProto is, and where it stands in a serialized executable of TPU."""

import pytest
import zstandard

from memhouse.ingest.readers.hlo_proto import read_hlo_proto
from memhouse.ingest.readers.proto_identity import find_hlo_proto, identify_hlo_proto

from ...support.dumps import DATA
from ...support.xplanes import modules_of, part


@pytest.fixture(scope="module")
def executable():
    """Of libtpu 0.0.52, compiled ahead of time: a Riegeli file after a short header."""
    return zstandard.decompress((DATA / "jit_step.tpu_executable.zst").read_bytes())


def test_the_hlo_proto_of_a_real_executable(executable):
    found = find_hlo_proto(executable, "jit_step") or b""
    assert identify_hlo_proto(found).has_assignment
    _, assignment = read_hlo_proto(found)
    sizes = sorted(allocation.size_bytes for allocation in assignment.allocations)
    assert sizes[-3:] == [131072, 131072, 131072]


def test_another_module_is_not_found(executable):
    assert find_hlo_proto(executable, "jit_other") is None
    assert find_hlo_proto(executable, "") is None
    assert find_hlo_proto(b"", "jit_step") is None


def test_older_versions_write_it_as_a_field_of_a_record():
    content = dict(modules_of())["jit_f(6)"]
    record = part(1, b"\x00" * 99) + part(6, content) + part(7, 5)
    assert find_hlo_proto(part(4, record), "jit_f") == content


def test_a_module_alone_is_not_enough():
    content = dict(modules_of())["jit_f(6)"]
    assert find_hlo_proto(part(6, content[: len(content) // 2]), "jit_f") is None


def test_a_cut_executable_gives_the_whole_or_nothing(executable):
    whole = find_hlo_proto(executable, "jit_step")
    for end in range(0, 100_000, 9_973):
        assert find_hlo_proto(executable[:end], "jit_step") in (None, whole)
