"""Gradients of layers without and with checkpoints, under policies of what to save."""

import jax
import jax.numpy as jnp

from .networks import layer_shapes, mixer_layer, mixer_shapes, momentum, transformer_layer
from .registry import HALF, PAIRS, SAME, Pair, Side, pair

POLICIES = {
    "full": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "dots_no_batch": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("attended", "widened"),
}


def step_of(model):
    """The step that trains a model: `model` takes weights and inputs and gives activations."""

    def step(weights, moments, x, targets):
        def loss(weights):
            return jnp.mean((model(weights, x) - targets).astype(jnp.float32) ** 2)

        return momentum(weights, moments, jax.grad(loss)(weights))

    return step


def saving_all(layer):
    """A layer that saves what its gradient needs."""
    return layer


def saving(policy):
    """The checkpoint of a layer under a policy."""
    return lambda layer: jax.checkpoint(layer, policy=POLICIES[policy])


def over_stack(layer):
    """A model of layers in a scan."""

    def model(kept):
        inner = kept(layer)

        def run(weights, x):
            return jax.lax.scan(lambda x, each: (inner(x, each), None), x, weights)[0]

        return run

    return model


def one_by_one(layer):
    """A model of layers in a row."""

    def model(kept):
        inner = kept(layer)

        def run(weights, x):
            for each in weights:
                x = inner(x, each)
            return x

        return run

    return model


def remat(model, weights, x, policy):
    """The pair of a model without checkpoints and with one around each layer."""
    before, after = (
        Side(step_of(model(kept)), (weights, weights, x, x), (0, 1))
        for kept in (saving_all, saving(policy))
    )
    return Pair("remat", before, after, policy)


def gpt_layer(x, weights):
    """A transformer layer with sixteen heads."""
    return transformer_layer(x, weights, 16)


def gpt_under(policy):
    """Six transformer layers in a scan, under a policy."""

    def make(place):
        weights = place.arrays(layer_shapes(1024, 6), HALF)
        return remat(over_stack(gpt_layer), weights, place.array(4, 1024, 1024, dtype=HALF), policy)

    return make


def mixer_under(policy):
    """Eight layers of an MLP mixer in a scan, under a policy."""

    def make(place):
        weights = place.arrays(mixer_shapes(256, 768, 8), HALF)
        return remat(
            over_stack(mixer_layer), weights, place.array(64, 256, 768, dtype=HALF), policy
        )

    return make


PAIRS |= {f"gpt_scan_{policy}": gpt_under(policy) for policy in POLICIES}
PAIRS |= {f"mixer_scan_{policy}": mixer_under(policy) for policy in ("full", "dots")}
SAME |= {
    (f"gpt_scan_{policy}", "before"): ("gpt_scan_full", "before")
    for policy in ("dots", "dots_no_batch", "names")
}
SAME[("mixer_scan_dots", "before")] = ("mixer_scan_full", "before")
SAME[("recurrent_inputs_to_bfloat16", "before")] = ("recurrent_scan_full", "after")
SAME[("gated_scan_elementwise", "before")] = ("gated_scan_full", "before")


@pair
def convolutions_scan_full(place):
    """Six layers of a depthwise convolution and a dense part, in a scan."""

    def layer(x, weights):
        y = jax.lax.conv_general_dilated(
            x,
            weights["kernel"],
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1],
        )
        return x + jax.nn.gelu(y @ weights["up"]) @ weights["down"]

    shapes = {"kernel": (6, 5, 5, 1, 128), "up": (6, 128, 512), "down": (6, 512, 128)}
    x = place.array(16, 64, 64, 128, dtype=HALF)
    return remat(over_stack(layer), place.arrays(shapes, HALF), x, "full")


def gated_layer(inside):
    """A product and a long elementwise part, which `inside` may put in a checkpoint."""

    @inside
    def gate(both):
        opened, new = jnp.split(both, 2, axis=-1)
        return jax.nn.sigmoid(opened) * jnp.tanh(new) * jnp.cos(new)

    def layer(x, weights):
        return x + gate(x @ weights["in"]) @ weights["out"]

    return layer


