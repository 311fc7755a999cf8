"""HloLiveRange: schedule, lives and XLA's own peak, against figures read off the dumps."""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.live_range import read_live_range
from memhouse.xla.errors import DumpError

from ...support.dumps import section

TEXT = """\
HloLiveRange (max 2):
  InstructionSequence:
    0:x
    1:add
  BufferLiveRange:
    x{}:0-2
    add{}:1-2
  Live ranges at 1 (peak):
    x: 4 bytes
    add: 4 bytes
"""


def read(pattern):
    return read_live_range(section(pattern, "live-range"))


def read_text(text):
    return read_live_range(split_lines(text.encode()))


def life(found, instruction, shape_index="{}"):
    """When a value lives."""
    ((start, end),) = [
        (row["start_time"], row["end_time"])
        for row in found.ranges.to_pylist()
        if (row["instruction"], row["shape_index"]) == (instruction, shape_index)
    ]
    return start, end


def test_seed_000():
    found = read("seeds/000*")
    assert found.schedule_length == 17
    assert found.schedule["instruction"].to_pylist()[11:13] == ["copy-done.1", "fusion.5"]
    assert found.schedule["schedule_time"].to_pylist() == list(range(17))
    assert len(found.ranges) == 18
    assert life(found, "copy-start", "{0}") == (1, 12)
    assert life(found, "Arg_1.2") == (0, 17)


def test_the_peak_lists_of_old_and_new_dumps():
    """The old one has no index and no order; below the new one stands a tree."""
    found = read("seeds/000*")
    assert found.peak_time == 14
    assert found.peak["size_bytes"].to_pylist() == [81920, 335544320, 336199680, 336199680]
    assert set(found.peak["shape_index"].to_pylist()) == {None}
    found = read("tpu/llama-v5e/*-live-range.txt*")
    assert (found.schedule_length, found.peak_time) == (959, 438)
    assert found.peak.to_pylist()[1] == (
        {"rank": 1, "instruction": "fusion.507", "shape_index": "{1}", "size_bytes": 67108864}
    )
    found = read("cpu/jax-0.10.2/module_0018*-live-range.txt")
    assert (len(found.peak), sum(found.peak["size_bytes"].to_pylist())) == (9, 82716)


def test_a_peak_that_xla_could_not_tell():
    start, _, _ = TEXT.partition("  Live ranges at")
    found = read_text(
        start + "  Peak memory could not be determined due to unbounded dynamic shape.\n"
    )
    assert found.peak_time is None
    assert len(found.peak) == 0
    assert len(found.ranges) == 2


def test_a_program_without_instructions():
    found = read_text(
        "HloLiveRange (max 0):\n  InstructionSequence:\n  BufferLiveRange:\n"
        "  Live ranges at 0 (peak):\n"
    )
    assert (found.schedule_length, len(found.ranges), len(found.peak)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("(max 2):", "(max 2)", 1),
        ("(max 2):", "(max 4294967296):", 1),
        ("(max 2):", "(max 3):", 5),
        ("    1:add\n", "", 4),
        ("1:add", "2:add", 4),
        ("1:add", "add", 4),
        ("add{}:1-2", "add:1-2", 7),
        ("add{}:1-2", "add{}:2-1", 7),
        ("add{}:1-2", "add{}:1-99999999999", 7),
        ("  BufferLiveRange:\n", "", 9),
        ("  InstructionSequence:\n", "", 9),
        ("at 1 (peak):", "at 1:", 8),
        ("    x: 4 bytes\n", "    x: 4\n", 9),
        (TEXT[TEXT.index("  Live ") :], "", 7),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line):
    assert old in TEXT
    with pytest.raises(DumpError) as error:
        read_text(TEXT.replace(old, new))
    assert error.value.line == line


def test_a_text_cut_short_is_refused():
    for length in range(22, len(TEXT) - 34, 7):
        with pytest.raises(DumpError) as error:
            read_text(TEXT[:length])
        assert error.value.line is not None
