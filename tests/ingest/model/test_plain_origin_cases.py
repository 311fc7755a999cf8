"""The plain rules of attribution on programs made to show one rule each."""

import pytest

from . import plain_names
from .plain_answers import Origin
from .plain_origins import origins
from .plain_passes import passes

NAMES = plain_names.Names(
    """HloModule m, is_scheduled=true

ENTRY %main (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8]{0} parameter(0), metadata={op_name="m[\\'blocks\\'][2]"}
}
"""
)


@pytest.mark.parametrize(
    ("op_name", "kind"),
    [
        ("", "none"),
        ("m['blocks'][2]", "argument"),
        ("broadcast.92", "xla-made"),
        ("jit(f)/add;jit(f)/sub", "joined"),
        ("jit(f)/(jvp()/gather:transpose(jvp())/reduce_sum)", "joined"),
        ("jit(f)/jvp(while)", "weak"),
        ("jit(f)/while[cond_nconsts=0]", "weak"),
        ("jit(ring)/shard_map", "weak"),
        ("jit(f)/jvp()", "weak"),
        ("jit(f)/jvp(jit(silu))", "strong"),
        ("/add", "strong"),
        ("while/body/mul", "strong"),
    ],
)
def test_kinds_of_names(op_name, kind):
    assert NAMES.kind_of(op_name) == kind


@pytest.mark.parametrize(
    ("op_name", "scope", "operation"),
    [
        ("jit(f)/transpose(jvp(while))/body/checkpoint/mul", [], "mul"),
        (
            "jit(f)/jit(main)/jvp(mlp)/btd,dhk->bthk/dot_general",
            ["mlp", "btd,dhk->bthk"],
            "dot_general",
        ),
        ("jit(f)/dynamic_slice[slice_sizes=(1, 64/2, 64)]", [], "dynamic_slice"),
        ("jit(f)/jvp(jit(silu))/mul;jit(f)/add", ["jit(silu)"], "mul"),
        ("jit(f)/a/(b/x:c/y)", ["a", "b"], "x"),
        ("checkpoint/rematted_computation/up/dot_general", ["up"], "dot_general"),
    ],
)
def test_scope_and_operation(op_name, scope, operation):
    assert plain_names.scope_and_operation(op_name) == (scope, operation)


def test_a_transpose_of_jax_is_not_the_operation():
    assert plain_names.has_transformation("jit(f)/transpose(jvp(up))/mul", "transpose")
    assert not plain_names.has_transformation("jit(f)/transpose[permutation=(1, 0)]", "transpose")
    assert not plain_names.has_transformation("jit(f)/jvp()/transpose", "transpose")


def named(op_name):
    return f', metadata={{op_name="{op_name}" source_file="/a/b.py" source_line=7}}'


def program(*lines, root, before=""):
    text = "\n".join(f"  %{line}" for line in lines)
    return f"HloModule m, is_scheduled=true\n\n{before}\nENTRY %main () -> {root} {{\n{text}\n}}\n"


def scan(start, update):
    """A loop that writes `update` into what it starts with."""
    shape = "(f32[4,8], s32[])"
    return program(
        f"x = f32[4,8]{{1,0}} parameter(0){named('x')}",
        "zero = f32[] constant(0)",
        "i = s32[] constant(0)",
        start,
        f"first = {shape} tuple(%start, %i)",
        f"loop = {shape} while(%first), condition=%go, body=%turn{named('jit(f)/while')}",
        "ROOT out = f32[4,8]{1,0} get-tuple-element(%loop), index=0",
        root="f32[4,8]",
        before=f"""%go (c: {shape}) -> pred[] {{
  %c = {shape} parameter(0)
  ROOT %yes = pred[] constant(true)
}}

%turn (b: {shape}) -> {shape} {{
  %b = {shape} parameter(0)
  %old = f32[4,8]{{1,0}} get-tuple-element(%b), index=0
  %at = s32[] get-tuple-element(%b), index=1
  %none = s32[] constant(0)
  %new = f32[1,8]{{1,0}} rng(%none, %none){named("jit(f)/while/body/sin")}
  %put = f32[4,8]{{1,0}} dynamic-update-slice({update}, %new, %at, %none){named("jit(f)/put")}
  ROOT %end = {shape} tuple(%put, %at)
}}
""",
    ).replace("%ROOT ", "ROOT %")


ZEROS = "start = f32[4,8]{1,0} broadcast(%zero), dimensions={}" + named("jit(f)/broadcast")
CACHE = "start = f32[4,8]{1,0} copy(%x)"


def test_a_stack_is_what_is_stacked():
    found = origins(scan(ZEROS, "%old"))
    assert found["put", ()] == Origin("new", "loop")
    assert found["loop", (0,)] == Origin("new", "loop")
    assert found["start", ()] == Origin("new", "becomes")


def test_a_relative_path_goes_on_where_its_caller_ends():
    text = scan(ZEROS, "%old").replace("jit(f)/while/body/sin", "down/sin")
    names = plain_names.Names(text.replace("jit(f)/while", "jit(f)/jvp(up)/while"))
    assert names.scope(names.module.instructions["new"]) == ["up", "down"]
    assert names.scope(names.module.instructions["loop"]) == ["up"]


def test_a_cache_is_its_argument():
    found = origins(scan(CACHE, "%old"))
    assert found["put", ()] == Origin("x", "loop")
    assert found["start", ()] == Origin("x", "moved")


def test_the_pass_of_a_program_without_a_derivative():
    assert set(passes(scan(CACHE, "%old")).values()) == {"argument", "other"}


