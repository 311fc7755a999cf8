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


def test_a_parameter_within_a_tuple():
    found = read_text(
        HEADER + "allocation 3: size 16, color 1, parameter 2, shape |(f32[4], s32[])| "
        "at ShapeIndex {1,0}, maybe-live-out:\n"
    ).allocations[0]
    assert (found.memory_space, found.parameter_number) == (1, 2)
    assert (found.parameter_shape_index, found.shape) == ("{1,0}", "(f32[4], s32[])")


def test_values_listed_again_for_another_space_are_left_out():
    found = read_text(
        HEADER
        + ALLOCATION
        + VALUE
        + " reused by buffers of a different color:\n"
        + "  value: <2 copy @1> (size=4,offset=4): f32[]\n"
    )
    assert [value.value_id for value in found.values] == [1]


def test_newer_attributes_and_types_are_passed_over_and_named():
    newer = ALLOCATION.replace("size 8,", "size 8, sparse, rank 3,")
    value = VALUE.replace("offset=0", "offset=0,tier=2").replace("f32[]", "f3[]")
    found = read_text(HEADER + ALLOCATION + newer.replace("0:", "1:") + VALUE + value)
    assert [allocation.is_temp for allocation in found.allocations] == [True, True]
    assert [value.size_bytes for value in found.values] == [4, 4]
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
