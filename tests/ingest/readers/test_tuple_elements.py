"""`%x#1` in HLO text: element 1 of the tuple x, whose instruction XLA leaves out."""

import re

import pytest

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_complete_lines
from memhouse.xla.columns.program import number_program

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
    hlo = read(NESTED)
    assert hlo.instructions.select(["instruction", "opcode", "shape"]).to_pylist() == [
        {"instruction": name, "opcode": opcode, "shape": shape}
        for name, opcode, shape in (
            ("p", "parameter", "(f32[2]{0}, (s32[], f32[3]{0:T(128)}))"),
            ("p#0", "get-tuple-element", "f32[2]{0}"),
            ("first", "negate", "f32[2]{0}"),
            ("p#1", "get-tuple-element", "(s32[], f32[3]{0:T(128)})"),
            ("p#1#1", "get-tuple-element", "f32[3]{0:T(128)}"),
            ("second", "negate", "f32[3]{0:T(128)}"),
            ("add", "add", "f32[3]{0:T(128)}"),
        )
    ]
    assert hlo.attributes().lines.to_pylist() == [4, 5, 5, 6, 6, 6, 7]
    assert hlo.instructions["tuple_index"].to_pylist() == [None, 0, None, 1, 1, None, None]
    operands = zip(
        *hlo.operands.select(["instruction", "operand"]).to_pydict().values(), strict=True
    )
    assert list(operands) == [
        ("p#0", "p"),
        ("first", "p#0"),
        ("p#1", "p"),
        ("p#1#1", "p#1"),
        ("second", "p#1#1"),
        ("add", "second"),
        ("add", "p#1#1"),
    ]


@pytest.mark.parametrize(
    ("wrong", "of", "has"),
    [("p#2", "p", 2), ("p#0#0", "p#0", 0), (f"p#{'9' * 5000}", "p", 2), ("p#1#x", "p#1", 2)],
    ids=["2", "within an array", "large", "no number"],
)
def test_an_element_that_its_tuple_lacks_costs_its_user(wrong, of, has):
    (unread,) = read(NESTED.replace("negate(%p#0)", f"negate(%{wrong})")).unread
    assert unread.line == 5
    assert re.search(rf"\b{wrong}\b.*\b{of}\b.*\b{has}\b", unread.what)


def test_an_element_of_nothing_is_an_operand_that_is_not_defined():
    unread = number_program(read(NESTED.replace("negate(%p#0)", "negate(%q#0)"))).unread
    assert unread is not None
    assert unread.line == 5
