"""The same program at another size or of another type: padding, and float32 read as bfloat16."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .networks import cross_entropy, layer_shapes, momentum, transformer_layer
from .registry import HALF, SAME, Pair, Side, pair


def decode_at(place, head):
    """One token of a decoder whose heads have this size."""

    def decode(weights, keys, values, x, position):
        q, k, v = (jnp.einsum("bd,dhe->bhe", x, weights[name]) for name in ("q", "k", "v"))
        keys = jax.lax.dynamic_update_slice(keys, k[:, None], (0, position, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v[:, None], (0, position, 0, 0))
        chances = jax.nn.softmax(jnp.einsum("bhe,bshe->bhs", q, keys))
        mixed = jnp.einsum("bhs,bshe->bhe", chances, values)
        return jnp.einsum("bhe,hed->bd", mixed, weights["out"]), keys, values

    shapes = dict.fromkeys(("q", "k", "v"), (1536, 16, head)) | {"out": (16, head, 1536)}
    cache = place.array(16, 2048, 16, head, dtype=HALF)
    x, position = place.array(16, 1536, dtype=HALF), place.array(dtype="int32")
    return Side(decode, (place.arrays(shapes, HALF), cache, cache, x, position), (1, 2))


@pair
def heads_96_to_128(place):
    """A cache of keys and values whose last dimension is no multiple of 128."""
    return Pair("pad", decode_at(place, 96), decode_at(place, 128))


@pair
def heads_144_to_128(place):
    """The same, down to the multiple below."""
    return Pair("unpad", decode_at(place, 144), decode_at(place, 128))


def convolutions_at(place, channels):
    """A step of a convolutional network with this many channels."""

    def step(kernels, moments, images):
        def loss(kernels):
            x = images
            for kernel in kernels:
                x = jax.nn.relu(
                    jax.lax.conv_general_dilated(
                        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                    )
                )
            return jnp.mean(x.astype(jnp.float32) ** 2)

        return momentum(kernels, moments, jax.grad(loss)(kernels))

    kernels = [place.array(3, 3, channels, channels, dtype=HALF) for _ in range(3)]
    images = place.array(64, 96, 96, channels, dtype=HALF)
    return Side(step, (kernels, kernels, images), (0, 1))


@pair
def channels_72_to_64(place):
    """Channels down to a multiple of 8 that divides 128."""
    return Pair("unpad", convolutions_at(place, 72), convolutions_at(place, 64))


def layers_at(place, length):
    """A step of two transformer layers on sequences of this length."""

    def step(weights, moments, x):
        def loss(weights):
            y = x
            for each in weights:
                y = transformer_layer(y, each, 12)
            return jnp.mean(y.astype(jnp.float32) ** 2)

        return momentum(weights, moments, jax.grad(loss)(weights))

    weights = [place.arrays(layer_shapes(768), HALF) for _ in range(2)]
    return Side(step, (weights, weights, place.array(8, length, 768, dtype=HALF)), (0, 1))


@pair
def sequence_1000_to_1024(place):
    """Sequences whose length is no multiple of 128."""
    return Pair("pad", layers_at(place, 1000), layers_at(place, 1024))


def vocabulary_at(place, words):
    """A step of an embedding that makes the logits as well."""

    def step(table, moments, tokens, labels):
        gradients = jax.grad(lambda table: cross_entropy(table[tokens], table, labels))(table)
        return momentum(table, moments, gradients)

    table, tokens = place.array(words, 768), place.array(4, 512, dtype="int32")
    return Side(step, (table, table, tokens, tokens), (0, 1))


@pair
def vocabulary_50257_to_50304(place):
    """Logits of a vocabulary that is no multiple of 128."""
    return Pair("pad", vocabulary_at(place, 50257), vocabulary_at(place, 50304))


def features_at(place, size):
    """Rows of a table of features, looked up and ranked."""

    def rank(table, ids, query):
        found = table[ids]
        return jax.lax.top_k(jnp.einsum("bnf,bf->bn", found, query), 16), found.sum(1)

    ids = place.array(512, 1024, dtype="int32")
    return Side(
        rank, (place.array(1_000_000, size, dtype=HALF), ids, place.array(512, size, dtype=HALF))
    )


@pair
def features_200_to_128(place):
    """Features down to the multiple below."""
    return Pair("unpad", features_at(place, 200), features_at(place, 128))


def dense_at(place, weight_type, input_type):
    """Inference in bfloat16, whatever the type of weights and inputs."""

    def infer(weights, x):
        x = x.astype(jnp.bfloat16)
        for weight in weights:
            x = jax.nn.relu(x @ weight.astype(jnp.bfloat16))
        return x

    weights = [
        place.array(4096, 8192, dtype=weight_type),
        place.array(8192, 4096, dtype=weight_type),
    ]
    return Side(infer, (weights, place.array(16384, 4096, dtype=input_type)))


@pair
def weights_to_bfloat16(place):
    """Weights in float32 that are only read through a convert."""
    return Pair("narrow", dense_at(place, "float32", HALF), dense_at(place, HALF, HALF))


@pair
def inputs_to_bfloat16(place):
    """Inputs in float32 that are only read through a convert."""
    return Pair("narrow", dense_at(place, HALF, "float32"), dense_at(place, HALF, HALF))


SAME[("inputs_to_bfloat16", "after")] = ("weights_to_bfloat16", "after")


@pair
def stacked_weights_to_bfloat16(place):
    """Weights in float32, of which a scan converts a layer at a time."""

    def infer(weights, x):
        def layer(x, each):
            up, down = (each[name].astype(jnp.bfloat16) for name in ("up", "down"))
            return x + jax.nn.relu(x @ up) @ down, None

        return jax.lax.scan(layer, x, weights)[0]

    shapes = {"up": (8, 2048, 8192), "down": (8, 8192, 2048)}
    x = place.array(2048, 2048, dtype=HALF)
    before, after = (Side(infer, (place.arrays(shapes, type_), x)) for type_ in ("float32", HALF))
    return Pair("narrow", before, after)


def keeping(kept_type):
    """An activation whose gradient reads its input in bfloat16, and keeps it as another type."""

    @jax.custom_vjp
    def swish(x):
        return x * jax.nn.sigmoid(x)

    def forward(x):
        return swish(x), x.astype(kept_type)

    def backward(kept, gradient):
        slope = jnp.tanh(kept.astype(jnp.bfloat16))
        return (gradient * slope.astype(jnp.float32),)

    swish.defvjp(forward, backward)
    return swish


def kept_at(place, kept_type, scanned):
    """A step of four layers in float32, in a scan or in a row."""
    swish = keeping(kept_type)

    def layer(x, weight):
        return x + swish(x @ weight), None

    def step(weights, moments, x):
        def loss(weights):
            y = x
            if scanned:
                y, _ = jax.lax.scan(layer, y, weights)
            for each in () if scanned else weights:
                y, _ = layer(y, each)
            return jnp.mean(y**2)

        return momentum(weights, moments, jax.grad(loss)(weights))

    weights = place.array(4, 2048, 2048)
    if not scanned:
        weights = [place.array(2048, 2048) for _ in range(4)]
    return Side(step, (weights, weights, place.array(16384, 2048)), (0, 1))


@pair
def scanned_residual_to_bfloat16(place):
    """A stack of what a gradient keeps in float32, and reads in bfloat16."""
    return Pair("narrow", kept_at(place, "float32", True), kept_at(place, HALF, True))


@pair
def residual_to_bfloat16(place):
    """The same with layers in a row."""
    return Pair("narrow", kept_at(place, "float32", False), kept_at(place, HALF, False))


def summed_at(place, unrolled, type_):
    """A step of checkpointed layers that save a product, summed in float32, for the gradient."""
    policy = jax.checkpoint_policies.save_only_these_names("hidden")

    def layer(x, each):
        hidden = jnp.dot(x, each["up"], preferred_element_type=jnp.float32)
        hidden = checkpoint_name(hidden.astype(type_), "hidden").astype(jnp.bfloat16)
        return x + jax.nn.gelu(hidden) @ each["down"], None

    def step(weights, moments, x):
        def loss(weights):
            y, inner = x, jax.checkpoint(layer, policy=policy)
            if unrolled:
                for each in weights:
                    y, _ = inner(y, each)
            else:
                y, _ = jax.lax.scan(inner, y, weights)
            return jnp.mean(y.astype(jnp.float32) ** 2)

        return momentum(weights, moments, jax.grad(loss)(weights))

    shapes = {"up": (1024, 4096), "down": (4096, 1024)}
    if unrolled:
        weights = [place.arrays(shapes, HALF) for _ in range(4)]
    else:
        weights = place.arrays({name: (4, *shape) for name, shape in shapes.items()}, HALF)
    return Side(step, (weights, weights, place.array(16384, 1024, dtype=HALF)), (0, 1))


@pair
def saved_sums_to_bfloat16(place):
    """Four layers in a row save sums in float32 that are only read as bfloat16."""
    return Pair("narrow", summed_at(place, True, "float32"), summed_at(place, True, HALF))


@pair
def scanned_sums_to_bfloat16(place):
    """The same in a scan."""
    return Pair("narrow", summed_at(place, False, "float32"), summed_at(place, False, HALF))


def messages_at(place, type_):
    """A step of three layers on a graph: sums over edges, and a checkpointed dense part."""

    @jax.checkpoint
    def dense(x, weight):
        return jnp.tanh(x.astype(jnp.bfloat16) @ weight)

    def step(weights, moments, nodes, sources, targets):
        def loss(weights):
            y = nodes
            for weight in weights:
                sums = jax.ops.segment_sum(y[sources].astype(jnp.float32), targets, len(y))
                y = dense(sums.astype(type_), weight)
            return jnp.mean(y.astype(jnp.float32) ** 2)

        return momentum(weights, moments, jax.grad(loss)(weights))

    weights = [place.array(2048, 2048, dtype=HALF) for _ in range(3)]
    edges = place.array(32768, dtype="int32")
    nodes = place.array(16384, 2048, dtype=HALF)
    return Side(step, (weights, weights, nodes, edges, edges), (0, 1))


@pair
def messages_to_bfloat16(place):
    """Sums in float32 that checkpointed layers save, and read as bfloat16 only."""
    return Pair("narrow", messages_at(place, "float32"), messages_at(place, HALF))
