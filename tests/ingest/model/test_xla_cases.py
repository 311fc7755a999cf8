"""The situations of XLA's own tests, in texts of our own, with the figures that XLA expects.

The names in brackets are those of the tests in `hlo_live_range_test.cc` (range),
`hlo_dataflow_analysis_test.cc` (dataflow), `hlo_alias_analysis_test.cc` (alias) and
`buffer_assignment_test.cc` (assignment) of openxla/xla.
"""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.live_range import read_live_ranges
from memhouse.xla.columns.bridge_h import read_hlo_text
from memhouse.xla.columns.bridge_t import part_as_tables
from memhouse.xla.columns.liveness import derive
from memhouse.xla.errors import DumpError

from .texts import ASYNC, alias_sets, derived, figures, names, positions, ranges, schedule, uses

PAIR = "(f32[], f32[])"


def program(*entry: str, before: str = "", header: str = "") -> str:
    """A module whose entry computation has these instructions."""
    body = "".join(f"  {line}\n" for line in entry)
    return f"HloModule m, is_scheduled=true{header}\n\n{before}ENTRY %main {{\n{body}}}\n"


def computation(name: str, *lines: str) -> str:
    """A computation that the entry calls."""
    return f"%{name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"


def peak(text: str) -> int:
    """The peak of the main memory on a CPU."""
    return next(row["peak_bytes"] for row in figures(text, "cpu") if row["memory_space"] == 0)


def phis(text: str) -> set[str]:
    """The values that merge several values."""
    found = derived(text)
    flags = found.dataflow.is_phi.tolist()
    return {name for name, is_phi in zip(names(found), flags, strict=True) if is_phi}


SUM_OF_PRODUCT = (
    "%a = f32[4]{0} parameter(0)",
    "%x = f32[4]{0} parameter(1)",
    "%product = f32[4]{0} multiply(%a, %x)",
    "%y = f32[4]{0} parameter(2)",
)


def test_a_value_ends_with_its_last_use():
    """[range: MultiplyAdd]"""
    text = program(*SUM_OF_PRODUCT, "ROOT %sum = f32[4]{0} add(%product, %y)")
    found = ranges(derived(text))
    assert (found["product{}"], found["sum{}"], found["y{}"]) == ((2, 4), (4, 5), (0, 5))


def test_what_lives_out_lives_to_the_end_and_what_follows_the_root_only_for_its_time():
    """[range: LiveOutBuffers, InstructionScheduledAfterRoot]"""
    text = program(
        *SUM_OF_PRODUCT,
        "%sum = f32[4]{0} add(%product, %y)",
        "ROOT %both = (f32[4]{0}, f32[4]{0}) tuple(%product, %sum)",
        "%late = f32[4]{0} add(%product, %y)",
    )
    found = ranges(derived(text))
    assert (found["a{}"], found["product{}"], found["sum{}"]) == ((0, 7), (2, 7), (4, 7))
    assert (found["both{}"], found["late{}"]) == ((5, 7), (6, 6))


def test_a_donated_parameter_may_end_early():
    """[range: AliasedParameter]"""
    header = ", input_output_alias={ {}: (0, {}, may-alias) }"
    text = program(*SUM_OF_PRODUCT, "ROOT %sum = f32[4]{0} add(%product, %y)", header=header)
    found = ranges(derived(text))
    assert (found["a{}"], found["x{}"], found["sum{}"]) == ((0, 2), (0, 5), (4, 5))


COUNT = computation(
    "turn",
    f"%state = {PAIR} parameter(0)",
    "%first = f32[] get-tuple-element(%state), index=0",
    "%second = f32[] get-tuple-element(%state), index=1",
    "%next = f32[] add(%first, %second)",
    f"ROOT %again = {PAIR} tuple(%first, %next)",
) + computation(
    "go",
    f"%seen = {PAIR} parameter(0)",
    "ROOT %no = pred[] constant(false)",
)


