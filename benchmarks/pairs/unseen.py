"""Programs that were written after the rules on cuts and gathers, none of which changed since."""

import jax
import jax.numpy as jnp

from .edits import in_chunks, network_pair, softmax_loss, weights_of
from .families import gradient_pair
from .networks import with_moments
from .registry import HALF, Pair, Side, pair

# A large group in chunks.


@pair
def chunk_answers(place):
    """The loss of a policy: chances of the sampled words and the entropy, in bfloat16 by optax."""
    import optax
    from flax import linen

    class Policy(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(32_768, 640, dtype=HALF)(tokens)
            for _ in range(3):
                y = linen.RMSNorm(dtype=HALF)(x)
                gate = linen.silu(linen.Dense(1792, use_bias=False, dtype=HALF)(y))
                y = gate * linen.Dense(1792, use_bias=False, dtype=HALF)(y)
                x = x + linen.Dense(640, use_bias=False, dtype=HALF)(y)
            return linen.RMSNorm(dtype=HALF)(x)

    model, optimizer = Policy(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))
    weights = {
        "model": weights_of(place, model, place.array(1, 1024, dtype="int32")),
        "head": place.array(640, 32_768),
    }
    state = jax.tree.map(
        lambda leaf: place.array(*leaf.shape, dtype=leaf.dtype),
        jax.eval_shape(optimizer.init, weights),
    )

    def words(head, hidden, tokens):
        scores = jax.nn.log_softmax((hidden @ head.astype(HALF)).astype(jnp.float32) / 0.8)
        chosen = jnp.take_along_axis(scores, tokens[:, None], -1)[:, 0]
        return chosen, -(jnp.exp(scores) * scores).sum(-1)

    def in_eight(head, hidden, tokens):
        one = jax.checkpoint(lambda hidden, tokens: words(head, hidden, tokens))
        return tuple(each.reshape(-1) for each in in_chunks(one, 8, hidden, tokens))

    def step_by(words):
        def step(weights, state, tokens, old, gains):
            def loss(weights):
                hidden = model.apply(weights["model"], tokens).reshape(-1, 640)
                chosen, entropy = words(weights["head"], hidden, tokens.reshape(-1))
                ratio = jnp.exp(chosen - old.reshape(-1))
                clipped = jnp.clip(ratio, 0.8, 1.2)
                gain = jnp.minimum(ratio * gains.reshape(-1), clipped * gains.reshape(-1))
                return -(gain + 0.01 * entropy).mean()

            updates, new = optimizer.update(jax.grad(loss)(weights), state, weights)
            return optax.apply_updates(weights, updates), new

        arguments = place.array(6, 1024, dtype="int32"), place.array(6, 1024), place.array(6, 1024)
        return Side(step, (weights, state, *arguments), (0, 1))

    return Pair("chunk", step_by(words), step_by(in_eight), "in 8 chunks")


@pair
def chunk_codes(place):
    """Vectors replaced by the nearest of a book of codes, with the gradient passed through."""

    def nearest(book, x):
        apart = (x**2).sum(-1, keepdims=True) - 2 * x @ book.T + (book**2).sum(-1)
        one_hot = jax.nn.one_hot(jnp.argmin(apart, -1), len(book))
        return one_hot @ book

    def in_eight(book, x):
        one = jax.checkpoint(lambda x: nearest(book, x))
        return in_chunks(one, 8, x).reshape(x.shape)

    def step_by(nearest):
        def step(weights, x):
            def loss(weights):
                made = jax.nn.gelu(x @ weights["in"]) @ weights["narrow"]
                code = nearest(weights["book"], made)
                passed = made + jax.lax.stop_gradient(code - made)
                kept = ((jax.lax.stop_gradient(made) - code) ** 2).mean()
                kept += 0.25 * ((made - jax.lax.stop_gradient(code)) ** 2).mean()
                return ((passed @ weights["out"] - x) ** 2).mean() + kept

            gradient = jax.grad(loss)(weights)
            return jax.tree.map(lambda w, g: w - 1e-2 * g, weights, gradient)

        weights = {"in": (256, 512), "narrow": (512, 32), "out": (32, 256), "book": (8192, 32)}
        return Side(step, (place.arrays(weights), place.array(24_576, 256)), (0,))

    return Pair("chunk", step_by(nearest), step_by(in_eight), "in 8 chunks")


