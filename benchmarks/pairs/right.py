"""Programs that are right already: what can be donated is, and each layer is worked out again."""

import jax
import jax.numpy as jnp

from . import arrays, checkpoints, decoding, scans, states, training
from .networks import adam, with_moments
from .registry import HALF, PAIRS, SAME, Pair, Side, pair

# The second program of these pairs has nothing left to change.
DONE = (
    training.gpt_scan_step,
    training.embedding_update,
    training.lion_in_bfloat16,
    decoding.decode_in_fori,
    decoding.decode_step,
    decoding.cache_carried_by_scan,
    arrays.replay_buffer,
    arrays.diffusion_sampler,
    checkpoints.convolutions_scan_full,
    scans.mixed_precision_scan_full,
    scans.linear_attention_scan_full,
    states.cache_in_int8,
    states.prompt_into_cache,
    states.moments_in_int8,
)


def right(make):
    """The second program of a pair, as one that is right."""
    return lambda place: Pair("none", make(place).after)


PAIRS |= {f"right_{make.__name__}": right(make) for make in DONE}
SAME |= {(f"right_{make.__name__}", "before"): (make.__name__, "after") for make in DONE}


@pair
def right_mixed_precision(place):
    """Weights in float32 that are read through a convert, and by the optimizer as they are."""

    def step(state, x, targets):
        @jax.checkpoint
        def layer(x, weight):
            return x + jnp.tanh(x @ weight.astype(jnp.bfloat16)), None

        def loss(weights):
            y = jax.lax.scan(layer, x, weights)[0]
            return jnp.mean((y - targets).astype(jnp.float32) ** 2)

        return adam(state, jax.grad(loss)(state["params"]))

    state = with_moments(place, place.array(8, 2048, 2048))
    x = place.array(4096, 2048, dtype=HALF)
    return Pair("none", Side(step, (state, x, x), (0,)))


@pair
def right_inference(place):
    """A forward pass in bfloat16 at aligned sizes."""

    def infer(weights, x):
        def layer(x, each):
            return x + jax.nn.gelu(x @ each["up"]) @ each["down"], None

        return jnp.mean(jax.lax.scan(layer, x, weights)[0], 0)

    weights = place.arrays({"up": (12, 1024, 4096), "down": (12, 4096, 1024)}, HALF)
    return Pair("none", Side(infer, (weights, place.array(4096, 1024, dtype=HALF))))