def test_the_values_of_a_loop_leave_no_gap():
    """[range: While; alias: SingleWhile; dataflow: SingleWhile]"""
    text = program(
        "%one = f32[] constant(1)",
        "%two = f32[] constant(2)",
        f"%begin = {PAIR} tuple(%one, %two)",
        f"ROOT %loop = {PAIR} while(%begin), condition=%go, body=%turn",
        before=COUNT,
    )
    found = derived(text)
    lives = ranges(found)
    assert lives["two{}"][1] == lives["seen{1}"][0]
    assert lives["seen{1}"][1] == lives["state{1}"][0]
    assert lives["state{1}"][1] == lives["next{}"][0]
    assert alias_sets(found) == {
        frozenset({"two{}", "loop{1}", "state{1}", "seen{1}", "next{}"}),
        frozenset({"begin{}", "loop{}", "state{}", "seen{}", "again{}"}),
    }
    assert positions(found, "one{}") == {
        *("one{}", "begin{0}", "loop{0}", "state{0}", "first{}", "again{0}", "seen{0}"),
    }


def test_a_donated_loop_lies_in_one_place_with_input_and_output():
    """[alias: InputOutputAliasingWithWhile]"""
    header = ", input_output_alias={ {0}: (0, {0}), {1}: (0, {1}) }"
    text = program(
        f"%given = {PAIR} parameter(0)",
        f"%loop = {PAIR} while(%given), condition=%go, body=%turn",
        "%left = f32[] get-tuple-element(%loop), index=0",
        "%right = f32[] get-tuple-element(%loop), index=1",
        "%minus_left = f32[] negate(%left)",
        "%minus_right = f32[] negate(%right)",
        f"ROOT %out = {PAIR} tuple(%minus_left, %minus_right)",
        before=COUNT,
        header=header,
    )
    together = {"given{1}", "loop{1}", "state{1}", "seen{1}", "next{}", "minus_right{}"}
    assert frozenset(together) in alias_sets(derived(text))


WRAPPED = computation(
    "inner",
    "%m = f32[64]{0} parameter(0)",
    "%n = f32[64]{0} parameter(1)",
    "%minus_m = f32[64]{0} negate(%m)",
    "%minus_n = f32[64]{0} negate(%n)",
    "ROOT %total = f32[64]{0} add(%minus_m, %minus_n)",
) + computation(
    "wrapped",
    "%k = f32[64]{0} parameter(0)",
    "%l = f32[64]{0} parameter(1)",
    "ROOT %called = f32[64]{0} call(%k, %l), to_apply=%inner",
)


def test_operands_of_an_async_call_live_until_it_is_done():
    """[range: AsyncCall]"""
    text = program(
        "%a = f32[64]{0} parameter(0)",
        "%b = f32[64]{0} parameter(1)",
        "%minus_a = f32[64]{0} negate(%a)",
        "%minus_b = f32[64]{0} negate(%b)",
        "%start = ((f32[64]{0}, f32[64]{0}), f32[64]{0}, u32[]) async-start(%minus_a, %minus_b), "
        "calls=%wrapped",
        "%meanwhile = f32[64]{0} add(%minus_a, %minus_b)",
        "%done = f32[64]{0} async-done(%start)",
        "ROOT %end = f32[64]{0} add(%meanwhile, %done)",
        before=WRAPPED,
    )
    found = ranges(derived(text))
    assert (found["a{}"], found["b{}"]) == ((0, 16), (0, 16))
    assert (found["minus_a{}"], found["minus_b{}"]) == ((2, 14), (3, 14))
    assert (found["meanwhile{}"], found["end{}"]) == ((13, 15), (15, 16))


def late_bound(operand: str):
    bound = "f32[64]{0}" if operand else ""
    return program(
        "%a = f32[64]{0} parameter(0)",
        f"%start = (({bound}), (), u32[]) async-start({operand}), calls=%wrapped",
        "%minus_a = f32[64]{0} negate(%a)",
        "%update = ((f32[64]{0}, f32[64]{0}), f32[64]{0}, u32[]) "
        "async-update(%start, %a, %minus_a)",
        "ROOT %done = f32[64]{0} async-done(%update)",
        before=WRAPPED,
    )