def gated_arguments(place):
    """Weights of eight gated layers, and the activations."""
    weights = place.arrays({"in": (8, 1024, 8192), "out": (8, 4096, 1024)}, HALF)
    return weights, place.array(4096, 1024, dtype=HALF)


@pair
def gated_scan_full(place):
    """Eight gated layers in a scan, each worked out again."""
    weights, x = gated_arguments(place)
    return remat(over_stack(gated_layer(saving_all)), weights, x, "full")


@pair
def gated_scan_elementwise(place):
    """The same; only the elementwise part is worked out again."""
    weights, x = gated_arguments(place)
    before, after = (
        Side(step_of(over_stack(gated_layer(inside))(saving_all)), (weights, weights, x, x), (0, 1))
        for inside in (saving_all, jax.checkpoint)
    )
    return Pair("remat", before, after, "elementwise part only")


def recurrent(kept):
    """A gated recurrent network over time."""

    def run(weights, inputs):
        @kept
        def cell(hidden, x):
            both = jax.nn.sigmoid(x @ weights["gates"] + hidden @ weights["hidden_gates"])
            opened, reset = jnp.split(both, 2, axis=-1)
            new = jnp.tanh(x @ weights["new"] + (reset * hidden) @ weights["hidden_new"])
            return opened * hidden + (1 - opened) * new

        def turn(hidden, x):
            hidden = cell(hidden, x)
            return hidden, hidden

        return jax.lax.scan(turn, jnp.zeros(inputs.shape[1:]), inputs)[1]

    return run


def recurrent_weights(place):
    """Weights in float32."""
    wide, narrow = (1024, 2048), (1024, 1024)
    shapes = {"gates": wide, "hidden_gates": wide, "new": narrow, "hidden_new": narrow}
    return place.arrays(shapes)


@pair
def recurrent_scan_full(place):
    """512 steps of time, each worked out again."""
    return remat(recurrent, recurrent_weights(place), place.array(512, 64, 1024), "full")


@pair
def recurrent_inputs_to_bfloat16(place):
    """Inputs in float32 of products that a TPU forms in bfloat16 unless told otherwise."""
    weights, targets = recurrent_weights(place), place.array(512, 64, 1024)
    before, after = (
        Side(
            step_of(recurrent(saving("full"))),
            (weights, weights, place.array(512, 64, 1024, dtype=type_), targets),
            (0, 1),
        )
        for type_ in ("float32", HALF)
    )
    return Pair("narrow", before, after)


@pair
def float32_carry_scan_full(place):
    """Layers that add to a carry in float32, and work in bfloat16."""

    def layer(x, weights):
        half = x.astype(jnp.bfloat16)
        return x + (jax.nn.gelu(half @ weights["up"]) @ weights["down"]).astype(jnp.float32)

    weights = place.arrays({"up": (8, 1024, 4096), "down": (8, 4096, 1024)}, HALF)
    return remat(over_stack(layer), weights, place.array(8192, 1024), "full")


@pair
def gpt_unrolled_full(place):
    """Three transformer layers in a row."""
    weights = [place.arrays(layer_shapes(1024), HALF) for _ in range(3)]
    return remat(one_by_one(gpt_layer), weights, place.array(4, 1024, 1024, dtype=HALF), "full")


@pair
def mixer_unrolled_full(place):
    """Four layers of an MLP mixer in a row."""
    weights = [place.arrays(mixer_shapes(256, 768), HALF) for _ in range(4)]
    return remat(one_by_one(mixer_layer), weights, place.array(64, 256, 768, dtype=HALF), "full")


@pair
def gated_unrolled_full(place):
    """Three gated layers in a row."""
    shapes = {"in": (1024, 8192), "out": (4096, 1024)}
    weights = [place.arrays(shapes, HALF) for _ in range(3)]
    x = place.array(16384, 1024, dtype=HALF)
    return remat(one_by_one(gated_layer(saving_all)), weights, x, "full")
