"""How an op_name goes apart into components."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.xla.op_names import read_component, read_path, split

from ....support.rounds import rounds


@pytest.mark.parametrize(
    ("text", "components"),
    [
        ("jit(f)/mul", ["jit(f)", "mul"]),
        ("mul", ["mul"]),
        ("/add", ["", "add"]),
        ("", [""]),
        (
            "jit(f)/jit(main)/jvp(while)/body/dynamic_slice[slice_sizes=(1, 64, 64)]",
            ["jit(f)", "jit(main)", "jvp(while)", "body", "dynamic_slice[slice_sizes=(1, 64, 64)]"],
        ),
        ("jit(f)/btd,dhk->bthk/dot_general", ["jit(f)", "btd,dhk->bthk", "dot_general"]),
        ("jit(f)/jvp(a/b)/mul", ["jit(f)", "jvp(a/b)", "mul"]),
        ("m['a/b']/x", ["m['a/b']", "x"]),
        ("jit(f)/q'/dot/k'/dot", ["jit(f)", "q'", "dot", "k'", "dot"]),
        ("jit(f)/call[jaxpr={ lambda ; a/b }]/x", ["jit(f)", "call[jaxpr={ lambda ; a/b }]", "x"]),
        # What does not close is a character like any other.
        ("jit(f)/a(b/c", ["jit(f)", "a(b", "c"]),
        ("jit(f)/a(b[c)/d", ["jit(f)", "a(b[c)", "d"]),
        ("jit(f)/a)b/c", ["jit(f)", "a)b", "c"]),
        ("jit(f)/'b/c", ["jit(f)", "'b", "c"]),
        # A group that is none.
        ("jit(f)/(a)/b", ["jit(f)", "(a)", "b"]),
        ("jit(f)/a:b/c", ["jit(f)", "a:b", "c"]),
    ],
)
def test_components_end_at_slashes_outside_of_brackets(text, components):
    assert split(text) == (components, False)


@pytest.mark.parametrize(
    ("text", "components"),
    [
        ("a/b;c/d", ["a", "b"]),
        (
            "jit(f)/(jvp()/mul:transpose(jvp())/dot_general)",
            ["jit(f)", "jvp()", "mul"],
        ),
        (
            "jit(<lambda>)/(jvp(becd,btec,bte->btd)/dot_general:transpose(jvp(x))/dot_general)",
            ["jit(<lambda>)", "jvp(becd,btec,bte->btd)", "dot_general"],
        ),
        ("a/(b:c)/d", ["a", "b", "d"]),
        ("a/(b:c);d", ["a", "b"]),
    ],
)
def test_of_joined_names_the_first_counts(text, components):
    assert split(text) == (components, True)


@pytest.mark.parametrize(
    ("text", "name", "transformations"),
    [
        ("mul", "mul", set()),
        ("jvp()", "", {"jvp"}),
        ("transpose(jvp())", "", {"transpose", "jvp"}),
        ("transpose(jvp(btd,dhk->bthk))", "btd,dhk->bthk", {"transpose", "jvp"}),
        ("transpose(jvp(jit(silu)))", "jit(silu)", {"transpose", "jvp"}),
        ("vmap(jvp(while))", "while", {"vmap", "jvp"}),
        ("custom_jvp(relu)", "relu", {"custom_jvp"}),
        ("custom_vjp(f)", "f", {"custom_vjp"}),
        ("remat(f)", "f", {"remat"}),
        ("checkpoint(f)", "f", {"checkpoint"}),
        ("jit(log_softmax)", "jit(log_softmax)", set()),
        # The primitive, with a JAX 0.4 parameter list.
        ("transpose[permutation=(1, 0)]", "transpose", set()),
        ("while[cond_nconsts=0 body_nconsts=8]", "while", set()),
        ("jvp(while[cond_nconsts=0])", "while", {"jvp"}),
        ("jvp(f)[a=b]", "f", {"jvp"}),
        # Not around all of it.
        ("jvp(a", "jvp(a", set()),
        ("my_jvp(a)", "my_jvp(a)", set()),
        ("[a]", "[a]", set()),
    ],
)
def test_a_component_is_a_name_within_transformations(text, name, transformations):
    found = read_component(text)
    assert (found.name, found.transformations) == (name, transformations)


@pytest.mark.parametrize(
    "text",
    [
        *("jvp()", "transpose(jvp())", "while", "body", "cond", "scan", "branch_12_fun"),
        *("while[cond_nconsts=0]", "jvp(while)", "checkpoint", "jvp(checkpoint)", "remat2"),
        *("rematted_computation", "closed_call", "shard_map", "pjit", "core_call", "xla_call"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
        *("jit(main)", "jit(<lambda>)", "pmap(<lambda>)"),
    ],
)
def test_control_flow_and_wrappers_name_no_work(text):
    assert read_component(text).is_dropped


@pytest.mark.parametrize(
    ("text", "scope", "operation"),
    [
        ("jit(f)/mul", "", "mul"),
        ("jit(f)/jit(main)/jvp(up)/while/body/ssm/mul", "up/ssm", "mul"),
        ("jit(f)/transpose(jvp(up))/while/body/closed_call/ssm/mul", "up/ssm", "mul"),
        ("jit(f)/jvp(jit(silu))", "", "jit(silu)"),
        ("jit(f)/up/while", "up", "while"),
        ("jit(f)/cond/branch_0_fun/checkpoint/rematted_computation/mid/exp", "mid", "exp"),
        ("jit(f)/jit(g)/dot[p=(1, 2)]", "jit(g)", "dot"),
    ],
)
def test_scope_and_operation(text, scope, operation):
    path = read_path(text)
    assert (path.scope, path.operation, path.has_program) == (scope, operation, True)


PIECES = st.sampled_from([*"()[]{}'\"/;:ax", "jvp(", "transpose(", "jit(f)/", "while"])
TEXTS = st.lists(PIECES, max_size=40).map("".join)


@settings(max_examples=rounds(50))
@given(TEXTS)
def test_any_text_goes_apart_and_nothing_is_made_up(text):
    components, is_joined = split(text)
    assert components
    if not is_joined:
        assert "/".join(components) == text
    for component in components:
        assert read_component(component).name in component


def test_hostile_names_are_read():
    """Each once took as long as its square."""
    for piece in ("(", "((a:b)/", "(a:b)/", "jvp(", "[)", "'", '"', "(a:", "a[b]"):
        closing = {"(": ")", "jvp(": ")", "(a:": ")"}.get(piece, "")
        path = read_path("jit(f)/" + piece * 20_000 + closing * 20_000 + "/x")
        assert path.operation.endswith("x"), piece
