"""HloLiveRange: schedule, lives and XLA's own peak, against figures read off the dumps."""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.live_range import read_live_ranges
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
    return read_live_ranges(section(pattern, "live-range"))


def read_text(text):
    return read_live_ranges(split_lines(text.encode()))


def test_a_peak_that_xla_could_not_tell():
    start, _, _ = TEXT.partition("  Live ranges at")
    found = read_text(
        start + "  Peak memory could not be determined due to unbounded dynamic shape.\n"
    )
    assert found.peak_time is None
    assert len(found.peak) == 0
    assert len(found.ranges) == 2


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