def test_operands_that_an_async_update_binds():
    """[range: LateBoundAsyncCall, AsyncCallLateBinding]

    The newest libtpu prints this for a sparse core, see `new-7x` of `tests/test_corpus.py`.
    """
    found = ranges(derived(late_bound("")))
    # 0 a, 1 start, 2 minus_a, 3 k, 4 l, 5 m, 6 n, 7 minus_m, 8 minus_n, 9 total, 10 called,
    # 11 update, 12 done
    assert (found["a{}"], found["minus_a{}"]) == ((0, 13), (2, 12))
    assert (found["start{2}"], found["update{2}"]) == ((1, 11), (11, 12))
    assert (found["minus_m{}"], found["total{}"]) == ((7, 12), (9, 13))


def test_operands_that_are_bound_in_steps_are_refused():
    """[range: ProgressiveLateBoundAsyncCall]"""
    with pytest.raises(DumpError, match="async-start start binds its operands in several steps"):
        derived(late_bound("%a"))


def test_a_shape_without_bound_has_ranges_and_no_peak():
    """[range: ToStringComputationWithUnboundedDynamicShape]"""
    text = program("%a = f32[?]{0} parameter(0)", "ROOT %sum = f32[?]{0} add(%a, %a)")
    assert ranges(derived(text)) == {"a{}": (0, 2), "sum{}": (1, 2)}
    assert figures(text, "cpu") == []


def test_a_nested_tuple_forwards_at_each_index():
    """[dataflow: NestedTuple]"""
    text = program(
        "%one = f32[] constant(1)",
        "%two = f32[] constant(2)",
        f"%inner = {PAIR} tuple(%one, %two)",
        f"%outer = ({PAIR}, {PAIR}, f32[]) tuple(%inner, %inner, %one)",
        f"%taken = {PAIR} get-tuple-element(%outer), index=1",
        "ROOT %out = f32[] get-tuple-element(%taken), index=0",
    )
    found = derived(text)
    assert len(names(found)) == 4
    assert positions(found, "one{}") == {
        *("one{}", "inner{0}", "outer{0,0}", "outer{1,0}", "outer{2}", "taken{0}", "out{}"),
    }
    # Only the root uses the constant, because the root gives the constant back.
    assert uses(found, "one{}") == {("out", 0, "{0}")}
    assert uses(found, "two{}") == set()
    assert uses(found, "inner{}") == {("out", 0, "{}")}
    assert uses(found, "outer{}") == {("taken", 0, "{}")}


def test_nested_calls_hold_the_callers_operands():
    """[dataflow: SingleCall, NestedCalls]"""
    before = computation(
        "plus",
        "%p = f32[] parameter(0)",
        "%q = f32[] parameter(1)",
        "ROOT %sum = f32[] add(%p, %q)",
    ) + computation(
        "swapped",
        "%r = f32[] parameter(0)",
        "%s = f32[] parameter(1)",
        "ROOT %nested = f32[] call(%s, %r), to_apply=%plus",
    )
    found = derived(
        program(
            "%one = f32[] constant(1)",
            "%two = f32[] constant(2)",
            "ROOT %call = f32[] call(%one, %two), to_apply=%swapped",
            before=before,
        )
    )
    assert sorted(names(found)) == ["one{}", "sum{}", "two{}"]
    assert positions(found, "one{}") == {"one{}", "r{}", "q{}"}
    assert uses(found, "one{}") == {("call", 0, "{}"), ("nested", 1, "{}"), ("sum", 1, "{}")}
    assert positions(found, "sum{}") == {"sum{}", "nested{}", "call{}"}


def loop_of(shape: str, *turn: str, begin: str) -> str:
    """A loop over constants that never ends by its condition."""
    before = computation("turn", f"%state = {shape} parameter(0)", *turn) + computation(
        "go", f"%seen = {shape} parameter(0)", "ROOT %no = pred[] constant(false)"
    )
    return program(
        *(f"%c{number} = f32[] constant({number})" for number in range(3)),
        f"%begin = {shape} tuple({begin})",
        f"ROOT %loop = {shape} while(%begin), condition=%go, body=%turn",
        before=before,
    )


