"""FLOPs of dots and convolutions, and how often they run."""

import random
from itertools import product
from time import process_time

import pytest

from memhouse.xla.work import measure_work, window_pairs

from ...support.hlo import program_of
from .texts import LOOP

ENTRY = """HloModule one, is_scheduled=true

ENTRY %main (a: f32[1], b: f32[1]) -> f32[1] {{
  %a = {a} parameter(0)
  %b = {b} parameter(1)
  ROOT %r = {r}(%a, %b), {attributes}
}}
"""


def flops(a, b, r, attributes):
    """The FLOPs of one instruction with two operands; None if it has none."""
    program = program_of(ENTRY.format(a=a, b=b, r=r, attributes=attributes))
    return measure_work(program).flops.get(program.row_of["r"])


def test_a_dot_is_a_sum_for_each_element():
    lhs, rhs = "f32[3,4,16]{2,1,0}", "f32[3,16,8]{2,1,0}"
    attributes = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}"
    attributes += ", rhs_contracting_dims={1}"
    assert flops(lhs, rhs, "f32[3,4,8]{2,1,0} dot", attributes) == 2 * 3 * 4 * 8 * 16


def test_a_batched_dot_of_32768_is_a_convolution_on_tpu():
    """The window meets one element for each position of the batch; it is no matrix in memory."""
    batch = 32_768
    lhs, rhs = f"bf16[{batch},4,16]{{2,1,0}}", f"bf16[{batch},16,8]{{2,1,0}}"
    window = f"window={{size={batch} stride={batch - 1} lhs_dilate={batch}}}"
    result = f"bf16[{batch},4,8]{{2,1,0}} convolution"
    start = process_time()
    attributes = f"{window}, dim_labels=0bf_0io->0bf"
    assert flops(lhs, rhs, result, attributes) == 2 * batch * 4 * 8 * 16
    assert process_time() - start < 2


@pytest.mark.parametrize("seed", range(5))
def test_window_positions_that_meet_an_element_are_counted(seed):
    chosen = random.Random(seed)
    for _ in range(300):
        size, window, result = (chosen.randint(0, 7) for _ in range(3))
        stride, lhs_dilation, rhs_dilation = (chosen.randint(1, 6) for _ in range(3))
        low = chosen.randint(-4, 6)
        elements = set(range(0, size * lhs_dilation, lhs_dilation))
        offsets = [
            r * stride + w * rhs_dilation - low for r, w in product(range(result), range(window))
        ]
        assert sum(offset in elements for offset in offsets) == window_pairs(
            size,
            window,
            result,
            stride=stride,
            low=low,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
        )


def test_padding_is_no_work():
    image, kernel = "f32[1,4,4,2]{3,2,1,0}", "f32[3,3,2,5]{3,2,1,0}"
    attributes = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    # Along a side of 4 the window of 3 meets 2, 3, 3 and 2 elements.
    result = "f32[1,4,4,5]{3,2,1,0} convolution"
    assert flops(image, kernel, result, attributes) == 2 * 5 * 2 * 10**2


def test_dots_and_convolutions_of_libraries_count():
    square = "f32[64,64]{1,0}"
    result = "(f32[64,64]{1,0}, s8[1024]{0}) custom-call"
    gemm = flops(square, square, result, 'custom_call_target="__cublas$gemm"')
    assert gemm == 2 * 64**3
    image, kernel = "f32[1,4,4,2]{3,2,1,0}", "f32[3,3,2,5]{3,2,1,0}"
    result = "(f32[1,4,4,5]{3,2,1,0}, u8[0]{0}) custom-call"
    attributes = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    attributes += ', custom_call_target="__cudnn$convForward"'
    # The first operand is the input, and the result's first element the output.
    assert flops(image, kernel, result, attributes) == 2 * 5 * 2 * 10**2


@pytest.mark.parametrize("window", ["{size=3 stride=0}", "{size=3 pad=x}", "{size=3 stride=a}"])
def test_corrupt_attributes_cost_the_flops_of_one_instruction(window):
    attributes = f"window={window}, dim_labels=b0f_0io->b0f"
    result = "f32[1,4,5]{2,1,0} convolution"
    assert flops("f32[1,4,2]{2,1,0}", "f32[3,2,5]{2,1,0}", result, attributes) is None


DOT = "  %same = f32[8]{0} get-tuple-element(%b), index=1\n"
WITH_DOT = LOOP.replace(
    DOT,
    "  %old = f32[8]{0} get-tuple-element(%b), index=1\n"
    "  %square = f32[8,8]{1,0} broadcast(%old), dimensions={0}\n"
    "  %same = f32[8]{0} dot(%old, %square), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n",
)


def test_the_work_of_a_loop_is_that_of_all_iterations():
    program = program_of(WITH_DOT)
    work = measure_work(program)
    executions = dict(zip(program.computation_names, work.executions, strict=True))
    assert work.trip_counts == {program.row_of["loop"]: 10}
    assert executions == {"body": 10, "condition": 10, "main": 1}
    assert (work.total_flops, work.unknown_loops) == (10 * 2 * 8 * 8, 0)


# The limit is an element of the loop's state that the body passes on.
CARRIED = """\
HloModule carried, is_scheduled=true

%body (b: (s32[], s32[])) -> (s32[], s32[]) {
  %b = (s32[], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %n = s32[] get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %again = (s32[], s32[]) tuple(%next, %n)
}

%condition (c: (s32[], s32[])) -> pred[] {
  %c = (s32[], s32[]) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %m = s32[] get-tuple-element(%c), index=1
  ROOT %less = pred[] compare(%j, %m), direction=LT
}

ENTRY %main () -> (s32[], s32[]) {
  %zero = s32[] constant(0)
  %seven = s32[] constant(7)
  %first = (s32[], s32[]) tuple(%zero, %seven)
  ROOT %loop = (s32[], s32[]) while(%first), condition=%condition, body=%body
}
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"), [("", "", [7]), ("(%next, %n)", "(%next, %i)", [])]
)
def test_a_limit_may_be_carried_by_the_loop(old, new, counts):
    work = measure_work(program_of(CARRIED.replace(old, new)))
    assert list(work.trip_counts.values()) == counts


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("constant(10)", "constant(11)", 11),
        ("%zero = s32[] constant(0)", "%zero = s32[] constant(7)", 3),
        ("%one = s32[] constant(1)", "%one = s32[] constant(3)", 4),
        ("direction=LT", "direction=NE", None),
        ("%one = s32[] constant(1)", "%one = s32[] constant(-1)", None),
        ("add(%i, %one)", "multiply(%i, %one)", None),
    ],
)
def test_a_loop_runs_as_often_as_it_counts(old, new, count):
    assert old in WITH_DOT
    work = measure_work(program_of(WITH_DOT.replace(old, new)))
    assert list(work.trip_counts.values()) == ([] if count is None else [count])
    assert work.unknown_loops == (count is None)
    assert work.total_flops == 2 * 8 * 8 * (1 if count is None else count)
