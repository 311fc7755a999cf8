"""The parts that programs are made of: layers, caches, optimizers."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name


def layer_shapes(width, *stacked):
    """The weights of a transformer layer, or of a stack of layers."""
    shapes = {
        "qkv": (width, 3 * width),
        "out": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
        "first_scale": (width,),
        "second_scale": (width,),
    }
    return {name: (*stacked, *shape) for name, shape in shapes.items()}


def normalized(x, scale):
    """Layer norm in float32."""
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    deviation = jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)
    return (centred * deviation).astype(x.dtype) * scale


def root_mean_square(x, scale):
    """The norm of models without biases, in float32."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide**2, -1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype) * scale


def rotated(x):
    """Positions as rotations of [batch, length, heads, size]."""
    length, size = x.shape[1], x.shape[-1]
    rates = 10000.0 ** (-jnp.arange(0, size, 2) / size)
    angles = jnp.arange(length)[:, None, None] * rates
    one, other = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (
        one * jnp.cos(angles) - other * jnp.sin(angles),
        one * jnp.sin(angles) + other * jnp.cos(angles),
    )
    return jnp.concatenate(turned, -1).astype(x.dtype)


def attended(queries, keys, values, is_causal):
    """Attention of [batch, length, heads, size]; several heads may share keys and values."""
    batch, length, heads, size = queries.shape
    queries = queries.reshape(batch, length, keys.shape[2], -1, size)
    scores = jnp.einsum("blgrd,bmgd->bgrlm", queries, keys) * size**-0.5
    if is_causal:
        scores = jnp.where(jnp.tri(length, keys.shape[1], dtype=bool), scores, -1e9)
    chances = jax.nn.softmax(scores.astype(jnp.float32)).astype(values.dtype)
    return jnp.einsum("bgrlm,bmgd->blgrd", chances, values).reshape(batch, length, heads * size)


def heads_of(x, weight, heads):
    """A product whose last dimension is split into heads."""
    return (x @ weight).reshape(*x.shape[:2], heads, -1)


def attention(x, weights, heads):
    """Causal attention of [batch, length, width]."""
    batch, length, _ = x.shape
    q, k, v = jnp.split(x @ weights["qkv"], 3, axis=-1)
    q, k, v = (y.reshape(batch, length, heads, -1).swapaxes(1, 2) for y in (q, k, v))
    scores = q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, -1e9)
    mixed = jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype) @ v
    return mixed.swapaxes(1, 2).reshape(batch, length, -1) @ weights["out"]


def transformer_layer(x, weights, heads):
    """A layer whose two parts have names, for policies that save by name."""
    attended = attention(normalized(x, weights["first_scale"]), weights, heads)
    x = x + checkpoint_name(attended, "attended")
    hidden = normalized(x, weights["second_scale"]) @ weights["up"]
    return x + checkpoint_name(jax.nn.gelu(hidden) @ weights["down"], "widened")


def mixer_shapes(tokens, width, *stacked):
    """The weights of an MLP mixer's layer, or of a stack of layers."""
    shapes = {
        "mix_up": (tokens, 2 * tokens),
        "mix_down": (2 * tokens, tokens),
        "up": (width, 4 * width),
        "down": (4 * width, width),
        "first_scale": (width,),
        "second_scale": (width,),
    }
    return {name: (*stacked, *shape) for name, shape in shapes.items()}


def mixer_layer(x, weights):
    """A layer that mixes tokens, then channels."""
    mixed = normalized(x, weights["first_scale"]).swapaxes(1, 2)
    mixed = jax.nn.gelu(mixed @ weights["mix_up"]) @ weights["mix_down"]
    x = x + mixed.swapaxes(1, 2)
    return x + jax.nn.gelu(normalized(x, weights["second_scale"]) @ weights["up"]) @ weights["down"]


def cross_entropy(x, table, labels):
    """The mean loss of the next token; the table of the embedding makes the logits."""
    logits = (x @ table.T.astype(x.dtype)).astype(jnp.float32)
    told = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - told)


def with_moments(place, weights):
    """The state of Adam: weights, both moments and the count of steps."""
    count = place.array(dtype="int32")
    return {"params": weights, "mu": weights, "nu": weights, "count": count}


def adam(state, gradients):
    """The next state."""
    count = state["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], gradients)
    nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["nu"], gradients)

    def moved(weight, m, v):
        return weight - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)

    params = jax.tree.map(moved, state["params"], mu, nu)
    return {"params": params, "mu": mu, "nu": nu, "count": count}


def momentum(weights, moments, gradients):
    """The next weights and moments."""
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda w, m: w - 1e-2 * m, weights, moments), moments


def cached_attention(x, weights, keys, values, position, heads):
    """Attention of one token on a cache of [batch, length, heads, size]: also the new cache."""
    batch, length = keys.shape[:2]
    q, k, v = (y.reshape(batch, heads, -1) for y in jnp.split(x @ weights["qkv"], 3, axis=-1))
    keys = jax.lax.dynamic_update_slice(keys, k[:, None], (0, position, 0, 0))
    values = jax.lax.dynamic_update_slice(values, v[:, None], (0, position, 0, 0))
    scores = jnp.einsum("bhd,bshd->bhs", q, keys) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.arange(length) <= position, scores, -1e9)
    chances = jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype)
    mixed = jnp.einsum("bhs,bshd->bhd", chances, values)
    return mixed.reshape(batch, -1) @ weights["out"], keys, values


def cached_layer(x, weights, keys, values, position, heads):
    """A transformer layer for one token of each sequence: also the new cache."""
    normal = normalized(x, weights["first_scale"])
    attended, keys, values = cached_attention(normal, weights, keys, values, position, heads)
    x = x + attended
    hidden = normalized(x, weights["second_scale"]) @ weights["up"]
    return x + jax.nn.gelu(hidden) @ weights["down"], keys, values