@pair
def chunk_causal(place):
    """Causal attention of one long text with its gradient, a part of the queries at a time."""

    def attend(query, key, value, at):
        scores = jnp.einsum("qhd,khd->hqk", query, key) / 8.0
        seen = at[:, None] >= jnp.arange(len(key))
        chances = jax.nn.softmax(jnp.where(seen, scores, -1e30), -1)
        return jnp.einsum("hqk,khd->qhd", chances, value)

    def in_eight(query, key, value, at):
        one = jax.checkpoint(lambda query, at: attend(query, key, value, at))
        return in_chunks(one, 8, query, at).reshape(query.shape)

    def step_by(attend):
        def gradient(weights, x, targets):
            def loss(weights):
                query, key, value = jnp.einsum("sd,dthk->tshk", x, weights["in"])
                made = attend(query, key, value, jnp.arange(len(x)))
                made = x + made.reshape(len(x), -1) @ weights["out"]
                return ((made - targets) ** 2).mean()

            return jax.value_and_grad(loss)(weights)

        weights = place.arrays({"in": (512, 3, 8, 64), "out": (512, 512)})
        return Side(gradient, (weights, place.array(6144, 512), place.array(6144, 512)))

    return Pair("chunk", step_by(attend), step_by(in_eight), "in 8 chunks")


@pair
def chunk_coverage(place):
    """How near the nearest generated sample is to each real one: distances of all to all."""

    def nearest(made, real):
        apart = jnp.linalg.norm(real[:, None] - made[None], axis=-1)
        return apart.min(1), (apart < 0.5).mean(1)

    def whole(made, real):
        least, share = nearest(made, real)
        return least.mean(), share.mean()

    def chunked(made, real):
        least, share = in_chunks(lambda part: nearest(made, part), 8, real)
        return least.mean(), share.mean()

    arguments = place.array(12_288, 48), place.array(8192, 48)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


# Maps over a batch.


@pair
def map_paths(place):
    """The price of options by simulated paths that are kept, for many starting values."""

    def one(key, start):
        noise = jax.random.normal(key, (252, 64))
        path = start * jnp.exp(jnp.cumsum(0.01 * noise - 5e-5, 0))
        worst = jnp.maximum.accumulate(path, 0) - path
        return jnp.maximum(path.mean(0) - start, 0).mean(), worst.max(0).mean()

    def whole(keys, starts):
        return jax.vmap(one)(keys, starts)

    def mapped(keys, starts):
        return jax.lax.map(lambda each: one(*each), (keys, starts), batch_size=512)

    arguments = place.array(8192, 2, dtype="uint32"), place.array(8192)
    return Pair("map", Side(whole, arguments), Side(mapped, arguments), "512 at a time")


