"""Schedule, values, positions and uses, worked out from HLO text."""

import pytest

from memhouse.xla.errors import DumpError

from .texts import BRANCHES, analyse_text, names, phis, positions, schedule


def entry(*instructions: str, header: str = ", is_scheduled=true") -> str:
    """A program of these instructions, after a parameter `p: f32[8]`."""
    body = "".join(f"  {text}\n" for text in ("%p = f32[8]{0} parameter(0)", *instructions))
    return f"HloModule small{header}\n\nENTRY %main (p: f32[8]) -> f32[8] {{\n{body}}}\n"


def test_what_three_loops_hand_on_and_the_outermost_changes_is_phis_between_them():
    """As XLA 0.12 answered to this program, and to others with up to five loops."""
    pair = "(s32[], f32[8]{0})"
    text = "HloModule nested, is_scheduled=true\n\n"
    for level, (inner, changed) in enumerate((("b0", "x0"), ("loop0", "x1"), ("loop1", "next"))):
        called = f"condition=%c_{level - 1}, body=%b_{level - 1}"
        loop = f"  %{inner} = {pair} while(%b{level}), {called}" if level else ""
        text += f"""\
%c_{level} (c{level}: (s32[], f32[8])) -> pred[] {{
  %c{level} = {pair} parameter(0)
  ROOT %true{level} = pred[] constant(true)
}}

%b_{level} (b{level}: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %b{level} = {pair} parameter(0)
{loop}
  %x{level} = s32[] get-tuple-element(%{inner}), index=0
  %y{level} = f32[8]{{0}} get-tuple-element(%{inner}), index=1
{"  %next = s32[] negate(%x2)" if level == 2 else ""}
  ROOT %root{level} = {pair} tuple(%{changed}, %y{level})
}}

"""
    text += f"""\
ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %first = {pair} tuple(%zero, %p)
  %loop2 = {pair} while(%first), condition=%c_2, body=%b_2
  ROOT %result = f32[8]{{0}} get-tuple-element(%loop2), index=1
}}
"""
    found = analyse_text(text)
    assert {name for name in phis(found) if "{0}" in name} == {
        *("c1{0}", "loop1{0}"),
        *("c2{0}", "b2{0}", "loop2{0}"),
    }
    # What no loop changes is one value all the same.
    assert {"b0{1}", "loop1{1}", "result{}"} < positions(found, "p{}")


def test_a_copy_start_has_the_new_buffer_first_and_the_operand_second():
    found = analyse_text(
        entry(
            "%start = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p)",
            "ROOT %done = f32[8]{0} copy-done(%start)",
        )
    )
    assert names(found) == ["p{}", "start{}", "start{0}", "start{2}"]
    assert positions(found, "p{}") == {"p{}", "start{1}"}
    assert positions(found, "start{0}") == {"start{0}", "done{}"}


def test_a_reducer_has_values_and_no_time():
    text = entry(
        "%zero = f32[] constant(0)",
        "ROOT %sum = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%plus",
    )
    reducer = """\
%plus (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

"""
    found = analyse_text(text.replace("ENTRY", reducer + "ENTRY"))
    assert schedule(found) == ["p", "zero", "sum"]
    assert names(found) == ["x{}", "y{}", "z{}", "p{}", "zero{}", "sum{}"]


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        (
            entry("%u = f32[8]{0} async-update(%p)", "ROOT %n = f32[8]{0} negate(%u)"),
            ["async-update u"],
            5,
        ),
        (
            BRANCHES.replace("false_computation=%no", "false_computation=%yes"),
            ["yes", "chosen"],
            16,
        ),
        (
            entry("ROOT %g = f32[8]{0} get-tuple-element(%p), index=1"),
            ["parameter p"],
            4,
        ),
        (
            entry("%t = (f32[8]{0}) tuple(%p)", "ROOT %b = f32[8]{0} bitcast(%t)"),
            ["bitcast b"],
            6,
        ),
        (
            entry("%n = f32[8]{0} negate(%p)", "ROOT %n = f32[8]{0} negate(%p)"),
            [" n"],
            6,
        ),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str, said: list[str], line: int | None):
    with pytest.raises(DumpError) as caught:
        analyse_text(text)
    assert all(name in str(caught.value) for name in said)
    assert caught.value.line == line
