"""BufferAssignment: allocations and values, against figures read off the dumps by eye."""

import pytest

from memhouse.ingest.readers.buffer_assignment import read_buffer_assignment
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.errors import DumpError

from ...support.dumps import section

HEADER = "BufferAssignment:\n"
ALLOCATION = "allocation 0: size 8, preallocated-temp:\n"
VALUE = " value: <1 add @0> (size=4,offset=0): f32[]\n"


def read(pattern):
    return read_buffer_assignment(section(pattern, "buffer-assignment"))


def read_text(text):
    return read_buffer_assignment(split_lines(text.encode()))


def row(table, **where):
    """The table's only row that has these values."""
    (found,) = [r for r in table.to_pylist() if where.items() <= r.items()]
    return found


def test_seed_000_allocations():
    allocations = read("seeds/000*").allocations
    assert allocations["allocation_index"].to_pylist() == list(range(8))
    assert allocations["size_bytes"].to_pylist() == [
        512, 335790080, 335544320, 81920, 66560, 148480, 677019648, 8,
    ]  # fmt: skip
    assert allocations["memory_space"].to_pylist() == [0, 0, 0, 0, 0, 1, 0, 2]
    assert allocations["is_constant"].to_pylist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert allocations["is_temp"].to_pylist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert allocations["maybe_live_out"].to_pylist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert allocations["parameter_number"].to_pylist() == [None, None, 0, 1, *[None] * 4]
    assert not any(allocations["is_thread_local"].to_pylist())
    assert set(allocations["address"].to_pylist()) == {None}


def test_an_argument_that_is_an_output_too_with_addresses_of_2020():
    allocations = read("seeds/004*").allocations
    both = row(allocations, parameter_number=1)
    assert (both["maybe_live_out"], both["is_parameter"], both["is_output"]) == (True, True, False)
    assert (both["shape"], both["parameter_shape_index"]) == ("f32[32,32]", "{}")
    assert allocations["address"][0].as_py() == 0x15C664B0
    assert sum(allocations["is_thread_local"].to_pylist()) == 6


def test_a_value_of_an_array():
    assert row(read("seeds/000*").values, value_id=43) == {
        "value_id": 43,
        "instruction": "copy.4",
        "shape_index": "{}",
        "is_phi": False,
        "memory_space": 0,
        "allocation_index": 1,
        "offset_bytes": 0,
        "size_bytes": 335790080,
        "logical_bytes": 4 * 4099 * 5120 * 4,
        "shape": "f32[4,4099,5120]{2,0,1:T(4,128)}",
        "element_type": "f32",
    }


def test_a_value_of_a_tuple_and_its_elements():
    values = read("seeds/000*").values
    whole = row(values, instruction="copy-start.1", shape_index="{}")
    assert whole["element_type"] is None
    assert (whole["size_bytes"], whole["logical_bytes"]) == (32, 32)
    assert whole["shape"].startswith("(pred[32,513]{0,1:T(8,128)(4,1)S(1)}, pred[32,513]")
    first = row(values, instruction="copy-start.1", shape_index="{0}")
    assert (first["allocation_index"], first["memory_space"]) == (5, 1)
    assert (first["offset_bytes"], first["size_bytes"]) == (81920, 66560)
    assert first["logical_bytes"] == 32 * 513


def test_phi_values():
    values = read("tpu/llama-v5e/*-buffer-assignment.txt*").values
    phi = row(values, value_id=3007)
    assert (phi["instruction"], phi["shape_index"], phi["is_phi"]) == ("wide.param.3", "{5}", True)


def test_a_parameter_within_a_tuple():
    found = read_text(
        HEADER + "allocation 3: size 16, color 1, parameter 2, shape |(f32[4], s32[])| "
        "at ShapeIndex {1,0}, maybe-live-out:\n"
    ).allocations.to_pylist()[0]
    assert (found["memory_space"], found["parameter_number"]) == (1, 2)
    assert (found["parameter_shape_index"], found["shape"]) == ("{1,0}", "(f32[4], s32[])")


def test_an_allocation_without_values():
    assert len(read_text(HEADER + ALLOCATION).values) == 0


def test_values_listed_again_for_another_space_are_left_out():
    found = read_text(
        HEADER
        + ALLOCATION
        + VALUE
        + " reused by buffers of a different color:\n"
        + "  value: <2 copy @1> (size=4,offset=4): f32[]\n"
    )
    assert found.values["value_id"].to_pylist() == [1]


def test_newer_attributes_and_types_are_passed_over_and_named():
    newer = ALLOCATION.replace("size 8,", "size 8, sparse, rank 3,")
    value = VALUE.replace("offset=0", "offset=0,tier=2").replace("f32[]", "f3[]")
    found = read_text(HEADER + ALLOCATION + newer.replace("0:", "1:") + VALUE + value)
    assert found.allocations["is_temp"].to_pylist() == [True, True]
    assert found.values["size_bytes"].to_pylist() == [4, 4]
    said = [(line, what.split("'")[1]) for line, what in found.not_understood]
    assert sorted(said) == [(3, "sparse, rank"), (5, "f3"), (5, "tier")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Used values:\n", 1),
        (HEADER, 1),
        (HEADER + VALUE + ALLOCATION, 2),
        (HEADER + ALLOCATION + VALUE[:-9] + "\n", 3),
        (HEADER + ALLOCATION + VALUE + ALLOCATION[:20] + "\n", 4),
        (HEADER + ALLOCATION + "\nallocate 1\n", 4),
        (HEADER + ALLOCATION + VALUE + VALUE.replace("f32[]", "f32[4"), 4),
        (HEADER + ALLOCATION.replace("8", "9" * 30), 2),
        (HEADER + ALLOCATION + VALUE.replace("<1", "<4294967296"), 3),
        (HEADER + ALLOCATION.replace("0:", "0: 0x" + "f" * 16 + ","), 2),
        (HEADER + ALLOCATION.replace("size 8", "size -8"), 2),
        # What is newer may decide a figure: it is nearly a known word, or there is no known one.
        (HEADER + ALLOCATION + ALLOCATION.replace("temp", "temp, maybe-live-outs"), 3),
        (HEADER + ALLOCATION + ALLOCATION.replace("preallocated-temp", "sparse"), 3),
        (HEADER + "reused\n" + ALLOCATION, 2),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(text, line):
    with pytest.raises(DumpError) as error:
        read_text(text)
    assert error.value.line == line
