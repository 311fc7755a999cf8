"""Live ranges and the values that must share memory, worked out from HLO text."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from memhouse.xla.errors import DumpError
from memhouse.xla.program import NONE
from memhouse.xla.schedule import CONTROL_FLOW

from ...support.rounds import rounds
from .random_programs import scheduled_hlo
from .texts import ASYNC, BRANCHES, IN_PLACE, LOOP, alias_sets, analyse_text, names, ranges, uses

ROOT = Path(__file__).parents[3]


def test_a_fusion_that_updates_a_slice_of_its_operand_works_in_place():
    found = analyse_text(IN_PLACE)
    assert alias_sets(found) == {frozenset({"p{}", "once{}", "twice{}"})}
    lives = ranges(found)
    # The donated parameter ends where the fusion begins, q lives to the end.
    assert (lives["p{}"], lives["once{}"], lives["twice{}"]) == ((0, 3), (3, 4), (4, 5))
    assert lives["q{}"] == (0, 5)


def test_a_parameter_that_is_not_donated_keeps_its_place_to_the_end():
    text = IN_PLACE.replace(", input_output_alias={ {}: (0, {}, may-alias) }", "")
    lives = ranges(analyse_text(text))
    # It still must alias the fusion: the one rule lets it end there all the same.
    assert lives["p{}"] == (0, 3)
    assert lives["twice{}"] == (4, 5)


def test_a_pipelined_loop_carries_what_it_starts_to_the_next_turn():
    """As of libtpu: async-done is of an element of the loop, before and after its end."""
    started = "((f32[8]{0}), f32[4]{0}, u32[])"
    sliced = ASYNC[ASYNC.index("%sliced") : ASYNC.index("ENTRY")]
    text = LOOP.replace("(s32[], f32[8]{0})", f"(s32[], f32[8]{{0}}, {started})")
    text = text.replace("%body (", sliced + sliced.replace("%", "%next_") + "%body (")
    text = text.replace(
        "  ROOT %again = ",
        f"  %carried = {started} get-tuple-element(%b), index=2\n"
        "  %done = f32[4]{0} async-done(%carried)\n"
        "  %used = f32[4]{0} negate(%done)\n"
        f"  %restart = {started} async-start(%same), calls=%next_sliced\n  ROOT %again = ",
    ).replace("tuple(%next, %same)", "tuple(%next, %same, %restart)")
    text = text.replace(
        "  %first = ", f"  %start = {started} async-start(%p), calls=%sliced\n  %first = "
    ).replace("tuple(%zero, %p)", "tuple(%zero, %p, %start)")
    text = text.replace("ROOT %result = f32[8]{0} get-tuple-element(%loop), index=1", "").replace(
        "-> f32[8] {\n  %p", "-> f32[4] {\n  %p"
    )
    text = text.rstrip("}\n ") + (
        f"\n  %last = {started} get-tuple-element(%loop), index=2\n"
        "  ROOT %result = f32[4]{0} async-done(%last)\n}\n"
    )
    found = analyse_text(text)
    together = {"slice{}", "c{2,1}", "b{2,1}", "next_slice{}", "loop{2,1}"}
    assert frozenset(together) in alias_sets(found)
    lives = ranges(found)
    # What is done has the memory of what was started, until it is used.
    assert (lives["b{2,1}"], lives["b{2,2}"], lives["used{}"]) == ((10, 17), (10, 16), (17, 17))
    assert lives["next_slice{}"] == (19, 22)


def test_nested_fusions_beyond_all_reason_are_refused():
    fused = [
        f"%f{depth} (p{depth}: f32[8]) -> f32[8] {{\n"
        f"  %p{depth} = f32[8]{{0}} parameter(0)\n"
        f"  ROOT %r{depth} = f32[8]{{0}} fusion(%p{depth}), kind=kLoop, calls=%f{depth - 1}\n}}\n"
        for depth in range(1, 1200)
    ]
    innermost = """\
%f0 (p0: f32[8], i0: s32[]) -> f32[8] {
  %p0 = f32[8]{0} parameter(0)
  %i0 = s32[] constant(0)
  ROOT %r0 = f32[8]{0} dynamic-update-slice(%p0, %p0, %i0)
}
"""
    entry = """\
ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %out = f32[8]{0} fusion(%p), kind=kLoop, calls=%f1199
}
"""
    header = "HloModule deep, is_scheduled=true\n\n"
    with pytest.raises(DumpError):
        analyse_text("\n".join([header + innermost, *fused, entry]))


def test_output_to_operand_aliasing_names_in_place_pairs():
    text = """\
HloModule call, is_scheduled=true

ENTRY %main (p: f32[8]) -> (f32[8], f32[2]) {
  %p = f32[8]{0} parameter(0)
  %n = f32[8]{0} negate(%p)
  ROOT %call = (f32[8]{0}, f32[2]{0}) custom-call(%n), custom_call_target="f", \
output_to_operand_aliasing={{0}: (0, {})}
}
"""
    assert alias_sets(analyse_text(text)) == {frozenset({"n{}", "call{0}"})}


def test_an_element_that_both_branches_pass_on_lives_through_the_conditional():
    lives = ranges(analyse_text(BRANCHES))
    # `q` is the root of branch 1, so it must alias the result and `minus`.
    assert alias_sets(analyse_text(BRANCHES)) == {frozenset({"q{}", "minus{}", "chosen{}"})}
    assert (lives["q{}"], lives["minus{}"], lives["chosen{}"]) == ((0, 4), (4, 6), (6, 7))


@settings(max_examples=rounds(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_laws_of_random_programs(text):
    """A place holds one value; what need not share its memory lives when it is used."""
    found = analyse_text(text)
    lives, end = ranges(found), len(found.schedule)
    assert all(0 <= first <= last <= end for first, last in lives.values())
    shared = {value for members in alias_sets(found) for value in members}
    for name in set(names(found)) - shared & lives.keys():
        first, last = lives[name]
        for reader, _, _ in uses(found, name):
            row = found.program.row_of[reader]
            time = found.schedule.time[row]
            if found.program.opcode[row] not in CONTROL_FLOW and time != NONE:
                assert first <= time <= last