@pair
def map_patches(place):
    """Features of images by a flax network with residual blocks of grouped norms."""
    from flax import linen

    class Features(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(64, (7, 7), strides=2)(x)
            for width, stride in ((64, 1), (128, 2), (256, 2)):
                y = linen.relu(linen.GroupNorm(16)(linen.Conv(width, (3, 3), strides=stride)(x)))
                y = linen.GroupNorm(16)(linen.Conv(width, (3, 3))(y))
                x = linen.relu(y + linen.Conv(width, (1, 1), strides=stride)(x))
            return linen.Dense(512)(x.mean((-3, -2)))

    model = Features()
    weights = weights_of(place, model, place.array(1, 160, 160, 3))

    def mapped(weights, images):
        return jax.lax.map(lambda each: model.apply(weights, each), images, batch_size=32)

    arguments = weights, place.array(256, 160, 160, 3)
    return Pair("map", Side(model.apply, arguments), Side(mapped, arguments), "32 at a time")


# Microbatches.


@pair
def microbatch_decoder(place):
    """A decoder of flax in bfloat16, with causal attention and optax, one loss per token."""
    from flax import linen

    class Decoder(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(4096, 512, dtype=HALF)(tokens)
            mask = linen.make_causal_mask(tokens)
            for _ in range(6):
                y = linen.LayerNorm(dtype=HALF)(x)
                x = x + linen.MultiHeadDotProductAttention(8, dtype=HALF)(y, mask=mask)
                y = linen.gelu(linen.Dense(2048, dtype=HALF)(linen.LayerNorm(dtype=HALF)(x)))
                x = x + linen.Dense(512, dtype=HALF)(y)
            return linen.Dense(4096)(x)

    tokens = place.array(32, 512, dtype="int32")
    return network_pair(place, Decoder(), 4, tokens, tokens)


@pair
def microbatch_mixer(place):
    """Patches of images mixed along both axes, written without a library."""

    def loss(weights, images, labels):
        x = images.reshape(-1, 16, 14, 16, 14, 3).transpose(0, 1, 3, 2, 4, 5)
        x = x.reshape(len(images), 256, -1) @ weights["in"]
        for each in weights["blocks"]:
            y = jnp.einsum("bpc,pq->bqc", x, each["first"])
            x = x + jnp.einsum("bqc,qp->bpc", jax.nn.gelu(y), each["second"])
            x = x + jax.nn.gelu(x @ each["up"]) @ each["down"]
        return softmax_loss(x.mean(1) @ weights["out"], labels).mean()

    shapes = {"first": (256, 256), "second": (256, 256), "up": (384, 1536), "down": (1536, 384)}
    weights = {"in": place.array(588, 384), "out": place.array(384, 1000)}
    weights["blocks"] = [place.arrays(shapes) for _ in range(5)]
    batch = place.array(128, 224, 224, 3), place.array(128, dtype="int32")
    return gradient_pair(loss, 4, with_moments(place, weights), *batch)


# Products before gathers.


@pair
def gather_points(place):
    """The neighbours of points, each made narrower, and the largest of each feature."""

    def gathered(weights, features, near):
        return jax.nn.relu(features[near] @ weights["in"] + weights["bias"]).max(1)

    def multiplied(weights, features, near):
        made = features @ weights["in"]
        return jax.nn.relu(made[near] + weights["bias"]).max(1)

    weights = place.arrays({"in": (320, 160), "bias": (160,)})
    arguments = weights, place.array(32_768, 320), place.array(32_768, 20, dtype="int32")
    return Pair("gather", Side(gathered, arguments), Side(multiplied, arguments))


@pair
def gather_relations(place):
    """A layer of flax over the edges of a graph, whose sums divide by the degree of a node."""
    from flax import linen

    class Edges(linen.Module):
        is_first: bool

        @linen.compact
        def __call__(self, nodes, sender, receiver):
            dense = linen.Dense(96)
            messages = dense(nodes)[sender] if self.is_first else dense(nodes[sender])
            total = jax.ops.segment_sum(linen.gelu(messages), receiver, len(nodes))
            count = jax.ops.segment_sum(jnp.ones(len(sender)), receiver, len(nodes))
            return linen.LayerNorm()(total / jnp.maximum(count, 1)[:, None])

    edges = place.array(250_000, dtype="int32")
    arguments = place.array(16_384, 384), edges, edges
    weights = jax.tree.map(
        lambda leaf: place.array(*leaf.shape),
        jax.eval_shape(lambda *given: Edges(False).init(jax.random.key(0), *given), *arguments),
    )
    sides = [Side(Edges(is_first).apply, (weights, *arguments)) for is_first in (False, True)]
    return Pair("gather", *sides)