SWAP = (
    "%left = f32[] get-tuple-element(%state), index=0",
    "%right = f32[] get-tuple-element(%state), index=1",
    f"ROOT %again = {PAIR} tuple(%right, %left)",
)


def test_a_loop_that_swaps_equal_values_merges_nothing():
    """[dataflow: SwizzlingWhileSharedInput]"""
    text = loop_of(PAIR, *SWAP, begin="%c1, %c1")
    assert phis(text) == {"loop{}", "state{}", "seen{}"}
    assert {"state{0}", "state{1}", "loop{0}", "again{0}"} <= positions(derived(text), "c1{}")


def test_a_loop_that_swaps_two_values_merges_both():
    """[dataflow: SwizzlingWhile]"""
    text = loop_of(PAIR, *SWAP, begin="%c1, %c2")
    assert phis(text) == {
        f"{name}{index}" for name in ("loop", "state", "seen") for index in ("{}", "{0}", "{1}")
    }


def test_a_loop_that_turns_three_values_puts_them_in_one_place():
    """[alias: SwizzlingWhile]"""
    turn = [f"%e{n} = f32[] get-tuple-element(%state), index={n}" for n in range(3)]
    turn.append("ROOT %again = (f32[], f32[], f32[]) tuple(%e1, %e2, %e0)")
    found = derived(loop_of("(f32[], f32[], f32[])", *turn, begin="%c0, %c1, %c2"))
    sets = alias_sets(found)
    assert len(sets) == 2  # the elements and the tables of the tuples
    assert any({"c0{}", "c1{}", "c2{}", "loop{0}", "state{2}"} <= members for members in sets)
    # Three places in all: the condition's constant has one too.
    assert len(set(found.liveness.alias_set.tolist())) == 3


def test_an_element_that_an_inner_loop_keeps_is_no_phi_there():
    """[dataflow: NestedWhiles; alias: NestedWhiles]"""
    before = (
        COUNT
        + computation(
            "outer",
            f"%held = {PAIR} parameter(0)",
            "%h0 = f32[] get-tuple-element(%held), index=0",
            "%minus = f32[] negate(%h0)",
            "%h1 = f32[] get-tuple-element(%held), index=1",
            f"%inner_begin = {PAIR} tuple(%minus, %h1)",
            f"ROOT %inner_loop = {PAIR} while(%inner_begin), condition=%go, body=%turn",
        )
        + computation(
            "on", f"%looked = {PAIR} parameter(0)", "ROOT %never = pred[] constant(false)"
        )
    )
    text = program(
        "%one = f32[] constant(1)",
        "%two = f32[] constant(2)",
        f"%begin = {PAIR} tuple(%one, %two)",
        f"ROOT %loop = {PAIR} while(%begin), condition=%on, body=%outer",
        before=before,
    )
    merged = phis(text)
    assert {"state{1}", "inner_loop{1}", "loop{0}", "loop{1}"} <= merged
    assert not {"state{0}", "inner_loop{0}"} & merged
    found = derived(text)
    assert {"state{0}", "inner_loop{0}", "first{}"} <= positions(found, "minus{}")
    assert any({"one{}", "loop{0}", "minus{}"} <= members for members in alias_sets(found))


@pytest.mark.parametrize(
    ("instruction", "values"),
    [
        (f"{PAIR} copy(%both)", {"a{}", "b{}", "both{}", "out{}"}),
        (f"{PAIR} opt-barrier(%both)", {"a{}", "b{}", "both{}"}),
        (f"{PAIR} optimization-barrier(%both)", {"a{}", "b{}", "both{}"}),
    ],
)
def test_a_copy_of_a_tuple_defines_its_table_and_a_barrier_nothing(
    instruction: str, values: set[str]
):
    """[dataflow: TupleCopy, OptimizationBarrier]"""
    found = derived(
        program(
            "%a = f32[] parameter(0)",
            "%b = f32[] parameter(1)",
            f"%both = {PAIR} tuple(%a, %b)",
            f"ROOT %out = {instruction}",
        )
    )
    assert set(names(found)) == values
    assert positions(found, "a{}") == {"a{}", "both{0}", "out{0}"}


