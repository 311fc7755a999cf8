"""Kinds of op_names, callers, scopes."""

import re

import pytest

from memhouse.xla.named_program import find_callers
from memhouse.xla.program import NONE
from memhouse.xla.scopes import find_scopes

from ....support.dumps import lines
from .texts import computation, line, module, read, scope_by_name


def kinds(text):
    program, op_names = read(text)
    return {name: op_name.kind.name for name, op_name in zip(program.names, op_names, strict=True)}


@pytest.mark.parametrize(
    ("op_name", "kind"),
    [
        (None, "NONE"),
        ("p['w']", "ARGUMENT"),
        ("p['a/b']", "ARGUMENT"),
        ("p['other']", "XLA_MADE"),
        ("broadcast.92", "XLA_MADE"),
        ("jit(f)", "XLA_MADE"),
        ("a;b", "XLA_MADE"),
        ("jit(f)/a;jit(f)/b", "JOINED"),
        ("jit(f)/while;jit(f)/b", "JOINED"),
        ("jit(f)/(jvp()/mul:transpose(jvp())/dot_general)", "JOINED"),
        ("jit(f)/transpose(jvp())/while", "WEAK"),
        ("jit(f)/jvp(while)", "WEAK"),
        ("jit(ring)/shard_map", "WEAK"),
        ("jit(f)/while/body/closed_call", "WEAK"),
        ("jit(f)/remat2", "WEAK"),
        ("jit(f)/transpose(jvp())", "WEAK"),
        ("jit(f)/jvp()/mul", "STRONG"),
        ("jit(f)/transpose", "STRONG"),
        ("jit(f)/jvp(jit(silu))", "STRONG"),
        ("/add", "STRONG"),
        ("checkpoint/reduce_sum", "STRONG"),
    ],
)
def test_kinds_of_op_names(op_name, kind):
    text = module(
        entry=[
            line("a = parameter(0)", "p['w']"),
            line("b = parameter(1)", "p['a/b']"),
            line("c = add(a, b)", op_name),
            line("d = add(a, c)", "jit(f)/d"),
            line("ROOT e = add(c, d)", "jit(f)/e"),
        ]
    )
    assert kinds(text)["c"] == kind


def test_an_argument_is_told_by_the_entry_and_not_by_the_name_of_a_parameter():
    text = module(
        computation("fused", line("a = parameter(0)", "inner"), line("ROOT b = negate(a)", "x")),
        entry=[
            line("p = parameter(0)", "x"),
            line("c = fusion(p), kind=kLoop, calls=%fused", "jit(f)/neg"),
            line("ROOT d = copy(c)", "inner"),
        ],
    )
    found = kinds(text)
    assert [found[name] for name in "abcdp"] == [
        *("XLA_MADE", "ARGUMENT", "STRONG", "XLA_MADE", "ARGUMENT")
    ]


def test_other_frontends_name_operations_without_a_path():
    text = module(
        entry=[
            line("a = parameter(0)", "p0"),
            line("b = tanh(a)", "aten__tanh"),
            line("c = copy(b)", "broadcast.92"),
            line("ROOT d = negate(c)", "model/layer/neg"),
        ]
    )
    assert kinds(text) == {"a": "ARGUMENT", "b": "STRONG", "c": "XLA_MADE", "d": "STRONG"}


LOOP = module(
    computation(
        "sum",
        line("a = parameter(0)"),
        line("b = parameter(1)"),
        line("ROOT add = add(a, b)", "checkpoint/inner/reduce_sum"),
    ),
    computation(
        "scattered",
        line("q = parameter(0)"),
        line("s = add(q, q)", "/add"),
        line("ROOT t = reduce(s, q), dimensions={}, to_apply=%sum", "jit(f)/jvp(norm)/reduce_sum"),
    ),
    computation(
        "body",
        line("r = parameter(0)"),
        line("u = fusion(r), kind=kLoop, calls=%scattered"),
        line("ROOT v = negate(u)", "while/body/ssm/neg"),
    ),
    computation("condition", line("w = parameter(0)"), line("ROOT x = negate(w)", "lt")),
    computation("dead", line("y = parameter(0)"), line("ROOT z = negate(y)", "body/mul")),
    entry=[
        line("p = parameter(0)", "x"),
        line("ROOT loop = while(p), condition=%condition, body=%body", "jit(f)/jvp(up)/while"),
    ],
)


def test_callers_do_not_lead_in_circles():
    call = line("ROOT b = call(a), to_apply=%again")
    text = module(
        computation("again", line("a = parameter(0)"), call),
        entry=[line("p = parameter(0)"), line("ROOT c = call(p), to_apply=%again")],
    )
    program, _ = read(text)
    assert find_callers(program) == [NONE, NONE]


def test_relative_names_lie_in_the_scope_of_the_nearest_caller_with_a_path():
    found = scope_by_name(LOOP)
    assert found["loop"] == ("up", "while")
    assert found["v"] == ("up/ssm", "neg")
    assert found["s"] == ("up", "add")
    assert found["t"] == ("norm", "reduce_sum")
    assert found["add"] == ("norm/inner", "reduce_sum")
    assert found["z"] == ("", "mul")
    assert [found[name] for name in ("p", "u", "x", "a")] == [None] * 4


def test_programs_that_are_not_jax_keep_their_first_component():
    entry = [line("a = parameter(0)", "x"), line("ROOT b = copy(a)", "model/dense/MatMul")]
    assert scope_by_name(module(entry=entry)) == {"a": None, "b": ("model/dense", "MatMul")}
    _, op_names = read(module(entry=entry))
    assert not any(op_name.is_relative for op_name in op_names)


@pytest.mark.parametrize("dump", ["tpu/llama-v5e", "tpu/resnet-v5e", "tpu/decode8-v5e"])
def test_real_dumps_have_no_component_that_is_neither_known_nor_a_name(dump):
    program, op_names = read(lines(f"{dump}/*after_optimizations.txt.gz"))
    scopes = find_scopes(program, op_names, find_callers(program))
    assert set(scopes.scope_id) == {NONE, *range(len(scopes.rows))}
    strange = re.compile(r"(jvp|transpose|vmap)\(|\[|^$|^(while|body|cond|checkpoint)$")
    for scope in scopes.rows:
        assert scope.operation
        for part in scope.scope.split("/") if scope.scope else ():
            assert not strange.search(part)
