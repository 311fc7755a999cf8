"""Programs whose largest buffers rest while the peak passes, and what they are on the host."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .networks import momentum
from .registry import HALF, Pair, Side, pair

OFFLOADED = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["idle"],
    offload_src="device",
    offload_dst="pinned_host",
)


def kept(x):
    """A value as it is."""
    return x


def named(x):
    """A value that the policy moves to the host."""
    return checkpoint_name(x, "idle")


def stepped(loss):
    """A step of momentum on a loss of weights and inputs."""

    def step(weights, moments, x, targets):
        return momentum(weights, moments, jax.grad(loss)(weights, x, targets))

    return step


def offloaded(model, weights, x, targets):
    """The pair of a step that keeps what `model` marks on the device, and on the host."""
    plain = stepped(model(kept))
    moved = stepped(jax.checkpoint(model(named), policy=OFFLOADED))
    arguments = (weights, weights, x, targets)
    before, after = (Side(step, arguments, (0, 1)) for step in (plain, moved))
    return Pair("offload", before, after)


def word_loss(x, head, targets):
    """The mean loss of words, from activations and the head's weights."""
    logits = (x @ head).astype(jnp.float32)
    told = jnp.take_along_axis(logits, targets[:, None], 1)
    return jnp.mean(jax.nn.logsumexp(logits, -1, keepdims=True) - told)


@pair
def offload_before_logits(place):
    """Four dense layers whose activations rest while the loss on many words is computed."""

    def model(mark):
        def loss(weights, x, targets):
            for weight in weights["layers"]:
                x = mark(jnp.tanh(x @ weight))
            return word_loss(x, weights["head"], targets)

        return loss

    layers = [place.array(2048, 2048, dtype=HALF) for _ in range(4)]
    weights = {"layers": layers, "head": place.array(2048, 32768, dtype=HALF)}
    x, targets = place.array(16384, 2048, dtype=HALF), place.array(16384, dtype="int32")
    return offloaded(model, weights, x, targets)


@pair
def offload_checkpointed_scan(place):
    """A scan over checkpointed layers, whose inputs rest while the loss is computed."""

    def model(policy, mark):
        def loss(weights, x, targets):
            def layer(x, each):
                x = mark(x)
                return x + jax.nn.gelu(x @ each["up"]) @ each["down"], None

            x, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, weights["layers"])
            return word_loss(x, weights["head"], targets)

        return loss

    layers = place.arrays({"up": (8, 2048, 4096), "down": (8, 4096, 2048)}, HALF)
    weights = {"layers": layers, "head": place.array(2048, 32768, dtype=HALF)}
    x, targets = place.array(16384, 2048, dtype=HALF), place.array(16384, dtype="int32")
    before, after = (
        Side(stepped(model(policy, mark)), (weights, weights, x, targets), (0, 1))
        for policy, mark in ((None, kept), (OFFLOADED, named))
    )
    return Pair("offload", before, after)


@pair
def offload_skips(place):
    """An hourglass of convolutions, whose middle rests while the wide activations are there."""

    def convolved(x, kernel, stride=1):
        return jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def model(mark):
        def loss(weights, x, targets):
            skip = jnp.tanh(convolved(x, weights["first"]))
            x = mark(convolved(skip, weights["down"], 2))
            for kernel in weights["middle"]:
                x = mark(x + mark(jnp.tanh(convolved(x, kernel))))
            wide = jax.image.resize(x, (*skip.shape[:3], x.shape[3]), "nearest")
            x = convolved(wide, weights["last"]) * skip
            return jnp.mean((x - targets).astype(jnp.float32) ** 2)

        return loss

    weights = {
        "first": place.array(3, 3, 128, 128, dtype=HALF),
        "down": place.array(3, 3, 128, 512, dtype=HALF),
        "middle": [place.array(3, 3, 512, 512, dtype=HALF) for _ in range(4)],
        "last": place.array(3, 3, 512, 128, dtype=HALF),
    }
    x = place.array(16, 128, 128, 128, dtype=HALF)
    return offloaded(model, weights, x, x)


def rested(move, back):
    """A table that is computed, rests while something larger is, and is read again."""

    def infer(weights, x, queries):
        table = jnp.tanh(x @ weights["table"])
        first = table.sum(1)
        table = move(table)
        y = queries * first.sum()
        for weight in weights["layers"]:
            y = jax.nn.gelu(y @ weight)
        last = y.sum(0)
        return last, (back(table, last) * y.mean()).sum(0)

    return infer


@pair
def offload_table(place):
    """No gradient: the table is put on the host, and taken back for its last use."""
    weights = {
        "table": place.array(2048, 8192, dtype=HALF),
        "layers": [place.array(2048, 16384, dtype=HALF), place.array(16384, 2048, dtype=HALF)],
    }
    arguments = (
        weights,
        place.array(32768, 2048, dtype=HALF),
        place.array(32768, 2048, dtype=HALF),
    )

    def to_host(table):
        return jax.device_put(table, jax.memory.Space.Host)

    def taken_back(table, last):
        # Otherwise the transfer back begins at once.
        table, _ = jax.lax.optimization_barrier((table, last))
        return jax.device_put(table, jax.memory.Space.Device)

    before, after = (
        rested(kept, lambda table, _: table),
        rested(to_host, taken_back),
    )
    return Pair("offload", Side(before, arguments), Side(after, arguments))
