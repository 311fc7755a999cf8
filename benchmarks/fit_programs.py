"""Twelve programs whose largest batch `fits.py` searches; `memhouse fit` calls their functions.

Needs `jax`, `optax`, `flax` and `keras`.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

HALF = jnp.bfloat16
Built = tuple[Any, tuple[Any, ...]]


def shape(*sizes: int, dtype: Any = HALF) -> Any:
    """What stands for an array."""
    return jax.ShapeDtypeStruct(sizes, dtype)


def training(loss: Callable[..., Any], params: Any, *batch: Any) -> Built:
    """A step of gradient descent with momentum."""

    def train_step(params: Any, momentum: Any, *batch: Any) -> tuple[Any, ...]:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g.astype(m.dtype), momentum, grads)
        return (
            jax.tree.map(lambda p, m: p - m.astype(p.dtype) / 1000, params, momentum),
            momentum,
            value,
        )

    return jax.jit(train_step, donate_argnums=(0, 1)), (params, params, *batch)


# A transformer: scanned, unrolled, and over a mesh of eight.

LAYERS, WIDTH, HEADS, WORDS, LENGTH = 4, 512, 8, 8192, 512


def layer_shapes() -> dict[str, Any]:
    """The weights of a layer."""
    return {
        "qkv": (WIDTH, 3, HEADS, WIDTH // HEADS),
        "out": (HEADS, WIDTH // HEADS, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }


def normed(x: Any) -> Any:
    """The root mean square norm."""
    y = x.astype(jnp.float32)
    return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def layer(x: Any, w: Any) -> Any:
    """Causal attention and two dense layers."""
    q, k, v = jnp.einsum("bld,dche->cblhe", normed(x), w["qkv"])
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k).astype(jnp.float32) / 8
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(x.dtype)
    y = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
    x = x + jnp.einsum("bqhe,hed->bqd", y, w["out"])
    return x + jax.nn.gelu(normed(x) @ w["up"]) @ w["down"]


def next_words(logits: Any, tokens: Any) -> Any:
    """The mean loss of the next tokens."""
    logs = jax.nn.log_softmax(logits[:, :-1].astype(jnp.float32))
    return -jnp.take_along_axis(logs, tokens[:, 1:, None], -1).mean()


REMAT = {
    "none": jax.checkpoint_policies.everything_saveable,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
}


def scanned(*, batch: int, remat: str = "none") -> Built:
    """A transformer whose layers are scanned."""

    def loss(params: Any, tokens: Any) -> Any:
        body = jax.checkpoint(lambda x, w: (layer(x, w), None), policy=REMAT[remat])
        x, _ = lax.scan(body, params["embed"][tokens], params["layers"])
        return next_words(normed(x) @ params["embed"].T, tokens)

    layers = {name: shape(LAYERS, *sizes) for name, sizes in layer_shapes().items()}
    params = {"embed": shape(WORDS, WIDTH), "layers": layers}
    return training(loss, params, shape(batch, LENGTH, dtype="int32"))


def unrolled_loss(params: Any, tokens: Any) -> Any:
    """The loss of a transformer whose layers stand one after the other."""
    x = params["embed"][tokens]
    for w in params["layers"]:
        x = layer(x, w)
    return next_words(normed(x) @ params["embed"].T, tokens)


def unrolled_params() -> dict[str, Any]:
    """The weights of such a transformer."""
    layers = [{name: shape(*sizes) for name, sizes in layer_shapes().items()} for _ in range(2)]
    return {"embed": shape(WORDS, WIDTH), "layers": layers}


def unrolled(*, batch: int) -> Built:
    """A transformer whose layers stand one after the other."""
    return training(unrolled_loss, unrolled_params(), shape(batch, LENGTH, dtype="int32"))


def mesh_of_eight(devices: list[Any], *, batch: int) -> Built:
    """The same over eight devices: the batch lies on four, the weights on two."""
    import numpy as np

    mesh = Mesh(np.array(devices).reshape(4, 2), ("data", "model"))

    def placed(leaf: Any, *spec: str | None) -> Any:
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    specs = {
        "qkv": (None, None, "model"),
        "out": ("model",),
        "up": (None, "model"),
        "down": ("model",),
    }
    params = unrolled_params()
    params = {
        "embed": placed(params["embed"], "model"),
        "layers": [
            {name: placed(leaf, *specs[name]) for name, leaf in each.items()}
            for each in params["layers"]
        ],
    }
    return training(unrolled_loss, params, placed(shape(batch, LENGTH, dtype="int32"), "data"))


# Networks of other kinds.


def resnet(*, batch: int) -> Built:
    """Residual blocks of convolutions, with batch statistics."""

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)
        z = y.astype(jnp.float32)
        mean = z.mean((0, 1, 2))
        scale = lax.rsqrt(z.var((0, 1, 2)) + 1e-5)
        return jax.nn.relu((z - mean) * scale).astype(x.dtype)

    def loss(params: Any, images: Any, labels: Any) -> Any:
        x = conv(images, params["first"], 2)
        for at, block in enumerate(params["blocks"]):
            skip = conv(x, block["skip"], 2 if at else 1)
            x = skip + conv(conv(x, block["a"], 2 if at else 1), block["b"])
        logs = jax.nn.log_softmax((x.mean((1, 2)) @ params["head"]).astype(jnp.float32))
        return -jnp.take_along_axis(logs, labels[:, None], -1).mean()

    blocks, before = [], 64
    for width in (64, 128, 256):
        blocks.append(
            {
                "skip": shape(1, 1, before, width),
                "a": shape(3, 3, before, width),
                "b": shape(3, 3, width, width),
            }
        )
        before = width
    params = {"first": shape(7, 7, 3, 64), "blocks": blocks, "head": shape(256, 1000)}
    return training(loss, params, shape(batch, 128, 128, 3), shape(batch, dtype="int32"))


def mlp(*, batch: int) -> Built:
    """Dense layers."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w in params[:-1]:
            x = jax.nn.gelu(x @ w)
        return jnp.mean((x @ params[-1] - y).astype(jnp.float32) ** 2)

    params = [shape(1024, 4096), shape(4096, 4096), shape(4096, 4096), shape(4096, 1024)]
    return training(loss, params, shape(batch, 1024), shape(batch, 1024))


