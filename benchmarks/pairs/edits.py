"""Programs as people write them with flax and optax, and the one edit that an expert makes."""

import jax
import jax.numpy as jnp

from .networks import adam, with_moments
from .registry import HALF, Pair, Side, pair


def weights_of(place, model, inputs):
    """What a flax model is initialised with for such inputs; nothing is computed."""
    shapes = jax.eval_shape(lambda inputs: model.init(jax.random.key(0), inputs), inputs)
    return jax.tree.map(lambda leaf: place.array(*leaf.shape), shapes)


# Logits and their loss, in chunks of tokens.


def softmax_loss(logits, labels):
    """The loss of each token, by optax."""
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def in_chunks(function, count, *arrays):
    """Apply a function to chunks along the first dimension, one after the other."""
    parts = [each.reshape(count, -1, *each.shape[1:]) for each in arrays]
    return jax.lax.map(lambda chunk: function(*chunk), tuple(parts))


def language_model(place, vocabulary, width, batch, length, loss, dtype="float32"):
    """The step of a small flax model whose loss takes hidden states, weights and labels."""
    from flax import linen

    class Model(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(vocabulary, width, dtype=dtype)(tokens)
            for _ in range(2):
                y = linen.LayerNorm(dtype=dtype)(x)
                y = linen.gelu(linen.Dense(4 * width, dtype=dtype)(y))
                x = x + linen.Dense(width, dtype=dtype)(y)
            return x

    model = Model()
    weights = {
        "model": weights_of(place, model, place.array(1, length, dtype="int32")),
        "head": place.array(width, vocabulary),
    }

    def step(state, tokens, labels):
        def cost(weights):
            hidden = model.apply(weights["model"], tokens)
            return loss(hidden, weights["head"].astype(hidden.dtype), labels)

        value, gradients = jax.value_and_grad(cost)(state["params"])
        return adam(state, gradients), value

    tokens = place.array(batch, length, dtype="int32")
    return Side(step, (with_moments(place, weights), tokens, tokens), (0,))


def whole_loss(hidden, head, labels):
    """The mean loss of all tokens at once."""
    return softmax_loss((hidden @ head).astype(jnp.float32), labels).mean()


def chunked_loss(count):
    """The same in chunks, whose logits are computed again for the gradient."""

    def loss(hidden, head, labels):
        @jax.checkpoint
        def one(hidden, labels):
            return softmax_loss((hidden @ head).astype(jnp.float32), labels)

        flat = hidden.reshape(-1, hidden.shape[-1])
        return in_chunks(one, count, flat, labels.reshape(-1)).mean()

    return loss


def loss_pair(count, *sizes, **options):
    """A language model whose loss is whole, and in chunks."""
    return lambda place: Pair(
        "chunk",
        language_model(place, *sizes, loss=whole_loss, **options),
        language_model(place, *sizes, loss=chunked_loss(count), **options),
        f"in {count} chunks",
    )


@pair
def chunk_loss(place):
    """Float32 logits of 32,000 words."""
    return loss_pair(8, 32_000, 512, 8, 1024)(place)


@pair
def chunk_loss_of_half(place):
    """A bfloat16 model of 50,304 words."""
    return loss_pair(8, 50_304, 768, 16, 1024, dtype=HALF)(place)


@pair
def chunk_loss_of_bytes(place):
    """So many tokens that their logits are large, though there are only 2,048 words."""
    return loss_pair(8, 2048, 256, 64, 2048)(place)


@pair
def chunk_perplexity(place):
    """The loss of each token without a gradient."""

    def whole(head, hidden, labels):
        scores = jax.nn.log_softmax(hidden @ head)
        return -jnp.take_along_axis(scores, labels[..., None], -1)[..., 0]

    def chunked(head, hidden, labels):
        flat = hidden.reshape(-1, hidden.shape[-1]), labels.reshape(-1)
        return in_chunks(lambda h, y: whole(head, h, y), 8, *flat).reshape(labels.shape)

    arguments = place.array(1024, 32_000), place.array(16, 1024, 1024)
    arguments += (place.array(16, 1024, dtype="int32"),)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


# Scores of attention, distances and kernels: a row for each of one, a column for each of other.


def attention(query, key, value):
    """Softmax attention over [batch, heads, length, width]."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), value)


@pair
def chunk_attention(place):
    """Inference over a long text: the queries in eight parts."""

    def project(weights, x):
        heads = jnp.einsum("bsd,dthk->tbhsk", x, weights)
        return heads[0], heads[1], heads[2]

    def whole(weights, x):
        return attention(*project(weights, x))

    def chunked(weights, x):
        query, key, value = project(weights, x)
        parts = jnp.moveaxis(query, 2, 0).reshape(8, -1, *query.shape[:2], query.shape[-1])
        made = jax.lax.map(lambda part: attention(jnp.moveaxis(part, 0, 2), key, value), parts)
        return jnp.moveaxis(made, 0, 2).reshape(query.shape)

    arguments = place.array(1024, 3, 16, 64), place.array(2, 4096, 1024)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


@pair
def chunk_attention_with_gradient(place):
    """The gradient of one layer of attention, a sequence of the batch at a time."""

    def layer(weights, x):
        query, key, value = jnp.einsum("bsd,tdhk->tbhsk", x, weights["in"])
        return jnp.einsum("bhsk,hkd->bsd", attention(query, key, value), weights["out"])

    def whole(weights, x):
        return jax.grad(lambda weights: jnp.mean((layer(weights, x) - x) ** 2))(weights)

    def chunked(weights, x):
        def loss(weights):
            one = jax.checkpoint(lambda x: layer(weights, x))
            return jnp.mean((in_chunks(one, x.shape[0], x).reshape(x.shape) - x) ** 2)

        return jax.grad(loss)(weights)

    weights = place.arrays({"in": (3, 768, 12, 64), "out": (12, 64, 768)})
    arguments = weights, place.array(8, 2048, 768)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


@pair
def chunk_nearest_centers(place):
    """The centers that lie nearest to points, and their new means."""

    def nearest(points, centers):
        distances = jnp.sum((points[:, None] ** 2), -1) - 2 * points @ centers.T
        distances = distances + jnp.sum(centers**2, -1)
        return jnp.argmin(jnp.sqrt(jnp.maximum(distances, 0)) + distances, -1)

    def moved(points, centers, chosen):
        count = jax.ops.segment_sum(jnp.ones(len(points)), chosen, len(centers))
        return jax.ops.segment_sum(points, chosen, len(centers)) / count[:, None]

    def whole(points, centers):
        return moved(points, centers, nearest(points, centers))

    def chunked(points, centers):
        chosen = in_chunks(lambda part: nearest(part, centers), 16, points).reshape(-1)
        return moved(points, centers, chosen)

    arguments = place.array(131_072, 64), place.array(4096, 64)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 16 chunks")


@pair
def chunk_nearest_neighbours(place):
    """The ten documents that are most like each query."""

    def whole(documents, queries):
        like = queries @ documents.T
        return jax.lax.top_k(like / jnp.linalg.norm(documents, axis=-1), 10)

    def chunked(documents, queries):
        values, places = in_chunks(lambda part: whole(documents, part), 8, queries)
        return values.reshape(-1, 10), places.reshape(-1, 10)

    arguments = place.array(500_000, 128), place.array(1024, 128)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


@pair
def chunk_kernel(place):
    """A sum over a Gaussian kernel, as a Gaussian process predicts."""

    def whole(known, weights, asked):
        squares = jnp.sum((asked[:, None] - known[None]) ** 2 / 2.0, -1)
        return jnp.exp(-squares) @ weights

    def chunked(known, weights, asked):
        return in_chunks(lambda part: whole(known, weights, part), 16, asked).reshape(
            len(asked), -1
        )

    arguments = place.array(16_384, 8), place.array(16_384, 4), place.array(16_384, 8)
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 16 chunks")


# A batch that `vmap` computes at once.


@pair
def map_spectrogram(place):
    """Frames of sound, their spectrum, and its logarithm on another scale."""

    def one(window, bank, sound):
        frames = sound[jnp.arange(0, 30_000, 160)[:, None] + jnp.arange(1024)]
        power = jnp.abs(jnp.fft.rfft(frames * window)) ** 2
        return jnp.log(power @ bank + 1e-6)

    def whole(window, bank, sounds):
        return jax.vmap(one, (None, None, 0))(window, bank, sounds)

    def mapped(window, bank, sounds):
        return jax.lax.map(lambda sound: one(window, bank, sound), sounds, batch_size=64)

    arguments = place.array(1024), place.array(513, 80), place.array(512, 32_000)
    return Pair("map", Side(whole, arguments), Side(mapped, arguments), "64 at a time")


@pair
def map_rendering(place):
    """Points along rays, each seen by a small network."""

    def one(weights, ray):
        at = ray[:3] + jnp.linspace(0.0, 4.0, 128)[:, None] * ray[3:]
        waves = at[..., None] * 2.0 ** jnp.arange(10)
        x = jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1).reshape(128, -1)
        for weight in weights["layers"]:
            x = jax.nn.relu(x @ weight)
        density, colour = jax.nn.softplus(x @ weights["density"]), x @ weights["colour"]
        seen = jnp.exp(-jnp.cumsum(density, 0)) * density
        return jnp.sum(seen * jax.nn.sigmoid(colour), 0)

    def whole(weights, rays):
        return jax.vmap(one, (None, 0))(weights, rays)

    def mapped(weights, rays):
        return jax.lax.map(lambda ray: one(weights, ray), rays, batch_size=1024)

    layers = [place.array(60, 256), place.array(256, 256), place.array(256, 256)]
    weights = {"layers": layers, "density": place.array(256, 1), "colour": place.array(256, 3)}
    arguments = weights, place.array(16_384, 6)
    return Pair("map", Side(whole, arguments), Side(mapped, arguments), "1024 at a time")


@pair
def map_images(place):
    """Features of images by a small network of flax."""
    from flax import linen

    class Features(linen.Module):
        @linen.compact
        def __call__(self, x):
            for width in (64, 128):
                x = linen.relu(linen.Conv(width, (3, 3))(x))
                x = linen.avg_pool(linen.relu(linen.Conv(width, (3, 3))(x)), (2, 2), (2, 2))
            return x.mean((-3, -2))

    model = Features()
    weights = weights_of(place, model, place.array(1, 224, 224, 3))

    def mapped(weights, images):
        return jax.lax.map(lambda image: model.apply(weights, image), images, batch_size=16)

    arguments = weights, place.array(128, 224, 224, 3)
    return Pair("map", Side(model.apply, arguments), Side(mapped, arguments), "16 at a time")


# The gradient of a batch as the mean of the gradients of parts.


def in_parts(count):
    """The gradient of a loss of (weights, *batch), part by part."""

    def gradient(loss, weights, *batch):
        def add(total, part):
            return jax.tree.map(jnp.add, total, jax.grad(loss)(weights, *part)), None

        parts = tuple(each.reshape(count, -1, *each.shape[1:]) for each in batch)
        zero = jax.tree.map(jnp.zeros_like, weights)
        total, _ = jax.lax.scan(add, zero, parts)
        return jax.tree.map(lambda each: each / count, total)

    return gradient


def at_once(loss, weights, *batch):
    """The gradient of a loss of (weights, *batch)."""
    return jax.grad(loss)(weights, *batch)


def network_pair(place, model, count, inputs, labels):
    """A flax network with optax, with the batch whole and in parts."""
    import optax

    one = place.array(1, *inputs.shape[1:], dtype=inputs.dtype)
    weights = weights_of(place, model, one)
    optimizer = optax.adamw(1e-3)
    state = jax.tree.map(
        lambda leaf: place.array(*leaf.shape, dtype=leaf.dtype),
        jax.eval_shape(optimizer.init, weights),
    )

    def loss(weights, inputs, labels):
        return softmax_loss(model.apply(weights, inputs), labels).mean()

    def step_by(gradient):
        def step(weights, state, inputs, labels):
            gradients = gradient(loss, weights, inputs, labels)
            updates, state = optimizer.update(gradients, state, weights)
            return optax.apply_updates(weights, updates), state

        return Side(step, (weights, state, inputs, labels), (0, 1))

    return Pair(
        "microbatch", step_by(at_once), step_by(in_parts(count)), f"in {count} microbatches"
    )


@pair
def microbatch_images(place):
    """A convolutional network that normalises groups of channels, not the batch."""
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            for width in (64, 128, 256):
                x = linen.GroupNorm(8)(linen.Conv(width, (3, 3), strides=2)(x))
                y = linen.relu(linen.Conv(width, (3, 3))(linen.relu(x)))
                x = x + linen.Conv(width, (3, 3))(y)
            return linen.Dense(1000)(x.mean((1, 2)))

    images, labels = place.array(128, 192, 192, 3), place.array(128, dtype="int32")
    return network_pair(place, Network(), 4, images, labels)


@pair
def microbatch_dense(place):
    """Wide layers over a large batch."""
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(6):
                x = x + linen.Dense(1024)(linen.gelu(linen.Dense(2048)(linen.LayerNorm()(x))))
            return linen.Dense(256)(x)

    rows, labels = place.array(32_768, 1024), place.array(32_768, dtype="int32")
    return network_pair(place, Network(), 4, rows, labels)


@pair
def microbatch_vision_transformer(place):
    """Layers of attention one after the other, over patches of images."""
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(384, (16, 16), strides=16)(x)
            x = x.reshape(x.shape[0], -1, 384)
            for _ in range(4):
                x = x + linen.MultiHeadDotProductAttention(6)(linen.LayerNorm()(x))
                y = linen.gelu(linen.Dense(1536)(linen.LayerNorm()(x)))
                x = x + linen.Dense(384)(y)
            return linen.Dense(1000)(x.mean(1))

    images, labels = place.array(128, 224, 224, 3), place.array(128, dtype="int32")
    return network_pair(place, Network(), 4, images, labels)


# Rows that are gathered for each edge or token, and then multiplied.


@pair
def gather_messages(place):
    """Messages along the edges of a graph."""

    def gathered(weight, h, sender, receiver):
        return jax.ops.segment_sum(jax.nn.relu(h[sender] @ weight), receiver, h.shape[0])

    def multiplied(weight, h, sender, receiver):
        return jax.ops.segment_sum(jax.nn.relu((h @ weight)[sender]), receiver, h.shape[0])

    edges = place.array(400_000, dtype="int32")
    arguments = place.array(512, 128), place.array(20_000, 512), edges, edges
    return Pair("gather", Side(gathered, arguments), Side(multiplied, arguments))


@pair
def chunk_messages(place):
    """Sums of messages that are multiplied first, a part of the edges at a time."""

    def whole(weight, h, sender, receiver):
        messages = jnp.tanh((h @ weight)[sender] + (h @ weight)[receiver])
        return jax.ops.segment_sum(jnp.sort(messages, -1), receiver, h.shape[0])

    def chunked(weight, h, sender, receiver):
        def add(total, part):
            return total + whole(weight, h, *part), None

        parts = sender.reshape(8, -1), receiver.reshape(8, -1)
        return jax.lax.scan(add, jnp.zeros((h.shape[0], weight.shape[1])), parts)[0]

    edges = place.array(400_000, dtype="int32")
    arguments = place.array(512, 256), place.array(20_000, 512), edges, edges
    return Pair("chunk", Side(whole, arguments), Side(chunked, arguments), "in 8 chunks")


@pair
def gather_both_ends(place):
    """A layer over both ends of each edge."""

    def gathered(weight, h, sender, receiver):
        ends = jnp.concatenate([h[sender], h[receiver]], -1)
        return jax.ops.segment_max(jax.nn.silu(ends @ weight), receiver, h.shape[0])

    def multiplied(weight, h, sender, receiver):
        width = h.shape[-1]
        ends = (h @ weight[:width])[sender] + (h @ weight[width:])[receiver]
        return jax.ops.segment_max(jax.nn.silu(ends), receiver, h.shape[0])

    edges = place.array(300_000, dtype="int32")
    arguments = place.array(1024, 128), place.array(10_000, 512), edges, edges
    return Pair("gather", Side(gathered, arguments), Side(multiplied, arguments))


@pair
def gather_embeddings(place):
    """Wide rows of a small table, made narrower."""

    def gathered(table, weight, ids):
        return jnp.tanh(table[ids] @ weight).mean(1)

    def multiplied(table, weight, ids):
        return jnp.tanh((table @ weight)[ids]).mean(1)

    arguments = place.array(8192, 1024), place.array(1024, 128)
    arguments += (place.array(512, 256, dtype="int32"),)
    return Pair("gather", Side(gathered, arguments), Side(multiplied, arguments))


# Arguments that are returned as they came.


@pair
def returned_by_scan(place):
    """A scan over layers that gives out the weights that it takes."""

    def layer(x, weight):
        return jnp.tanh(x @ weight), weight

    def before(weights, x):
        return jax.lax.scan(layer, x, weights)

    def after(weights, x):
        return jax.lax.scan(lambda x, weight: (layer(x, weight)[0], None), x, weights)[0]

    arguments = place.array(16, 2048, 2048), place.array(256, 2048)
    return Pair("returned", Side(before, arguments), Side(after, arguments))


@pair
def returned_frozen(place):
    """Only one of two networks is trained, and both are returned."""

    def trained(head, body, x, y):
        def loss(head):
            return jnp.mean((jnp.tanh(jnp.tanh(x @ body[0]) @ body[1]) @ head - y) ** 2)

        return head - 0.1 * jax.grad(loss)(head)

    def before(head, body, x, y):
        return {"head": trained(head, body, x, y), "body": body}

    body = [place.array(2048, 8192), place.array(8192, 2048)]
    arguments = place.array(2048, 512), body, place.array(512, 2048), place.array(512, 512)
    return Pair("returned", Side(before, arguments), Side(trained, arguments))


@pair
def returned_with_state(place):
    """A step of decoding that returns its weights beside the next cache."""

    def decode(weights, cache, x, at):
        cache = jax.lax.dynamic_update_slice(cache, (x @ weights["key"])[:, None], (0, at, 0))
        scores = jax.nn.softmax(jnp.einsum("bd,bsd->bs", x @ weights["query"], cache))
        return jnp.einsum("bs,bsd->bd", scores, cache) @ weights["out"], cache

    def before(weights, cache, x, at):
        return (*decode(weights, cache, x, at), weights)

    weights = place.arrays({"key": (4096, 1024), "query": (4096, 1024), "out": (1024, 32_000)})
    arguments = weights, place.array(16, 2048, 1024), place.array(16, 4096)
    arguments += (place.array(dtype="int32"),)
    return Pair("returned", Side(before, arguments, (1,)), Side(decode, arguments, (1,)))


# Caches in eight bits, and caches that a loop takes and gives.


def decoding(place, dtype):
    """A step of decoding over the caches of keys and values of all layers."""
    scale = 1.0 if dtype != "int8" else 0.02

    def step(weights, cache, x, at):
        for number, each in enumerate(weights):
            key, value = ((x @ each[name]).reshape(-1, 1, 8, 64) for name in ("key", "value"))
            for name, new in (("key", key), ("value", value)):
                new = jnp.round(new / scale).astype(dtype)[None]
                cache[name] = jax.lax.dynamic_update_slice(cache[name], new, (number, 0, at, 0, 0))
            keys, values = (cache[name][number].astype(HALF) * scale for name in ("key", "value"))
            query = (x @ each["query"]).reshape(-1, 8, 64)
            scores = jax.nn.softmax(jnp.einsum("bhd,bshd->bhs", query, keys))
            x = x + jnp.einsum("bhs,bshd->bhd", scores, values).reshape(x.shape[0], -1)
        return x, cache

    layer = place.arrays(dict.fromkeys(("key", "value", "query"), (512, 512)), HALF)
    caches = place.arrays(dict.fromkeys(("key", "value"), (6, 16, 4096, 8, 64)), dtype)
    x = place.array(16, 512, dtype=HALF)
    return Side(step, ([layer] * 6, caches, x, place.array(dtype="int32")), (1,))


@pair
def int8_cache(place):
    """Keys and values in bfloat16, and in int8."""
    return Pair("int8", decoding(place, HALF), decoding(place, "int8"))


@pair
def carry_donated_cache(place):
    """A donated cache, as xs and ys of a scan over layers and as its carry."""

    def layer(x, weight, old, at):
        new = jax.lax.dynamic_update_slice(old, (x @ weight)[:, None], (0, at, 0))
        scores = jax.nn.softmax(jnp.einsum("bd,bsd->bs", x, new))
        return x + jnp.einsum("bs,bsd->bd", scores, new), new

    def scanned(weights, cache, x, at):
        return jax.lax.scan(lambda x, each: layer(x, *each, at), x, (weights, cache))

    def carried(weights, cache, x, at):
        def one(carry, weight):
            x, cache, number = carry
            x, new = layer(x, weight, cache[number], at)
            return (x, cache.at[number].set(new), number + 1), None

        return jax.lax.scan(one, (x, cache, 0), weights)[0][:2]

    arguments = place.array(12, 512, 512), place.array(12, 16, 2048, 512), place.array(16, 512)
    arguments += (place.array(dtype="int32"),)
    return Pair("carry", Side(scanned, arguments, (1,)), Side(carried, arguments, (1,)))


# Programs in which the same looks possible, and is not, or is done.


@pair
def right_chunked_loss(place):
    """A loss in so many chunks that others are the larger part."""
    return Pair("none", language_model(place, 32_000, 512, 8, 1024, chunked_loss(32)))


@pair
def right_contrast(place):
    """Images against texts: the loss is over rows and over columns, so that neither can be cut."""

    def step(weights, images, texts):
        def loss(weights):
            likeness = (images @ weights["image"]) @ (texts @ weights["text"]).T
            labels = jnp.arange(len(images))
            return (softmax_loss(likeness, labels) + softmax_loss(likeness.T, labels)).mean()

        return jax.grad(loss)(weights)

    weights = place.arrays({"image": (512, 256), "text": (512, 256)})
    return Pair("none", Side(step, (weights, place.array(16_384, 512), place.array(16_384, 512))))


@pair
def right_transport(place):
    """Sinkhorn's iterations over a matrix of costs: sums over rows and over columns in turn."""

    def plan(points, others):
        cost = -jnp.sum(points**2, -1)[:, None] + 2 * points @ others.T

        def turn(_, sides):
            left, right = sides
            left = -jax.nn.logsumexp(cost + right, 1)
            return left, -jax.nn.logsumexp(cost + left[:, None], 0)

        empty = jnp.zeros(len(points)), jnp.zeros(len(others))
        left, right = jax.lax.fori_loop(0, 20, turn, empty)
        return jnp.exp(cost + left[:, None] + right)

    return Pair("none", Side(plan, (place.array(8192, 64), place.array(12_288, 64))))


@pair
def right_batch_norm(place):
    """A network that normalises over the batch, which parts of it would change."""
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            for width in (64, 128, 256):
                x = linen.Conv(width, (3, 3), strides=2)(x)
                x = linen.relu(linen.BatchNorm(use_running_average=False)(x))
                x = linen.relu(
                    linen.BatchNorm(use_running_average=False)(linen.Conv(width, (3, 3))(x))
                )
            return linen.Dense(1000)(x.mean((1, 2)))

    model = Network()
    images, labels = place.array(64, 192, 192, 3), place.array(64, dtype="int32")
    variables = weights_of(place, model, images)

    def step(variables, images, labels):
        def loss(weights):
            made, stats = model.apply(
                {"params": weights, "batch_stats": variables["batch_stats"]},
                images,
                mutable=["batch_stats"],
            )
            return softmax_loss(made, labels).mean(), stats

        gradients, stats = jax.grad(loss, has_aux=True)(variables["params"])
        weights = jax.tree.map(lambda w, g: w - 0.1 * g, variables["params"], gradients)
        return {"params": weights, **stats}

    return Pair("none", Side(step, (variables, images, labels), (0,)))


@pair
def right_recurrence(place):
    """Steps in time, of which each reads the last."""

    def filtered(model, seen):
        def one(state, seen):
            mean, spread = state
            spread = model @ spread @ model.T + jnp.eye(len(model))
            gain = jnp.linalg.solve(spread + jnp.eye(len(model)), spread)
            mean = model @ mean + gain @ (seen - model @ mean)
            return (mean, spread - gain @ spread), mean

        return jax.lax.scan(one, (jnp.zeros(len(model)), jnp.eye(len(model))), seen)[1]

    return Pair("none", Side(filtered, (place.array(256, 256), place.array(100_000, 256))))


@pair
def right_solver(place):
    """A large system of equations, whose matrix is needed whole."""

    def solved(points, values):
        squares = jnp.sum(points**2, -1)
        kernel = jnp.exp(points @ points.T - 0.5 * (squares[:, None] + squares))
        factor = jnp.linalg.cholesky(kernel + jnp.eye(len(points)))
        return jax.scipy.linalg.cho_solve((factor, True), values)

    return Pair("none", Side(solved, (place.array(6144, 16), place.array(6144, 4))))


@pair
def right_sorted(place):
    """Ranks within columns, and what is far from the mean of a row."""

    def ranked(rows):
        ranks = jnp.argsort(jnp.argsort(rows, 0), 0)
        return ranks.astype(jnp.float32) / len(rows) + rows / rows.std(0)

    return Pair("none", Side(ranked, (place.array(65_536, 512),)))


@pair
def right_matrix(place):
    """A product and nothing else."""
    return Pair("none", Side(jnp.matmul, (place.array(16_384, 4096), place.array(4096, 8192))))


@pair
def right_attention_of_scan(place):
    """Attention that looks at one part of the keys after the other."""

    def attend(query, key, value):
        def one(state, part):
            most, total, made = state
            keys, values = part
            scores = jnp.einsum("bhqd,bhkd->bhqk", query, keys) * 0.125
            now = jnp.maximum(most, scores.max(-1))
            weights, less = jnp.exp(scores - now[..., None]), jnp.exp(most - now)
            made = made * less[..., None] + jnp.einsum("bhqk,bhkd->bhqd", weights, values)
            return (now, total * less + weights.sum(-1), made), None

        parts = tuple(
            jnp.moveaxis(each.reshape(*each.shape[:2], 128, -1, each.shape[-1]), 2, 0)
            for each in (key, value)
        )
        empty = jnp.full(query.shape[:-1], -jnp.inf), jnp.zeros(query.shape[:-1])
        (_, total, made), _ = jax.lax.scan(one, (*empty, jnp.zeros_like(query)), parts)
        return made / total[..., None]

    heads = place.array(2, 16, 4096, 64)
    return Pair("none", Side(attend, (heads, heads, heads), (0,)))