def test_a_send_holds_its_operand_and_a_recv_done_what_was_received():
    """[dataflow: SendAndSendDone, RecvAndRecvDone]"""
    found = derived(
        program(
            "%a = f32[8]{0} parameter(0)",
            "%t = token[] after-all()",
            "%send = (f32[8]{0}, u32[], token[]) send(%a, %t), channel_id=1",
            "%sent = token[] send-done(%send), channel_id=1",
            "%recv = (f32[8]{0}, u32[], token[]) recv(%sent), channel_id=2",
            "ROOT %got = (f32[8]{0}, token[]) recv-done(%recv), channel_id=2",
        )
    )
    assert positions(found, "a{}") == {"a{}", "send{0}"}
    assert {"send{}", "send{1}", "send{2}", "sent{}"} < set(names(found))
    assert {"recv{}", "recv{0}", "recv{1}", "recv{2}", "got{}", "got{1}"} < set(names(found))
    assert positions(found, "recv{0}") == {"recv{0}", "got{0}"}


def test_branches_that_give_their_argument_back_merge_the_operands():
    """[dataflow: ConditionalWithIdentity]"""
    before = computation("yes", "ROOT %y = f32[] parameter(0)")
    before += computation("no", "ROOT %n = f32[] parameter(0)")
    text = program(
        "%which = pred[] constant(true)",
        "%one = f32[] constant(56)",
        "%two = f32[] constant(12)",
        "ROOT %chosen = f32[] conditional(%which, %one, %two), true_computation=%yes, "
        "false_computation=%no",
        before=before,
    )
    found = derived(text)
    assert phis(text) == {"chosen{}"}
    assert positions(found, "one{}") == {"one{}", "y{}"}
    assert uses(found, "one{}") == {("chosen", 1, "{}")}
    assert schedule(found) == ["which", "one", "two", "y", "n", "chosen"]


UPDATE = "dynamic-update-slice(%{}, %part, %zero)"


def fused(*lines: str, shape: str = "f32[8]{0}") -> set[frozenset[str]]:
    """What must share memory around a fusion of three operands."""
    before = computation(
        "body",
        *(f"%p{number} = f32[8]{{0}} parameter({number})" for number in range(3)),
        "%part = f32[2]{0} constant({1, 2})",
        "%zero = s32[] constant(0)",
        *lines,
    )
    text = program(
        "%a = f32[8]{0} parameter(0)",
        *(f"%m{number} = f32[8]{{0}} negate(%a)" for number in range(3)),
        f"ROOT %fusion = {shape} fusion(%m0, %m1, %m2), kind=kLoop, calls=%body",
        before=before,
    )
    return alias_sets(derived(text))


def test_a_fusion_of_several_updates_works_in_place_where_it_updates():
    """[alias: DynamicUpdateSliceMultiOutputFusion]"""
    found = fused(
        "%sum = f32[8]{0} add(%p0, %p0)",
        f"%u1 = f32[8]{{0}} {UPDATE.format('p1')}",
        f"%u2 = f32[8]{{0}} {UPDATE.format('p2')}",
        "ROOT %all = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%sum, %u1, %u2)",
        shape="(f32[8]{0}, f32[8]{0}, f32[8]{0})",
    )
    assert found == {frozenset({"m1{}", "fusion{1}"}), frozenset({"m2{}", "fusion{2}"})}


def test_a_chain_of_updates_in_a_fusion_does_not_work_in_place():
    """[alias: ChainedDynamicUpdateSliceFusion]"""
    first = f"%u1 = f32[8]{{0}} {UPDATE.format('p0')}"
    assert fused(first, f"ROOT %u2 = f32[8]{{0}} {UPDATE.format('u1')}") == set()


