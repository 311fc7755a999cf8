"""The pass of each instruction, a rule at a time."""

import pytest

from memhouse.xla.passes import PASSES

from .texts import computation, line, module, pass_by_name

# A forward and a backward instruction, which every training step has.
PARAMETERS = [line("p = parameter(0)", "x"), line("lr = parameter(1)", "rate")]
FORWARD = line("forward = negate(p)", "jit(f)/jvp()/neg")
BACKWARD = line("backward = negate(forward)", "jit(f)/transpose(jvp())/neg")
END = line("ROOT end = negate(backward)")


def step(*instructions, computations=(), end=END):
    """A training step with these instructions after its backward pass."""
    return module(*computations, entry=[*PARAMETERS, FORWARD, BACKWARD, *instructions, end])


@pytest.mark.parametrize(
    ("instruction", "name", "expected"),
    [
        ("a.remat = negate(p)", "jit(f)/jvp()/neg", "rematerialised"),
        ("a.remat3 = negate(p)", "jit(f)/transpose(jvp())/neg", "rematerialised"),
        ("a.remat.1 = negate(p)", None, "rematerialised"),
        ("a.remat2.clone = negate(p)", None, "rematerialised"),
        ("a.remats = negate(p)", "jit(f)/jvp()/neg", "forward"),
        ("a_remat = negate(p)", "jit(f)/jvp()/neg", "forward"),
        ("a = negate(p)", "jit(f)/transpose(jvp())/rematted_computation/mul", "rematerialised"),
        ("a = negate(p)", "jit(f)/jvp()/rematted_computation/mul", "rematerialised"),
        ("a = negate(p)", "jit(f)/transpose(jvp(up))/mul", "backward"),
        ("a = negate(p)", "jit(f)/jvp(up)/transpose", "forward"),
        ("a = negate(p)", "jit(f)/jvp(up)/a;jit(f)/transpose(jvp())/b", "forward"),
        # By place.
        ("a = negate(p)", "jit(f)/transpose", "forward"),
        ("a = negate(backward)", "jit(f)/mul", "optimizer"),
        ("a = negate(backward)", None, "optimizer"),
        ("a = negate(backward)", "broadcast.9", "optimizer"),
        ("a = negate(backward)", "x", "optimizer"),
        ("a = negate(forward)", None, "forward"),
    ],
)
def test_the_pass_by_name_else_by_place(instruction, name, expected):
    found = pass_by_name(step(line(instruction, name)))
    assert found[instruction.partition(" ")[0]] == expected
    assert (found["p"], found["forward"], found["backward"]) == PASSES[:3]


def test_tensorflow_names_the_gradient_of_a_layer_after_it():
    entry = [
        line("p = parameter(0)", "XLA_Args"),
        line("up = negate(p)", "model/dense/MatMul"),
        line("grad = negate(up)", "gradient_tape/model/dense/MatMul"),
        # XLA shares it with the backward pass.
        line("shared = negate(grad)", "model/norm/Rsqrt"),
        line("moment = negate(grad)", "adam/Mul"),
        line("rate = negate(p)", "adam/Cast"),
        line("ROOT new = add(moment, rate)", "adam/AssignSubVariableOp"),
    ]
    found = pass_by_name(module(entry=entry))
    assert (found["up"], found["grad"], found["shared"]) == ("forward", "backward", "forward")
    assert {found[name] for name in ("moment", "rate", "new")} == {"optimizer"}


def test_the_lines_of_pytorchs_optimizers_tell_them_from_its_backward_pass():
    adam = "/lib/site-packages/torch/optim/adam.py"
    entry = [
        line("p = parameter(0)", "xla__device_data"),
        line("up = negate(p)", "aten__mm", 7),
        line("relu = negate(up)", "aten__threshold_backward"),
        line("grad = negate(relu)", "aten__mm"),
        line("moment = negate(grad)", "aten__lerp.2/aten__lerp", 447, adam),
        line("ROOT new = negate(moment)", "aten__addcdiv", 537, adam),
    ]
    found = pass_by_name(module(entry=entry))
    assert [found[name] for name in ("up", "relu", "grad", "moment", "new")] == [
        *("forward", "backward", "backward", "optimizer", "optimizer")
    ]


def test_without_a_backward_pass_all_else_is_other():
    entry = [*PARAMETERS, line("a = negate(p)", "jit(f)/mul"), line("ROOT b.remat = negate(a)")]
    assert pass_by_name(module(entry=entry)) == {
        **{"p": "argument", "lr": "argument", "a": "other", "b.remat": "rematerialised"}
    }


def test_the_optimizer_is_all_that_reads_gradients_at_any_distance():
    found = pass_by_name(
        step(
            line("moment = multiply(backward, lr)", "jit(f)/mul"),
            line("both = tuple(moment, p)"),
            line("element = get-tuple-element(both), index=1"),
            line("scaled = negate(element)", "jit(f)/sub"),
        )
    )
    assert {found[name] for name in ("moment", "both", "element", "scaled")} == {"optimizer"}


def test_what_the_optimizer_alone_reads_is_its_own():
    found = pass_by_name(
        step(
            line("rate = negate(lr)", "jit(f)/mul"),
            line("moved = copy(rate)"),
            line("half = multiply(moved, lr)", "jit(f)/mul"),
            line("update = multiply(half, backward)", "jit(f)/mul"),
            line("mask = negate(p)", "jit(f)/ge"),
            line("again = multiply(mask, forward)", "jit(f)/jvp()/mul"),
            line("too = multiply(mask, backward)", "jit(f)/mul"),
            line("unread = negate(lr)", "jit(f)/mul"),
        )
    )
    assert {found[name] for name in ("rate", "moved", "half", "update")} == {"optimizer"}
    assert (found["mask"], found["unread"]) == ("forward", "forward")


