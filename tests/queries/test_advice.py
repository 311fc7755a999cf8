"""Advice: on functions as people write them, in which order it is told, and by whom."""

import numpy as np
import pytest

import memhouse
from memhouse.advice.asked_program import Change
from memhouse.advice.finding import (
    Finding,
    Grade,
    in_full,
    ranked,
    saved_words,
    to_follow,
    with_true_range,
)
from memhouse.cli.render.markdown import as_code, as_text
from memhouse.queries.check import what_to_change
from memhouse.schema.readable import human_bytes

from ..support.command import run_memhouse
from ..support.warehouse import reading, writing

TABLE = np.ones((1024, 1024), np.float32)
ROW = np.ones(1024, np.float32)


# --- functions, compiled here by JAX for CPU --------------------------------------------


@pytest.fixture(scope="module")
def jax():
    """JAX on the CPU; only the process that runs these tests imports it."""
    found = pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    found.config.update("jax_platforms", "cpu")
    return found


def advice(jax, function, *arguments):
    return memhouse.record(jax.jit(function), *arguments).advise().findings


def gradients_of(jax):
    def loss(weights, x):
        h = x
        for w in weights:
            h = jax.numpy.tanh(h @ w.astype(x.dtype))
        return jax.numpy.mean(h.astype(np.float32) ** 2)

    return jax.grad(loss)


def test_moved_weights_are_the_next_value_and_gradients_are_not(jax):
    """The caller of a gradient has the weights still to move, and needs them."""
    gradients = gradients_of(jax)

    def step(weights, x):
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradients(weights, x))

    kinds = {each.kind for each in advice(jax, gradients, [TABLE, TABLE], TABLE[:64])}
    assert "not donated" not in kinds
    first = advice(jax, step, [TABLE, TABLE], TABLE[:64])[0]
    assert first.kind == "not donated"
    assert first.saving_bytes > 0
    # Stored in bfloat16 a weight has a gradient in bfloat16: more than is told would change.
    found = advice(jax, gradients, [TABLE, TABLE], TABLE[:64].astype(jax.numpy.bfloat16))
    assert {each.grade for each in found if each.kind == "wider than read"} == {Grade.fact}


def test_an_argument_is_named_where_it_can_be(jax):
    """JAX refuses the name of `*rest`, and `args[0]` of a list is not the first argument."""

    def make():
        def update(cache, row):
            return cache.at[3].set(row)

        return update

    def rest(row, *rest):
        return [each.at[0].set(row) for each in rest]

    def args(args, row):
        return [each.at[0].set(row) for each in args]

    (found,) = advice(jax, make(), TABLE, ROW)
    assert "donate_argnames=('cache',)" in found.write
    assert found.saving_bytes == TABLE.nbytes
    assert "test_advice.py:" in found.source
    for function, arguments in ((rest, (ROW, TABLE, TABLE)), (args, ([TABLE, TABLE], ROW))):
        first = advice(jax, function, *arguments)[0]
        assert first.kind == "not donated"
        assert "donate_argnums" in first.write
        assert "donate_argnames" not in first.write


def test_a_batch_of_as_many_as_the_layers_is_no_stack(jax):
    """What the scan hands on has the batch as its first dimension, and here that is 4 too."""
    jnp = jax.numpy

    def loss_of(weights, x):
        def layer(x, w):
            return x + jnp.tanh(jnp.sin(x) @ w[0]) @ w[1], jnp.sort(x)

        x, ordered = jax.lax.scan(layer, x, weights)
        return x.sum(), ordered

    def step(weights, x):
        gradients, ordered = jax.grad(loss_of, has_aux=True)(weights, x)
        return jax.tree.map(lambda w, g: w - g, weights, gradients), jnp.log(ordered).mean()

    weights = [np.ones((4, 256, 1024), np.float32), np.ones((4, 1024, 256), np.float32)]
    x = np.ones((4, 512, 256), np.float32)
    found = advice(jax, step, weights, x)
    assert any(f"carry stays saved, {human_bytes(4 * x.nbytes)}" in each.why for each in found)


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
    paragraphs = in_full(told)
    assert len(paragraphs) == 3
    assert paragraphs[0][-1].startswith("or ")
    # Facts stay in the order of the finders.
    told = ranked([finding(None, "scan"), finding(None), finding(None, "scan")])
    assert [each.choice for each in told] == ["scan", "scan", None]


def test_what_is_followed_at_once_is_of_different_buffers():
    """To store a weight narrower and to donate it do not go together as they are replayed."""
    change = Change()
    donate, narrow = (
        finding(9, values=(1, 2), change=change),
        finding(5, values=(2,), change=change),
    )
    other, flag = finding(3, change=change), finding(4)
    # A flag of the compiler is nothing that could be replayed.
    assert to_follow([donate, narrow, flag, other]) == (donate, other)


def test_a_range_is_told_unless_it_has_no_width():
    wide = finding(8, grade=Grade.between, low_bytes=4, high_bytes=16)
    assert all(size in saved_words(with_true_range(wide)) for size in ("8 B", "4 B", "16 B"))
    point = with_true_range(finding(8, grade=Grade.between, low_bytes=8, high_bytes=8))
    assert point.grade is Grade.expected
    bound = with_true_range(finding(8, grade=Grade.at_most, low_bytes=8, high_bytes=8))
    assert (bound.low_bytes, bound.high_bytes) == (None, 8)


# --- what `check` says to change --------------------------------------------------------


def test_only_programs_that_fail_are_advised(history):
    """Of three that grew two have nothing sure to change: a longer cache, a larger batch."""
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.check("2026-10-08")
        passing = warehouse.check("2026-10-02")
    with reading(history) as store:
        (change,) = what_to_change(store, found.verdicts)
        assert what_to_change(store, passing.verdicts) == []
    assert change.name == "llama-v5e/jit_train_step"
    (advised,) = change.findings
    assert "p, m and v" in advised.title
    # Formats for people say it if they are asked to, and those for programs do not.
    for output, asked in (("table", True), ("github", True), ("json", True), ("github", False)):
        options = ("--run", "2026-10-08", "-f", output, *(["--advise"] if asked else []))
        told = " ".join(run_memhouse("check", "--db", history, *options).stdout.split())
        assert (advised.title in told) == (asked and output != "json"), options


def test_a_dump_without_live_ranges_is_judged_all_the_same(own):
    with writing(own) as store:
        store.execute("DELETE FROM live_ranges")
    with memhouse.open(own, read_only=True) as warehouse:
        found = warehouse.check("2026-10-08")
    with reading(own) as store:
        assert what_to_change(store, found.verdicts) == []
    assert any(verdict.breaches for verdict in found.verdicts)


def test_names_are_text_in_markdown():
    assert as_text("a[0] <b> *c* `d` \\e") == r"a\[0\] \<b> \*c\* \`d\` \\e"
    assert as_code("x") == "`x`"
    assert as_code("a ` b") == "``a ` b``"
