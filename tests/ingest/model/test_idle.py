"""When values are accessed, and for how long buffers are idle."""

import pytest

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.idle import Idle, find_accesses, longest_idle
from memhouse.xla.liveness import analyse
from memhouse.xla.program import NONE

LOOP = """\
HloModule loop, is_scheduled=true

%body (b: (s32[], f32[8])) -> (s32[], f32[8]) {
  %b = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %same = f32[8]{0} get-tuple-element(%b), index=1
  %twice = f32[8]{0} add(%same, %same)
  %half = f32[8]{0} negate(%twice)
  ROOT %again = (s32[], f32[8]{0}) tuple(%i, %half)
}

%condition (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  ROOT %less = pred[] compare(%j, %j), direction=LT
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %first = (s32[], f32[8]{0}) tuple(%zero, %p)
  %loop = (s32[], f32[8]{0}) while(%first), condition=%condition, body=%body
  %result = f32[8]{0} get-tuple-element(%loop), index=1
  ROOT %sum = f32[8]{0} add(%result, %result)
}
"""
# The times: %p 0, %zero 1, %first 2, %c 3, %j 4, %less 5, %b 6, …, %twice 9, %half 10, %again 11,
# %loop 12, %result 13, %sum 14.


def test_a_loop_accesses_what_it_carries_in_all_of_its_body():
    program = read_hlo_text(split_lines(LOOP.encode()))
    analysis = analyse(program)
    accesses = find_accesses(analysis)
    flow = analysis.flow
    intervals = {
        (program.names[flow.row[value]], flow.slots.index(slot)): sorted(accesses.intervals[value])
        for value, slot in enumerate(flow.defined_at)
    }
    # A value of one iteration is accessed when it is defined and read.
    assert intervals["twice", ()] == [(9, 9), (10, 10)]
    # The body reads the carried value at 9; it is carried over the whole body.
    assert (6, 11) in intervals["b", (1,)]
    # The counter comes from outside: the condition compares it in each iteration.
    assert intervals["zero", ()] == [(1, 1), (3, 5), (3, 5)]
    # The while itself reads nothing; the sum reads the result of the loop.
    assert intervals["p", ()] == [(0, 0)]
    by_name = {program.names[flow.row[v]]: accesses.last_use[v] for v in range(len(flow))}
    assert (by_name["twice"], by_name["p"], by_name["sum"]) == (10, NONE, NONE)


@pytest.mark.parametrize(
    ("intervals", "last", "peak_time", "expected"),
    [
        # Between two accesses, or between the last one and the end.
        ([(0, 0), (7, 7)], 9, 5, Idle(0, 7, 7)),
        ([(0, 0), (3, 3)], 9, 5, Idle(3, 9, 6)),
        # The first of equally long times; the peak is in the second one.
        ([(0, 0), (4, 4)], 8, 6, Idle(0, 4, 4)),
        # An access that lasts for a whole loop covers the shorter ones within.
        ([(0, 9), (2, 2), (12, 12)], 12, 3, Idle(9, 12, 0)),
        # Accessed at the peak, or no peak.
        ([(0, 0), (5, 5)], 6, 5, Idle(0, 5, 0)),
        ([(0, 0), (5, 5)], 6, NONE, Idle(0, 5, 0)),
        # Never idle, and never accessed.
        ([(4, 4)], 4, 4, Idle(4, 4, 0)),
        ([], 4, 2, Idle(4, 4, 0)),
    ],
)
def test_the_longest_idle_time(intervals, last, peak_time, expected):
    assert longest_idle(intervals, last, peak_time) == expected