def experts(devices: list[Any], *, batch: int) -> Built:
    """Experts on all devices, to which their tokens are sent under `shard_map`."""
    import numpy as np

    count, width = len(devices), 1024
    mesh = Mesh(np.array(devices), ("expert",))
    spec = PartitionSpec("expert")

    def placed(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, HALF, sharding=NamedSharding(mesh, spec))

    def routed(params: Any, x: Any) -> Any:
        def exchanged(y: Any) -> Any:
            return lax.all_to_all(y.reshape(count, -1, width), "expert", 0, 0, tiled=True)

        got = exchanged(x).reshape(-1, width)
        y = jax.nn.gelu(got @ params["up"][0]) @ params["down"][0]
        return exchanged(y).reshape(x.shape)

    apart = jax.shard_map(routed, mesh=mesh, in_specs=(spec, spec), out_specs=spec)

    def loss(params: Any, x: Any) -> Any:
        return jnp.mean(apart(params, x).astype(jnp.float32) ** 2)

    params = {"up": placed(count, width, 4 * width), "down": placed(count, 4 * width, width)}
    return training(loss, params, placed(batch * count * count, width))


def decode(*, batch: int) -> Built:
    """A token is generated with a cache that is donated."""

    def step(params: Any, cache: Any, tokens: Any, position: Any) -> tuple[Any, Any]:
        def body(x: Any, given: Any) -> tuple[Any, Any]:
            w, kept = given
            q, k, v = jnp.einsum("bd,dche->cbhe", normed(x), w["qkv"])
            new = jnp.stack([k, v])[:, :, None]
            kept = lax.dynamic_update_slice_in_dim(kept, new, position, axis=2)
            scores = jnp.einsum("bhe,bkhe->bhk", q, kept[0]).astype(jnp.float32)
            weights = jax.nn.softmax(scores / 8).astype(x.dtype)
            x = x + jnp.einsum("bhk,bkhe,hed->bd", weights, kept[1], w["out"])
            return x + jax.nn.gelu(normed(x) @ w["up"]) @ w["down"], kept

        x, cache = lax.scan(body, params["embed"][tokens], (params["layers"], cache))
        return jnp.argmax(x @ params["embed"].T, -1), cache

    layers = {name: shape(LAYERS, *sizes) for name, sizes in layer_shapes().items()}
    cache = shape(LAYERS, 2, batch, 2048, HEADS, WIDTH // HEADS)
    params = {"embed": shape(WORDS, WIDTH), "layers": layers}
    given = (params, cache, shape(batch, dtype="int32"), shape(dtype="int32"))
    return jax.jit(step, donate_argnums=1), given


def lstm(*, batch: int) -> Built:
    """A recurrent network over time."""
    width, steps = 1024, 256

    def loss(params: Any, xs: Any) -> Any:
        def cell(state: Any, x: Any) -> tuple[Any, Any]:
            h, c = state
            i, f, g, o = jnp.split(x @ params["x"] + h @ params["h"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((xs.shape[1], width), xs.dtype)
        _, hs = lax.scan(cell, (zero, zero), xs)
        return jnp.mean(hs.astype(jnp.float32) ** 2)

    params = {"x": shape(width, 4 * width), "h": shape(width, 4 * width)}
    return training(loss, params, shape(steps, batch, width))


def graph(*, batch: int) -> Built:
    """Messages along the edges of a graph; the batch is so many thousand nodes."""
    nodes, width = 1024 * batch, 128

    def loss(params: Any, x: Any, senders: Any, receivers: Any) -> Any:
        for w in params:
            messages = jax.nn.relu(x[senders] @ w["send"])
            x = x + jax.ops.segment_sum(messages, receivers, nodes) @ w["update"]
        return jnp.mean(x * x)

    square = shape(width, width, dtype="float32")
    params = [{"send": square, "update": square} for _ in range(3)]
    ends = shape(8 * nodes, dtype="int32")
    return training(loss, params, shape(nodes, width, dtype="float32"), ends, ends)


def unet(*, batch: int) -> Built:
    """A small network that removes noise from images: down, up, with skips."""

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)
        return jax.nn.silu(y)

    def loss(params: Any, images: Any, noise: Any, time: Any) -> Any:
        x = conv(images + noise * time[:, None, None, None], params["first"])
        skips = []
        for w in params["down"]:
            skips.append(x)
            x = conv(x, w, 2)
        for w in params["up"]:
            skip = skips.pop()
            x = jax.image.resize(x, (*skip.shape[:3], x.shape[3]), "nearest")
            x = conv(jnp.concatenate([x, skip], -1), w)
        return jnp.mean((conv(x, params["last"]) - noise).astype(jnp.float32) ** 2)

    params = {
        "first": shape(3, 3, 3, 64),
        "down": [shape(3, 3, 64, 128), shape(3, 3, 128, 256)],
        "up": [shape(3, 3, 256 + 128, 128), shape(3, 3, 128 + 64, 64)],
        "last": shape(3, 3, 64, 3),
    }
    image = shape(batch, 64, 64, 3)
    return training(loss, params, image, image, shape(batch))


# Frameworks.


def flax(*, batch: int) -> Built:
    """A transformer of Flax, with AdamW."""
    import flax.linen as nn
    import optax
    from flax.training.train_state import TrainState

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            mask = nn.make_causal_mask(x[..., 0])
            x = x + nn.MultiHeadDotProductAttention(HEADS)(nn.LayerNorm()(x), mask=mask)
            return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            embed = nn.Embed(WORDS, WIDTH)
            x = embed(tokens)
            for _ in range(2):
                x = Block()(x)
            return embed.attend(nn.LayerNorm()(x))

    def train_step(state: Any, tokens: Any) -> tuple[Any, Any]:
        def loss(params: Any) -> Any:
            return next_words(state.apply_fn({"params": params}, tokens), tokens)

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    model, tokens = Transformer(), shape(batch, LENGTH, dtype="int32")

    def create() -> Any:
        params = model.init(jax.random.key(0), jnp.zeros((1, LENGTH), "int32"))["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-3))

    return jax.jit(train_step, donate_argnums=0), (jax.eval_shape(create), tokens)


def keras(*, batch: int) -> Built:
    """A convolutional network of Keras, with Adam, as Keras writes a step for JAX."""
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Conv2D(64, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(128, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(100),
        ]
    )
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train_step(trainable: Any, others: Any, state: Any, x: Any, y: Any) -> tuple[Any, ...]:
        def loss(trainable: Any) -> Any:
            predicted, changed = model.stateless_call(trainable, others, x, training=True)
            return loss_of(y, predicted), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(trainable)
        trainable, state = optimizer.stateless_apply(state, grads, trainable)
        return trainable, changed, state, value

    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    held = [[shape(*v.shape, dtype=v.dtype) for v in each] for each in variables]
    images = shape(batch, 64, 64, 3, dtype="float32")
    return jax.jit(train_step, donate_argnums=(0, 1, 2)), (
        *held,
        images,
        shape(batch, dtype="int32"),
    )
