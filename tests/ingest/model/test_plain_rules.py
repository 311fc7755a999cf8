"""The plain rules against XLA's own answers, and on programs made to show one rule each."""

import pytest
from hypothesis import HealthCheck, given, settings

from ...support.dumps import DUMPS, copy_dump
from . import against_dumps, plain_rules, plain_text
from .random_programs import scheduled_hlo

FOLDERS = sorted(
    {path.parent.relative_to(DUMPS) for path in DUMPS.rglob("*after_optimizations.txt*")}
)
# JAX 0.4.23 does not say that its text is scheduled.
UNSCHEDULED = {"cpu/jax-0.4.23"}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_dumps(folder, tmp_path):
    copy_dump(f"{folder}/*", tmp_path / "dump")
    compared = 0
    for path in (tmp_path / "dump").rglob("*after_optimizations.txt"):
        tally = against_dumps.Tally()
        said = against_dumps.compare(path, tally)
        assert said in ("", "not compared", "the module is not scheduled")
        assert tally.notes == []
        compared += not said
    assert (compared == 0) == (folder.as_posix() in UNSCHEDULED)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_random_programs_have_one_answer(text):
    answer = plain_rules.liveness(text)
    held = [position for positions in answer.positions.values() for position in positions]
    assert len(held) == len(set(held))
    assert answer.phis <= answer.values
    assert sorted(v for members in answer.alias_sets for v in members) == sorted(answer.values)
    assert len(set(answer.schedule)) == len(answer.schedule)
    ends = len(answer.schedule)
    assert all(0 <= start <= end <= ends for start, end in answer.live_ranges.values())


def module(*computations):
    return "\n\n".join(["HloModule m, is_scheduled=true", *computations])


ADD = """ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} negate(%a)
  ROOT %c = f32[8]{0} add(%b, %b)
  %d = f32[8]{0} negate(%a)
}"""


def test_what_nobody_reads_after_the_root():
    ranges = plain_rules.liveness(module(ADD)).live_ranges
    assert ranges == {("a", ()): (0, 4), ("b", ()): (1, 2), ("c", ()): (2, 4), ("d", ()): (3, 3)}


SWAP = (
    """%go (p: (f32[8], f32[8])) -> pred[] {
  %p = (f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}""",
    """%turn (q: (f32[8], f32[8])) -> (f32[8], f32[8]) {
  %q = (f32[8]{0}, f32[8]{0}) parameter(0)
  %x = f32[8]{0} get-tuple-element(%q), index=0
  %y = f32[8]{0} get-tuple-element(%q), index=1
  ROOT %swapped = (f32[8]{0}, f32[8]{0}) tuple(%y, %x)
}""",
    """ENTRY %main (a: f32[8]) -> (f32[8], f32[8]) {
  %a = f32[8]{0} parameter(0)
  %twice = (f32[8]{0}, f32[8]{0}) tuple(%a, %a)
  ROOT %loop = (f32[8]{0}, f32[8]{0}) while(%twice), condition=%go, body=%turn
}""",
)


def test_phis_that_one_value_alone_reaches_are_that_value():
    """No phi here has one input, but nothing other than `a` goes round."""
    answer = plain_rules.liveness(module(*SWAP))
    assert ("loop", (1,)) in answer.positions["a", ()]
    assert {index for _, index in answer.phis} == {()}


def test_a_root_uses_what_it_gives_back():
    uses = plain_rules.liveness(module(*SWAP)).uses["a", ()]
    assert ("swapped", 0, ()) in uses
    assert ("twice", 0, ()) not in uses


ASYNC_UPDATE = (
    """%writing (p: f32[8], u: f32[4], i: s32[]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %u = f32[4]{0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %written = f32[8]{0} dynamic-update-slice(%p, %u, %i)
}""",
    """ENTRY %main (a: f32[8], b: f32[4], c: s32[]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %c = s32[] parameter(2)
  %d = f32[8]{0} negate(%a)
  %start = ((f32[8]{0}, f32[4]{0}, s32[]), f32[8]{0}, u32[]) async-start(%d, %b, %c), calls=%writing
  ROOT %done = f32[8]{0} async-done(%start)
}""",
)


def test_an_async_update_holds_its_operand_until_it_is_done():
    positions = plain_rules.liveness(module(*ASYNC_UPDATE)).positions
    assert ("start", (1,)) in positions["d", ()]
    assert positions["written", ()] == {("written", ()), ("done", ())}


def test_an_unscheduled_module_is_refused():
    with pytest.raises(plain_text.NoRuleError, match="not scheduled"):
        plain_text.read_module("HloModule m\n\n" + ADD)