FUSED = """%fused (a: f32[8], b: f32[8]) -> (f32[8], f32[8], f32[8]) {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %mul = f32[8]{0} multiply(%a, %b), metadata={op_name="jit(f)/mul"}
  %half = bf16[8]{0} convert(%mul)
  %sum = f32[8]{0} add(%mul, %b)
  ROOT %all = (bf16[8], f32[8], f32[8]) tuple(%half, %a, %sum)
}
"""


def test_each_result_of_a_fusion_has_its_own_owner():
    text = program(
        f"x = f32[8]{{0}} parameter(0){named('x')}",
        f"y = f32[8]{{0}} negate(%x){named('jit(f)/neg')}",
        "f = (bf16[8], f32[8], f32[8]) fusion(%x, %y), kind=kLoop, calls=%fused"
        + named("jit(f)/sub"),
        "copied = f32[8]{0} get-tuple-element(%f), index=1",
        "ROOT out = f32[8]{0} copy(%copied)" + named("jit(f)/of_the_reader"),
        root="f32[8]",
        before=FUSED,
    ).replace("%ROOT ", "ROOT %")
    found = origins(text)
    assert found["f", (0,)] == Origin("mul", "fused")
    assert found["f", (1,)] == Origin("x", "fused")
    assert found["f", (2,)] == Origin("mul", "fused")
    assert found["out", ()] == Origin("x", "moved")


def test_a_fill_that_nothing_overwrites_is_who_reads_it():
    text = program(
        "two = f32[] constant(2)",
        "scale = f32[8]{0} broadcast(%two), dimensions={}",
        "moved = f32[8]{0} copy(%scale)",
        "ROOT out = f32[8]{0} exponential(%moved)" + named("jit(f)/exp"),
        root="f32[8]",
    ).replace("%ROOT ", "ROOT %")
    found = origins(text)
    assert found["scale", ()] == found["moved", ()] == Origin("out", "read")
    assert found["two", ()] is None


def test_what_has_no_name_is_its_largest_operand():
    text = program(
        f"x = f32[8]{{0}} parameter(0){named('x')}",
        f"y = f32[2]{{0}} parameter(1){named('y')}",
        "ROOT out = f32[10]{0} concatenate(%y, %x), dimensions={0}" + named("jit(f)/while"),
        root="f32[10]",
    ).replace("%ROOT ", "ROOT %")
    assert origins(text)["out", ()] == Origin("x", "operand")


def test_a_sum_of_several_over_devices_is_what_is_summed():
    text = program(
        f"x = f32[8]{{0}} parameter(0){named('x')}",
        f"y = f32[8]{{0}} negate(%x){named('jit(f)/neg')}",
        f"z = f32[8]{{0}} sine(%x){named('jit(f)/sin')}",
        f"one = f32[8]{{0}} all-reduce(%y){named('jit(f)/psum')}",
        f"ROOT two = (f32[8], f32[8]) all-reduce(%y, %z){named('jit(f)/psum')}",
        root="(f32[8], f32[8])",
    ).replace("%ROOT ", "ROOT %")
    found = origins(text)
    assert found["one", ()] == Origin("one", "own")
    assert found["two", (0,)] == Origin("y", "moved")
    assert found["two", (1,)] == Origin("z", "moved")


def test_a_gathered_slice_of_a_weight_is_the_weight():
    text = program(
        f"x = f32[4,8]{{1,0}} parameter(0){named('x')}",
        "i = s32[] constant(0)",
        f"layer = f32[1,8]{{1,0}} dynamic-slice(%x, %i, %i){named('jit(f)/dynamic_slice')}",
        f"half = bf16[1,8]{{1,0}} convert(%layer){named('jit(f)/convert_element_type')}",
        "weight = f32[1,16]{1,0} all-gather(%half)" + named("jit(f)/dot_general"),
        "sum = f32[1,8]{1,0} negate(%layer)" + named("jit(f)/neg"),
        "ROOT other = f32[1,16]{1,0} all-gather(%sum)" + named("jit(f)/dot_general"),
        root="f32[1,16]",
    ).replace("%ROOT ", "ROOT %")
    found = origins(text)
    assert found["weight", ()] == Origin("x", "argument")
    assert found["layer", ()] == Origin("layer", "own")
    assert found["half", ()] == Origin("half", "own")
    assert found["other", ()] == Origin("other", "own")


def conditional(first):
    """A choice between two branches; the second computes."""
    return program(
        f"x = f32[8]{{0}} parameter(0){named('x')}",
        "which = s32[] parameter(1)",
        "ROOT out = f32[8]{0} conditional(%which, %x, %x), branch_computations={%one, %two}"
        + named("jit(f)/cond"),
        root="f32[8]",
        before=f"""%one (a: f32[8]) -> f32[8] {{
  %a = f32[8]{{0}} parameter(0)
  ROOT %done = f32[8]{{0}} {first}(%a){named("jit(f)/cond/branch_0_fun/first")}
}}

%two (b: f32[8]) -> f32[8] {{
  %b = f32[8]{{0}} parameter(0)
  ROOT %sine = f32[8]{{0}} sine(%b){named("jit(f)/cond/branch_1_fun/sin")}
}}
""",
    ).replace("%ROOT ", "ROOT %")


@pytest.mark.parametrize(("first", "owner"), [("copy", "sine"), ("negate", "done")])
def test_a_choice_is_the_first_branch_that_computes(first, owner):
    assert origins(conditional(first))["out", ()] == Origin(owner, "loop")