def test_constants_of_the_backward_pass_do_not_spread_its_reach():
    text = module(
        entry=[
            *PARAMETERS,
            line("zero = constant(0)", "jit(f)/transpose(jvp())/scatter-add"),
            line("wide = negate(zero)", "jit(f)/transpose(jvp())/broadcast_in_dim"),
            line("ids = maximum(p, wide)", "jit(f)/max"),
            line("forward = negate(ids)", "jit(f)/jvp()/neg"),
            line("ROOT backward = add(forward, wide)", "jit(f)/transpose(jvp())/neg"),
        ]
    )
    assert pass_by_name(text)["ids"] == "forward"


@pytest.mark.parametrize(
    ("inner", "outer", "source", "expected"),
    [
        (None, "jit(f)/jvp()/neg", "p", ("forward", "forward")),
        (None, "jit(f)/transpose(jvp())/neg", "p", ("backward", "backward")),
        ("/add", "jit(f)/transpose(jvp())/neg", "p", ("backward", "backward")),
        ("checkpoint/rematted_computation/add", None, "p", ("rematerialised", "forward")),
        (None, "jit(f)/mul", "backward", ("optimizer", "optimizer")),
        (None, None, "backward", ("optimizer", "optimizer")),
        ("jit(f)/mul", "jit(f)/transpose(jvp())/neg", "p", ("optimizer", "backward")),
        ("jit(f)/transpose(jvp())/neg", "jit(f)/mul", "p", ("backward", "optimizer")),
        ("jit(f)/mul", "jit(f)/jvp()/neg", "p", ("forward", "forward")),
    ],
)
def test_fused_instructions_follow_their_names_then_their_caller(inner, outer, source, expected):
    body = computation("fused", line("in = parameter(0)"), line("ROOT root = negate(in)", inner))
    call = line(f"it = fusion({source}), kind=kLoop, calls=%fused", outer)
    found = pass_by_name(step(call, computations=[body]))
    assert (found["root"], found["it"]) == expected


CONDITION = computation("condition", line("c = parameter(0)"), line("ROOT less = negate(c)"))


def loop(*body, name=None, operand="forward"):
    """A loop over these instructions, after the parameter `b`."""
    called = computation("body", line("b = parameter(0)"), *body)
    return (CONDITION, called), line(
        f"loop = while({operand}), condition=%condition, body=%body", name
    )


@pytest.mark.parametrize("name", [None, "jit(f)/while", "jit(f)/jit(main)/while[cond_nconsts=0]"])
def test_a_loop_that_holds_backward_instructions_is_backward(name):
    computations, instruction = loop(
        line("inner = negate(b)", "jit(f)/jit(main)/transpose(jvp(while))/body/mul"),
        line("plain = negate(inner)"),
        line("ROOT index = negate(plain)", "jit(f)/while/body/add"),
        name=name,
    )
    found = pass_by_name(step(instruction, computations=computations))
    assert [found[one] for one in ("loop", "inner", "plain", "index")] == ["backward"] * 4


def test_a_loop_around_differentiated_code_is_looked_into():
    computations, instruction = loop(
        line("mask = negate(b)", "jit(f)/while/body/ge"),
        line("made = multiply(b, mask)", "jit(f)/while/body/jvp(up)/mul"),
        line("nameless = negate(made)"),
        line("gradient = multiply(made, mask)", "jit(f)/while/body/transpose(jvp(up))/mul"),
        line("sum = negate(gradient)", "jit(f)/while/body/add"),
        line("ROOT step = negate(mask)", "jit(f)/while/body/add"),
        name="jit(f)/while",
    )
    found = pass_by_name(step(instruction, computations=computations))
    assert {name: found[name] for name in ("mask", "made", "nameless", "step")} == dict.fromkeys(
        ("mask", "made", "nameless", "step"), "forward"
    )
    assert (found["gradient"], found["sum"]) == ("backward", "optimizer")


def test_a_loop_is_no_reader_of_the_optimizer():
    body = line("ROOT n = negate(b)", "jit(f)/while/body/neg")
    computations, instruction = loop(body, operand="start")
    start = line("start = negate(lr)", "jit(f)/mul")
    update = line("update = add(loop, backward)", "jit(f)/add")
    found = pass_by_name(step(start, instruction, update, computations=computations))
    assert (found["start"], found["loop"], found["update"]) == ("forward", "forward", "optimizer")


def old_step(*instructions):
    """A training step by JAX 0.4, which drops a `jvp()` without a name."""
    return module(
        entry=[
            *PARAMETERS,
            line("hidden = negate(p)", "jit(f)/jit(main)/dot_general", 43),
            line("loss = negate(hidden)", "jit(f)/jit(main)/jvp(jit(log_softmax))/sub", 44),
            line(
                "gradient = negate(loss)",
                "jit(f)/jit(main)/transpose(jvp(jit(log_softmax)))/sub",
                44,
            ),
            *instructions,
            line("ROOT end = negate(gradient)"),
        ]
    )


def test_old_jax_tells_backward_from_optimizer_by_the_source_line():
    found = pass_by_name(
        old_step(
            line("head = negate(gradient)", "jit(f)/jit(main)/dot_general", 43),
            line("update = negate(head)", "jit(f)/jit(main)/sub", 50),
            line("nowhere = negate(head)", "jit(f)/jit(main)/sub"),
        )
    )
    assert [found[name] for name in ("hidden", "head", "update", "nowhere")] == [
        *("forward", "backward", "optimizer", "optimizer")
    ]


def test_later_jax_has_no_such_rule():
    text = old_step(line("head = negate(gradient)", "jit(f)/jit(main)/dot_general", 43))
    assert pass_by_name(text.replace("/jit(main)/", "/"))["head"] == "optimizer"
