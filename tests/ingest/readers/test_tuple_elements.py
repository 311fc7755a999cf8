"""`%x#1` in HLO text: element 1 of the tuple x, whose instruction XLA leaves out."""

import re

import pytest

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_complete_lines
from memhouse.xla.program import NONE, NOT_READ

NESTED = """\
HloModule m, is_scheduled=true

ENTRY %main (p: (f32[2], (s32[], f32[3]))) -> f32[3] {
  %p = (f32[2]{0}, (s32[], f32[3]{0:T(128)})) parameter(0)
  %first = f32[2]{0} negate(%p#0), metadata={op_name="p#7, index"}
  %second = f32[3]{0:T(128)} negate(%p#1#1)
  ROOT %add = f32[3]{0:T(128)} add(%second, %p#1#1)
}
"""


def read(text):
    return read_hlo_text(split_complete_lines(text.encode()))


def test_each_element_is_an_instruction_before_its_first_use():
    program = read(NESTED)
    assert list(zip(program.names, program.opcode, program.shape, strict=True)) == [
        ("p", "parameter", "(f32[2]{0}, (s32[], f32[3]{0:T(128)}))"),
        ("p#0", "get-tuple-element", "f32[2]{0}"),
        ("first", "negate", "f32[2]{0}"),
        ("p#1", "get-tuple-element", "(s32[], f32[3]{0:T(128)})"),
        ("p#1#1", "get-tuple-element", "f32[3]{0:T(128)}"),
        ("second", "negate", "f32[3]{0:T(128)}"),
        ("add", "add", "f32[3]{0:T(128)}"),
    ]
    assert program.lines == [4, 5, 5, 6, 6, 6, 7]
    assert program.tuple_index == [NONE, 0, NONE, 1, 1, NONE, NONE]
    assert program.operands == [(), (0,), (1,), (0,), (3,), (4,), (5, 4)]


@pytest.mark.parametrize(
    ("wrong", "of", "has"),
    [("p#2", "p", 2), ("p#0#0", "p#0", 0), (f"p#{'9' * 5000}", "p", 2), ("p#1#x", "p#1", 2)],
    ids=["2", "within an array", "large", "no number"],
)
def test_an_element_that_its_tuple_lacks_costs_its_user(wrong, of, has):
    (unread,) = read(NESTED.replace("negate(%p#0)", f"negate(%{wrong})")).unread
    assert unread.line == 5
    assert re.search(rf"\b{wrong}\b.*\b{of}\b.*\b{has}\b", unread.description)


def test_an_element_of_nothing_is_an_operand_that_is_not_defined():
    program = read(NESTED.replace("negate(%p#0)", "negate(%q#0)"))
    assert [unread.line for unread in program.unread] == [5]
    assert (program.opcode[1], program.operands[1]) == (NOT_READ, ())
