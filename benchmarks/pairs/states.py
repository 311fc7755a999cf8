"""States of other shapes, with and without donation: averages, small types, statistics, caches."""

from itertools import pairwise

import jax
import jax.numpy as jnp

from .networks import adam, with_moments
from .registry import HALF, donation, pair


@pair
def average_in_step(place):
    """A classifier's step: Adam's state and a moving average of the weights."""

    def step(state, average, images, labels):
        def loss(weights):
            x = images
            for kernel, scale in weights["blocks"]:
                x = jax.lax.conv_general_dilated(
                    x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
                x = jax.nn.relu(x * scale)
            logits = x.reshape(len(x), -1) @ weights["head"]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

        state = adam(state, jax.grad(loss)(state["params"]))
        average = jax.tree.map(lambda a, w: 0.999 * a + 0.001 * w, average, state["params"])
        return state, average

    sizes = (3, 256, 512, 1024)
    blocks = [
        (place.array(3, 3, inner, outer), place.array(outer)) for inner, outer in pairwise(sizes)
    ]
    weights = {"blocks": blocks, "head": place.array(8 * 8 * 1024, 1000)}
    images, labels = place.array(32, 64, 64, 3), place.array(32, dtype="int32")
    return donation(step, with_moments(place, weights), weights, images, labels, donated=(0, 1))


@pair
def moments_in_int8(place):
    """An optimizer whose moments are int8 with a scale for each row."""

    def packed(moment):
        scale = jnp.max(jnp.abs(moment), -1, keepdims=True) / 127 + 1e-12
        return jnp.round(moment / scale).astype(jnp.int8), scale

    def step(weights, moments, x, targets):
        def loss(weights):
            y = x
            for weight in weights:
                y = y + jnp.tanh(y @ weight)
            return jnp.mean((y - targets) ** 2)

        gradients = jax.grad(loss)(weights)
        new = [
            packed(0.9 * whole * scale + gradient)
            for (whole, scale), gradient in zip(moments, gradients, strict=True)
        ]
        moved = [
            weight - 1e-3 * jnp.sign(whole * scale)
            for weight, (whole, scale) in zip(weights, new, strict=True)
        ]
        return moved, new

    weights = [place.array(6144, 6144) for _ in range(4)]
    moments = [(place.array(6144, 6144, dtype="int8"), place.array(6144, 1)) for _ in weights]
    x = place.array(256, 6144)
    return donation(step, weights, moments, x, x, donated=(0, 1))


@pair
def moments_in_bfloat16(place):
    """Adam on a model of two large tables, with both moments in bfloat16."""

    def step(state, ids, targets):
        def loss(params):
            return jnp.mean((params["table"][ids] @ params["out"] - targets) ** 2)

        gradients = jax.grad(loss)(state["params"])

        def moment(rate, power):
            return lambda m, g: (rate * m.astype(jnp.float32) + (1 - rate) * g**power).astype(HALF)

        mu = jax.tree.map(moment(0.9, 1), state["mu"], gradients)
        nu = jax.tree.map(moment(0.99, 2), state["nu"], gradients)

        def moved(weight, m, v):
            root = jnp.sqrt(v.astype(jnp.float32)) + 1e-8
            return weight - 1e-3 * m.astype(jnp.float32) / root

        return {"params": jax.tree.map(moved, state["params"], mu, nu), "mu": mu, "nu": nu}

    shapes = {"table": (100_000, 512), "out": (512, 16384)}
    state = {"params": place.arrays(shapes)}
    state |= {name: place.arrays(shapes, HALF) for name in ("mu", "nu")}
    return donation(
        step, state, place.array(1024, dtype="int32"), place.array(1024, 16384), donated=(0,)
    )


@pair
def statistics_of_batches(place):
    """A convolutional network with batch norm: weights, momentum and running statistics."""

    def step(weights, moments, statistics, images, targets):
        def loss(weights):
            x, new = images, []
            for (kernel, scale, bias), (mean, spread) in zip(weights, statistics, strict=True):
                x = jax.lax.conv_general_dilated(
                    x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
                now = x.mean((0, 1, 2)), x.var((0, 1, 2))
                x = jax.nn.relu((x - now[0]) * jax.lax.rsqrt(now[1] + 1e-5) * scale + bias)
                new.append((0.9 * mean + 0.1 * now[0], 0.9 * spread + 0.1 * now[1]))
            return jnp.mean((x.mean((1, 2)) - targets) ** 2), new

        gradients, statistics = jax.grad(loss, has_aux=True)(weights)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, moments), moments, statistics

    channels, wide = place.array(1024), place.array(3, 3, 1024, 1024)
    weights = [(wide, channels, channels) for _ in range(4)]
    statistics = [(channels, channels) for _ in weights]
    images, targets = place.array(16, 16, 16, 1024), place.array(16, 1024)
    return donation(step, weights, weights, statistics, images, targets, donated=(0, 1, 2))


@pair
def cache_in_int8(place):
    """Tokens in a loop whose carry has a cache in int8, written round and round."""

    def decode(weights, cache, x, position):
        def token(number, state):
            x, cache = state
            at = (position + number) % cache["keys"].shape[1]
            made = {name: x @ weights[name] for name in ("keys", "values")}
            cache = {
                name: jax.lax.dynamic_update_slice(
                    cache[name], jnp.round(made[name] * 16).astype(jnp.int8)[:, None], (0, at, 0)
                )
                for name in made
            }
            scores = jnp.einsum("bd,bsd->bs", x, cache["keys"].astype(HALF)) / 16
            chances = jax.nn.softmax(scores.astype(jnp.float32)).astype(HALF)
            mixed = jnp.einsum("bs,bsd->bd", chances, cache["values"].astype(HALF)) / 16
            return x + mixed @ weights["out"], cache

        return jax.lax.fori_loop(0, 32, token, (x, cache))

    weights = place.arrays(dict.fromkeys(("keys", "values", "out"), (2048, 2048)), HALF)
    cache = place.arrays(dict.fromkeys(("keys", "values"), (16, 8192, 2048)), "int8")
    x, position = place.array(16, 2048, dtype=HALF), place.array(dtype="int32")
    return donation(decode, weights, cache, x, position, donated=(1,))


@pair
def prompt_into_cache(place):
    """A prompt's keys and values are written to the front of a long cache, layer by layer."""

    def read(weights, caches, x):
        new = []
        for layer, (keys, values) in zip(weights, caches, strict=True):
            made = (x @ layer["keys"], x @ layer["values"])
            scores = jnp.einsum("bld,bmd->blm", x, made[0]).astype(jnp.float32)
            x = x + jnp.einsum("blm,bmd->bld", jax.nn.softmax(scores).astype(HALF), made[1])
            new.append(
                tuple(
                    jax.lax.dynamic_update_slice(old, part, (0, 0, 0))
                    for old, part in zip((keys, values), made, strict=True)
                )
            )
        return x[:, -1], new

    layers = [place.arrays(dict.fromkeys(("keys", "values"), (1024, 1024)), HALF) for _ in range(4)]
    cache = place.array(8, 8192, 1024, dtype=HALF)
    x = place.array(8, 512, 1024, dtype=HALF)
    return donation(read, layers, [(cache, cache) for _ in layers], x, donated=(1,))