def test_an_update_behind_bitcasts_works_in_place():
    """As XLA answered to a program made for this rule."""
    found = fused(
        "%flat = f32[4,2]{1,0} bitcast(%p0)",
        "%back = f32[8]{0} bitcast(%flat)",
        f"%u1 = f32[8]{{0}} {UPDATE.format('back')}",
        "ROOT %out = f32[4,2]{1,0} bitcast(%u1)",
        shape="f32[4,2]{1,0}",
    )
    assert found == {frozenset({"m0{}", "fusion{}"})}


def test_an_async_update_in_place_holds_the_operand_until_it_is_done():
    """As XLA answered to a program made for this rule, and to one with the update in a fusion."""
    text = program(
        "%a = f32[8]{0} parameter(0)",
        "%b = f32[4]{0} parameter(1)",
        "%c = s32[] parameter(2)",
        "%d = f32[8]{0} negate(%a)",
        "%start = ((f32[8]{0}, f32[4]{0}, s32[]), f32[8]{0}, u32[]) async-start(%d, %b, %c), "
        "calls=%write",
        "%update = ((f32[8]{0}, f32[4]{0}, s32[]), f32[8]{0}, u32[]) async-update(%start)",
        "ROOT %done = f32[8]{0} async-done(%update)",
        before=computation(
            "write",
            "%p = f32[8]{0} parameter(0)",
            "%u = f32[4]{0} parameter(1)",
            "%i = s32[] parameter(2)",
            "ROOT %written = f32[8]{0} dynamic-update-slice(%p, %u, %i)",
        ),
    )
    found = derived(text)
    assert {"start{1}", "update{1}", "update{0,0}"} < positions(found, "d{}")
    assert positions(found, "written{}") == {"written{}", "done{}"}
    assert {"update{}", "update{0}"} < set(names(found))
    assert "update{2}" not in names(found)
    update = "%written = f32[8]{0} dynamic-update-slice(%p, %u, %i)"
    fused = computation(
        "fused",
        *("%p0 = f32[8]{0} parameter(0)", "%u0 = f32[4]{0} parameter(1)"),
        "%i0 = s32[] parameter(2)",
        "ROOT %inner = f32[8]{0} dynamic-update-slice(%p0, %u0, %i0)",
    )
    fusion = "%written = f32[8]{0} fusion(%p, %u, %i), kind=kLoop, calls=%fused"
    text = text.replace(update, fusion).replace("%write (", f"{fused}\n%write (")
    assert positions(derived(text), "written{}") == {"written{}", "start{1}", "update{1}", "done{}"}


def test_the_newest_libtpu_starts_async_values_with_the_async_start():
    """Newer than all figures above; XLA's dumps for TPU of changelist 1014260217 show the rule."""
    before = computation(
        "cut",
        "%p = f32[8]{0} parameter(0)",
        "ROOT %slice = f32[4]{0} slice(%p), slice={[0:4]}",
    )
    text = program(
        "%a = f32[8]{0} parameter(0)",
        "%start = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(%a), calls=%cut"
        ', backend_config={"dma_priority":1}',
        "ROOT %done = f32[4]{0} async-done(%start)",
        before=before,
    )
    assert ranges(derived(text))["slice{}"] == (3, 5)
    assert ranges(derived(text.replace("dma_priority", "priority")))["slice{}"] == (2, 5)
    hlo = read_hlo_text(split_lines(text.encode()))
    assert ranges(derive(hlo, changelist=933746096))["slice{}"] == (2, 5)


@pytest.mark.parametrize("start", [3, 4], ids=["jax 0.11", "jax 0.12"])
def test_a_dump_tells_when_async_values_start(start):
    """As XLA answered to this program, of which the texts do not differ."""
    hlo = read_hlo_text(split_lines(ASYNC.encode()))
    lives = f"""\
HloLiveRange (max 8):
  InstructionSequence:
    0:p
    1:double
    2:q
    3:slice
    4:start
    5:other
    6:done
    7:both
  BufferLiveRange:
    slice{{}}:{start}-8
  Live ranges at 7 (peak):
    slice{{}}: 16 bytes (cumulative: 16 bytes)
"""
    dumped = part_as_tables(read_live_ranges(split_lines(lives.encode())))
    assert ranges(derive(hlo, live_range=dumped))["slice{}"] == (start, 8)
    assert ranges(derive(hlo))["slice{}"] == (3, 8)


