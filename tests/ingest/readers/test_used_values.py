"""Used values: where values stand and are used, against figures read off the dumps."""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.used_values import read_definition_lines, read_used_values
from memhouse.xla.errors import DumpError

from ...support.dumps import section

TEXT = """\
Total bytes used: 12 (12B)

Used values:
<0 x @0>
 positions:
  x
 uses:
  add, operand 0
 from instruction: %x = f32[] parameter(0)
<1 add @0>
 positions:
  add
 uses:
 from instruction: %add = f32[] add(%x, %x)
"""


def read(pattern):
    return read_used_values(section(pattern, "buffer-assignment-values"))


def test_glued_phi_values():
    text = TEXT.replace("parameter(0)\n", "parameter(0)").replace(
        "<1 add @0>", "<1 add{0} (phi) @0>"
    )
    lines = split_lines(text.encode())
    assert [value.is_phi for value in read_used_values(lines).values] == [False, True]
    assert read_definition_lines(lines) == [
        (9, "%x = f32[] parameter(0)"),
        (13, "%add = f32[] add(%x, %x)"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Total bytes used: 12", "Total bytes: 12", 1),
        ("12 (12B)", "9" * 30, 1),
        ("Used values:\n", "", 13),
        ("<0 x @0>", "<0 x @>", 4),
        ("<1 add @0>\n", "", 10),
        (" positions:\n  x\n", "", 5),
        ("  add, operand 0", "  add, operand", 8),
        ("  add, operand 0", " add, operand 0", 8),
        ("  add, operand 0", "  add, operand 4294967296", 8),
        ("  add\n", "  add, operand 0\n", 12),
        (" from instruction: %add = f32[] add(%x, %x)\n", "", 13),
        ("f32[] parameter(0)\n", "f32[] parameter(0)\nx\n", 10),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line):
    assert old in TEXT
    with pytest.raises(DumpError) as error:
        read_used_values(split_lines(TEXT.replace(old, new).encode()))
    assert error.value.line == line
