"""Advice on functions as people write them, compiled here by JAX for CPU."""

import numpy as np
import pytest

import memhouse
from memhouse.queries.advising.finding import Finding, Grade
from memhouse.queries.advising.ranking import ranked, to_follow
from memhouse.queries.advising.words import in_full, saved_words
from memhouse.queries.cells import human_bytes

TABLE = np.ones((1024, 1024), np.float32)
ROW = np.ones(1024, np.float32)


@pytest.fixture(scope="module")
def jax():
    """JAX on the CPU; only the process that runs these tests imports it."""
    found = pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    found.config.update("jax_platforms", "cpu")
    return found


def advice(jax, function, *arguments):
    return memhouse.record(jax.jit(function), *arguments).advise()


def loss(weights, x):
    import jax.numpy as jnp

    h = x
    for w in weights:
        h = jnp.tanh(h @ w.astype(x.dtype))
    return jnp.mean(h.astype(jnp.float32) ** 2)


# --- what may be donated ----------------------------------------------------------------


def test_a_gradient_is_not_the_next_value_of_a_weight(jax):
    """The caller has the weights still to move, and needs them."""

    def gradients(weights, x):
        return jax.grad(loss)(weights, x)

    found = advice(jax, gradients, [TABLE, TABLE], TABLE[:64])
    kinds = {each.kind: each for each in found.findings}
    assert "not donated" not in kinds
    assert kinds["input that fits an output"].grade is Grade.fact


def test_moved_weights_are_the_next_value(jax):
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradients)

    first = advice(jax, step, [TABLE, TABLE], TABLE[:64]).findings[0]
    assert first.kind == "not donated"
    assert first.saving_bytes > 0


def test_without_a_backward_pass_the_caller_has_to_know(jax):
    def update(cache, row):
        return cache.at[3].set(row)

    (found,) = advice(jax, update, TABLE, ROW).findings
    assert found.write == (
        "if nobody reads the old value again: donate_argnames=('cache',) in jax.jit, or its place"
        " in donate_argnums"
    )
    assert found.saving_bytes == TABLE.nbytes


def test_only_a_place_is_told_where_a_name_may_be_of_several_arguments(jax):
    """JAX refuses the name of `*rest`, and `args[0]` of a list is not the first argument."""

    def rest(row, *rest):
        return [each.at[0].set(row) for each in rest]

    def args(args, row):
        return [each.at[0].set(row) for each in args]

    for function, arguments in ((rest, (ROW, TABLE, TABLE)), (args, ([TABLE, TABLE], ROW))):
        first = advice(jax, function, *arguments).findings[0]
        assert first.kind == "not donated"
        assert first.write.endswith("in donate_argnums in jax.jit"), first.write


def test_a_function_in_a_function_has_a_line(jax):
    def make():
        def update(cache, row):
            return cache.at[3].set(row)

        return update

    (found,) = advice(jax, make(), TABLE, ROW).findings
    assert "test_advice_of_functions.py:" in found.source


def test_a_weight_whose_gradient_comes_in_its_type_is_a_fact(jax):
    """Stored in bfloat16 it has a gradient in bfloat16, so that more than told would change."""

    def gradients(weights, x):
        return jax.grad(loss)(weights, x)

    half = TABLE[:64].astype(jax.numpy.bfloat16)
    found = advice(jax, gradients, [TABLE, TABLE], half)
    grades = {each.grade for each in found.findings if each.kind == "wider than read"}
    assert grades == {Grade.fact}


def test_a_batch_of_as_many_as_the_layers_is_no_stack(jax):
    """What the scan hands on has the batch as its first dimension, and here that is 4 too."""
    import jax.numpy as jnp

    def loss_of(weights, x):
        def layer(x, w):
            return x + jnp.tanh(jnp.sin(x) @ w[0]) @ w[1], jnp.sort(x)

        x, ordered = jax.lax.scan(layer, x, weights)
        return x.sum(), ordered

    def step(weights, x):
        gradients, ordered = jax.grad(loss_of, has_aux=True)(weights, x)
        return jax.tree.map(lambda w, g: w - g, weights, gradients), jnp.log(ordered).mean()

    weights = [np.ones((4, 256, 1024), np.float32), np.ones((4, 1024, 256), np.float32)]
    for batch in (3, 4):
        x = np.ones((batch, 512, 256), np.float32)
        found = advice(jax, step, weights, x).findings
        (scan,) = (each for each in found if each.title == "compute the layers of the scan again")
        carry = human_bytes(4 * x.nbytes)
        assert f"the carry stays saved, {carry}" in scan.why


# --- in which order it is told ----------------------------------------------------------


def finding(saving, choice=None, values=(), **others):
    return Finding(
        kind="k",
        title=f"save {saving}",
        grade=others.pop("grade", Grade.exact),
        write="w",
        why="because",
        value_ids=values,
        saving_bytes=saving,
        choice=choice,
        **others,
    )


def test_what_excludes_each_other_stands_together():
    told = ranked([finding(4), finding(3, "scan"), finding(5, "scan"), finding(None)])
    assert [each.saving_bytes for each in told] == [5, 3, 4, None]
    assert [first for first, *_ in in_full(told)] == [
        "-5 B (exact): save 5",
        "or -3 B (exact): save 3",
        "-4 B (exact): save 4",
        "save None",
    ]


def test_facts_stay_in_the_order_of_the_finders():
    told = ranked([finding(None, "scan"), finding(None), finding(None, "scan")])
    assert [each.choice for each in told] == ["scan", "scan", None]


def test_what_is_followed_at_once_is_of_different_buffers():
    """To store a weight narrower and to donate it do not go together as they are replayed."""
    donate, narrow, other = finding(9, values=(1, 2)), finding(5, values=(2,)), finding(3)
    assert to_follow([donate, narrow, other]) == (donate, other)


def test_a_range_without_width_is_a_figure():
    wide = finding(8, grade=Grade.between, low_bytes=4, high_bytes=16)
    assert saved_words(wide) == "-8 B (between -4 B and -16 B)"
    point = finding(8, grade=Grade.between, low_bytes=8, high_bytes=8)
    assert saved_words(point) == "-8 B (expected)"