VECTOR = "f32[100]{0}"


def test_elementwise_results_take_the_place_of_their_operands():
    """[assignment: TrivialPeakBuffers]: one buffer of 400 bytes beside the parameters."""
    text = program(
        "%p = f32[] parameter(0)",
        f"%wide = {VECTOR} broadcast(%p), dimensions={{}}",
        f"%q = {VECTOR} parameter(1)",
        f"%r = {VECTOR} parameter(2)",
        f"%product = {VECTOR} multiply(%wide, %q)",
        f"%sum = {VECTOR} add(%product, %r)",
        f"ROOT %rest = {VECTOR} subtract(%sum, %r)",
    )
    assert peak(text) == 4 + 400 + 400 + 400


def test_the_peak_is_where_a_concatenation_reads_its_operands():
    """[assignment: PeakBuffers]: reverse, negate and concatenate live together, log does not."""
    text = program(
        f"%p = {VECTOR} parameter(0)",
        f"%log = {VECTOR} log(%p)",
        f"%back = {VECTOR} reverse(%log), dimensions={{0}}",
        f"%minus = {VECTOR} negate(%p)",
        "%joined = f32[200]{0} concatenate(%back, %minus), dimensions={0}",
        "ROOT %out = f32[1]{0} slice(%joined), slice={[0:1]}",
    )
    assert peak(text) == 400 + 4 + (400 + 400 + 800)


def test_two_products_lie_beside_each_other():
    """[assignment: OneTempAllocation]: 32 and 48 bytes of temp."""
    dots = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = program(
        "%a = f32[2,3]{1,0} parameter(0)",
        "%b = f32[3,4]{1,0} parameter(1)",
        "%c = f32[4,4]{1,0} parameter(2)",
        f"%ab = f32[2,4]{{1,0}} dot(%a, %b), {dots}",
        f"%bc = f32[3,4]{{1,0}} dot(%b, %c), {dots}",
        "ROOT %both = f32[5,4]{1,0} concatenate(%ab, %bc), dimensions={0}",
    )
    assert peak(text) == (24 + 48 + 64) + 80 + (32 + 48)


def test_one_buffer_twice_in_a_loop_counts_once():
    """[assignment: AliasedBuffersShouldntCoexistInPeakBuffers]"""
    state = "(s32[], s32[])"
    before = computation(
        "turn",
        f"%held = {state} parameter(0)",
        "%first = s32[] get-tuple-element(%held), index=0",
        "%next = s32[] add(%first, %first)",
        f"ROOT %again = {state} tuple(%next, %next)",
    ) + computation("go", f"%seen = {state} parameter(0)", "ROOT %yes = pred[] constant(true)")
    text = program(
        "%p = s32[] parameter(0)",
        "%copied = s32[] copy(%p)",
        f"%begin = {state} tuple(%copied, %copied)",
        f"%loop = {state} while(%begin), condition=%go, body=%turn",
        "%out = s32[] get-tuple-element(%loop), index=0",
        "ROOT %minus = s32[] negate(%out)",
        before=before,
    )
    sets = alias_sets(derived(text))
    assert any({"copied{}", "next{}", "loop{0}", "loop{1}"} <= members for members in sets)
    # The parameter, the output with the loop's only number in it, the constant, one table.
    assert peak(text) == 4 + 4 + 1 + 16


def test_updates_of_an_element_of_a_parameter_chain_in_one_place():
    """[assignment: InPlaceBuffer]"""
    text = program(
        "%state = (s32[], f32[8]{0}) parameter(0)",
        "%old = f32[8]{0} get-tuple-element(%state), index=1",
        "%part = f32[2]{0} constant({1, 2})",
        "%zero = s32[] constant(0)",
        f"%u1 = f32[8]{{0}} {UPDATE.format('old')}",
        f"ROOT %u2 = f32[8]{{0}} {UPDATE.format('u1')}",
    )
    assert alias_sets(derived(text)) == {frozenset({"state{1}", "u1{}", "u2{}"})}
