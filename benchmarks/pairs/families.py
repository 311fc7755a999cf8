"""More programs and the one edit that an expert makes: each family of edits on other code."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from .edits import at_once, in_chunks, in_parts, softmax_loss, weights_of
from .networks import adam, with_moments
from .registry import HALF, SAME, Pair, Side, pair

# A large group in chunks.


@pair
def chunk_distillation(place):
    """A student's logits and its teacher's, and how far they are apart."""

    def apart(student, teacher):
        teacher = jax.nn.softmax(teacher)
        return -(teacher * jax.nn.log_softmax(student)).sum(-1)

    def step_by(loss):
        def step(state, teacher, hidden, wanted):
            def cost(weights):
                own = jax.nn.gelu(hidden @ weights["up"]) @ weights["down"]
                return loss(weights["head"], teacher, own, wanted)

            return adam(state, jax.grad(cost)(state["params"]))

        return step

    def whole(head, teacher, own, wanted):
        return apart(own @ head, wanted @ teacher).mean()

    def chunked(head, teacher, own, wanted):
        one = jax.checkpoint(lambda own, wanted: apart(own @ head, wanted @ teacher))
        return in_chunks(one, 8, own, wanted).mean()

    weights = place.arrays({"up": (384, 1536), "down": (1536, 384), "head": (384, 24_000)})
    arguments = with_moments(place, weights), place.array(768, 24_000)
    arguments += place.array(8192, 384), place.array(8192, 768)
    return Pair(
        "chunk",
        Side(step_by(whole), arguments, (0,)),
        Side(step_by(chunked), arguments, (0,)),
        "in 8 chunks",
    )


@pair
def chunk_preferences(place):
    """The loss of pairs of answers by the chances of their tokens, in bfloat16."""

    def chances(head, hidden, tokens):
        scores = jax.nn.log_softmax((hidden @ head).astype(jnp.float32))
        return jnp.take_along_axis(scores, tokens[..., None], -1)[..., 0]

    def chunked_chances(head, hidden, tokens):
        one = jax.checkpoint(lambda hidden, tokens: chances(head, hidden, tokens))
        flat = hidden.reshape(-1, hidden.shape[-1]), tokens.reshape(-1)
        return in_chunks(one, 8, *flat).reshape(tokens.shape)

    def step_by(chances):
        def step(state, better, worse, better_tokens, worse_tokens):
            def cost(weights):
                good = chances(weights["head"], better @ weights["mix"], better_tokens).sum(-1)
                bad = chances(weights["head"], worse @ weights["mix"], worse_tokens).sum(-1)
                return -jax.nn.log_sigmoid(0.1 * (good - bad)).mean()

            return adam(state, jax.grad(cost)(state["params"]))

        return step

    weights = place.arrays({"mix": (512, 512), "head": (512, 32_000)}, HALF)
    hidden, tokens = place.array(8, 512, 512, dtype=HALF), place.array(8, 512, dtype="int32")
    arguments = with_moments(place, weights), hidden, hidden, tokens, tokens
    return Pair(
        "chunk",
        Side(step_by(chances), arguments, (0,)),
        Side(step_by(chunked_chances), arguments, (0,)),
        "in 8 chunks",
    )


@pair
def chunk_votes(place):
    """Labels by the votes of the nearest of many stored features."""

    def vote(stored, labels, queries):
        similar = queries @ stored.T
        best, at = jax.lax.top_k(similar, 20)
        one_hot = jax.nn.one_hot(labels[at], 100)
        return (jnp.exp(best / 0.07)[..., None] * one_hot).sum(1)

    def chunked(stored, labels, queries):
        return in_chunks(lambda q: vote(stored, labels, q), 16, queries).reshape(-1, 100)

    arguments = place.array(100_000, 128), place.array(100_000, dtype="int32")
    arguments += (place.array(8192, 128),)
    return Pair("chunk", Side(vote, arguments), Side(chunked, arguments), "in 16 chunks")


# Maps over a batch.


@pair
def map_documents(place):
    """Documents embedded by a flax transformer, as means of their words."""
    from flax import linen

    class Encoder(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(8192, 512)(tokens)
            for _ in range(4):
                x = x + linen.SelfAttention(8)(linen.LayerNorm()(x))
                x = x + linen.Dense(512)(linen.gelu(linen.Dense(2048)(linen.LayerNorm()(x))))
            return x.mean(-2)

    model = Encoder()
    weights = weights_of(place, model, place.array(1, 512, dtype="int32"))

    def mapped(weights, tokens):
        return jax.lax.map(lambda words: model.apply(weights, words[None])[0], tokens, batch_size=8)

    arguments = weights, place.array(64, 512, dtype="int32")
    return Pair("map", Side(model.apply, arguments), Side(mapped, arguments), "8 at a time")


@pair
def map_jacobians(place):
    """The divergence of a field at many points, by its Jacobian at each."""

    def field(weights, point):
        for weight in weights[:-1]:
            point = jnp.tanh(point @ weight)
        return point @ weights[-1]

    def divergence(weights, point):
        return jnp.trace(jax.jacfwd(lambda each: field(weights, each))(point))

    def whole(weights, points):
        return jax.vmap(lambda each: divergence(weights, each))(points)

    def mapped(weights, points):
        return jax.lax.map(lambda each: divergence(weights, each), points, batch_size=1024)

    weights = [place.array(32, 256), place.array(256, 256), place.array(256, 32)]
    arguments = weights, place.array(16_384, 32)
    return Pair("map", Side(whole, arguments), Side(mapped, arguments), "1024 at a time")


@pair
def map_wide_gather(place):
    """Rows that are gathered and made wider, of a thousand sums at a time."""

    def widen(weights, table, rows):
        return (table[rows] @ weights).sum(1)

    def mapped(weights, table, rows):
        return jax.lax.map(lambda each: widen(weights, table, each[None])[0], rows, batch_size=1024)

    arguments = place.array(64, 512), place.array(10_000, 64), place.array(8192, 32, dtype="int32")
    return Pair("map", Side(widen, arguments), Side(mapped, arguments), "1024 at a time")


# Microbatches.


def gradient_pair(loss, count, weights, *batch):
    """A loss of (weights, *batch) whose gradient is whole, and in parts."""

    def step_by(gradient):
        def step(state, *batch):
            return adam(state, gradient(loss, state["params"], *batch))

        return step

    whole, parts = step_by(at_once), step_by(in_parts(count))
    return Pair(
        "microbatch",
        Side(whole, (weights, *batch), (0,)),
        Side(parts, (weights, *batch), (0,)),
        f"in {count} microbatches",
    )


@pair
def microbatch_autoencoder(place):
    """A dense autoencoder of wide layers."""

    def loss(weights, x):
        y = x
        for weight in weights:
            y = jax.nn.relu(y @ weight)
        return jnp.mean((y - x) ** 2)

    sizes = (1024, 2048, 512, 64, 512, 2048, 1024)
    weights = [place.array(a, b) for a, b in itertools.pairwise(sizes)]
    return gradient_pair(loss, 4, with_moments(place, weights), place.array(65_536, 1024))


@pair
def microbatch_recurrent(place):
    """A recurrent network over long sequences."""

    def loss(weights, x, labels):
        def turn(state, x):
            state = jnp.tanh(x @ weights["in"] + state @ weights["again"])
            return state, None

        start = jnp.zeros((x.shape[0], 512))
        state, _ = jax.lax.scan(turn, start, x.swapaxes(0, 1))
        return softmax_loss(state @ weights["out"], labels).mean()

    weights = place.arrays({"in": (128, 512), "again": (512, 512), "out": (512, 64)})
    batch = place.array(512, 512, 128), place.array(512, dtype="int32")
    return gradient_pair(loss, 4, with_moments(place, weights), *batch)


@pair
def microbatch_masked(place):
    """Layers with dropout that are computed again."""

    def loss(weights, x):
        y = x
        for number, each in enumerate(weights):

            @jax.checkpoint
            def layer(y, each, number=number):
                key = jax.random.fold_in(jax.random.key(0), number)
                return y + by_bernoulli(jax.nn.gelu(y @ each["up"]), key) @ each["down"]

            y = layer(y, each)
        return jnp.mean((y - x) ** 2)

    weights = [place.arrays({"up": (512, 2048), "down": (2048, 512)}) for _ in range(6)]
    return gradient_pair(loss, 4, with_moments(place, weights), place.array(16_384, 512))


# Products before gathers.


@pair
def gather_edge_attention(place):
    """Keys and values of an edge's ends: rows of 256 are gathered to make 64 of them."""

    def scores(weights, nodes, sender, receiver):
        query = nodes[receiver] @ weights["query"]
        key = nodes[sender] @ weights["key"]
        return jax.nn.leaky_relu((query * key).sum(-1))

    def before(weights, nodes, sender, receiver):
        query = (nodes @ weights["query"])[receiver]
        key = (nodes @ weights["key"])[sender]
        return jax.nn.leaky_relu((query * key).sum(-1))

    weights = place.arrays(dict.fromkeys(("query", "key"), (256, 64)))
    edge = place.array(600_000, dtype="int32")
    arguments = weights, place.array(40_000, 256), edge, edge
    return Pair("gather", Side(scores, arguments), Side(before, arguments))


@pair
def gather_items(place):
    """What people bought, from a table of few items, to a narrow space."""

    def tower(weights, table, bought):
        return jax.nn.relu(table[bought] @ weights).mean(1)

    def narrow(weights, table, bought):
        return jax.nn.relu((table @ weights)[bought]).mean(1)

    arguments = place.array(512, 96), place.array(20_000, 512)
    arguments += (place.array(4096, 100, dtype="int32"),)
    return Pair("gather", Side(tower, arguments), Side(narrow, arguments))


# Arguments that are returned.


@pair
def returned_by_fori(place):
    """A loop whose carry has the tables that it only reads, which the caller gets back."""

    def settle(tables, x):
        def turn(_, carry):
            tables, x = carry
            return tables, jnp.tanh(x @ tables["near"]) + x @ tables["far"]

        return jax.lax.fori_loop(0, 20, turn, (tables, x))

    def only_new(tables, x):
        return settle(tables, x)[1]

    tables = place.arrays(dict.fromkeys(("near", "far"), (6144, 6144)))
    arguments = tables, place.array(1024, 6144)
    return Pair("returned", Side(settle, arguments), Side(only_new, arguments))


@pair
def returned_prompt(place):
    """The hidden states of a prompt are given back beside the answer's."""

    def answer(weights, prompt, x):
        scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", x @ weights["query"], prompt))
        return {"prompt": prompt, "answer": jnp.einsum("bqk,bkd->bqd", scores, prompt)}

    def only_new(weights, prompt, x):
        return {"answer": answer(weights, prompt, x)["answer"]}

    weights = place.arrays({"query": (1024, 1024)})
    arguments = weights, place.array(16, 4096, 1024), place.array(16, 16, 1024)
    return Pair("returned", Side(answer, arguments), Side(only_new, arguments))


# Caches in eight bits.


def grouped(place, dtype):
    """A step over a list of caches of few heads, written by index, read a layer at a time."""
    scale = 1.0 if dtype != "int8" else 0.02

    def step(weights, caches, x, at):
        for each, cache in zip(weights, caches, strict=True):
            new = jnp.round((x @ each["made"]) / scale).astype(dtype).reshape(-1, 2, 2, 128)
            cache["made"] = cache["made"].at[:, at].set(new)
            keys, values = (cache["made"][:, :, part].astype(HALF) * scale for part in (0, 1))
            query = (x @ each["query"]).reshape(-1, 2, 8, 128)
            scores = jax.nn.softmax(jnp.einsum("bghd,bsgd->bghs", query, keys))
            x = x + jnp.einsum("bghs,bsgd->bghd", scores, values).reshape(x.shape[0], -1)
        return x, caches

    layers = [place.arrays({"made": (2048, 512), "query": (2048, 2048)}, HALF) for _ in range(4)]
    caches = [{"made": place.array(32, 8192, 2, 2, 128, dtype=dtype)} for _ in range(4)]
    x = place.array(32, 2048, dtype=HALF)
    return Side(step, (layers, caches, x, place.array(dtype="int32")), (1,))


@pair
def int8_grouped_cache(place):
    """Caches of few heads in bfloat16, and in int8."""
    return Pair("int8", grouped(place, HALF), grouped(place, "int8"))


def looped(place, dtype):
    """Layers in a loop whose carry has the caches of all."""
    scale = 1.0 if dtype != "int8" else 0.02

    def step(weights, cache, x, at):
        def layer(number, carry):
            x, cache = carry
            new = jnp.round((x @ weights[number]) / scale).astype(dtype)
            cache = jax.lax.dynamic_update_slice(cache, new[None, :, None], (number, 0, at, 0))
            kept = cache[number].astype(jnp.float32) * scale
            scores = jax.nn.softmax(jnp.einsum("bd,bsd->bs", x, kept))
            return x + jnp.einsum("bs,bsd->bd", scores, kept), cache

        return jax.lax.fori_loop(0, 8, layer, (x, cache))

    cache = place.array(8, 16, 4096, 512, dtype=dtype)
    arguments = place.array(8, 512, 512), cache, place.array(16, 512), place.array(dtype="int32")
    return Side(step, arguments, (1,))


@pair
def int8_looped_cache(place):
    """A cache in float32 that a loop over layers carries, and in int8."""
    return Pair("int8", looped(place, "float32"), looped(place, "int8"))


# States that a loop takes as xs and gives as ys though they are donated.


@pair
def carry_states_of_layers(place):
    """The states of a linear recurrence, layer by layer."""

    def layer(x, weight, state):
        state = 0.9 * state + x[:, :, None] * (x @ weight)[:, None, :]
        return x + jnp.einsum("bde,be->bd", state, x), state

    def scanned(weights, states, x):
        return jax.lax.scan(lambda x, each: layer(x, *each), x, (weights, states))

    def carried(weights, states, x):
        def one(carry, weight):
            x, states, number = carry
            x, new = layer(x, weight, states[number])
            return (x, states.at[number].set(new), number + 1), None

        return jax.lax.scan(one, (x, states, 0), weights)[0][:2]

    arguments = place.array(16, 512, 512), place.array(16, 32, 512, 512), place.array(32, 512)
    return Pair("carry", Side(scanned, arguments, (1,)), Side(carried, arguments, (1,)))


# Random bits that are kept for the gradient.


def dropped(place, drop):
    """A network whose layers drop some of what they hand on."""

    def step(state, key, x, targets):
        def loss(weights):
            y = x
            for number, each in enumerate(weights):
                own = jax.random.fold_in(key, number)
                y = y + drop(jax.nn.gelu(y @ each["up"]), own) @ each["down"]
            return jnp.mean((y - targets) ** 2)

        return adam(state, jax.grad(loss)(state["params"]))

    weights = [place.arrays({"up": (512, 2048), "down": (2048, 512)}) for _ in range(6)]
    x = place.array(16_384, 512)
    return Side(step, (with_moments(place, weights), place.array(2, dtype="uint32"), x, x), (0,))


def by_bernoulli(x, key):
    """Dropout as flax does it."""
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


@pair
def bits_of_layers(place):
    """Dropout in a network: its masks are kept, or drawn again."""
    after = dropped(place, jax.checkpoint(by_bernoulli))
    return Pair("bits", dropped(place, by_bernoulli), after)


@pair
def bits_of_attention(place):
    """Dropout of attention's chances, as flax does it: kept, or drawn again."""

    def attended(weights, x, key):
        query, key_, value = (
            (x @ weights[name]).reshape(*x.shape[:2], 8, 64) for name in ("query", "key", "value")
        )
        chances = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key_) / 8)
        return chances, value, key

    def step_by(drop):
        def step(state, key, x, targets):
            def loss(weights):
                y = x
                for number, each in enumerate(weights):
                    chances, value, own = attended(each, y, jax.random.fold_in(key, number))
                    y = y + jnp.einsum("bhqk,bkhd->bqhd", drop(chances, own), value).reshape(
                        y.shape
                    )
                return jnp.mean((y - targets) ** 2)

            return adam(state, jax.grad(loss)(state["params"]))

        return step

    names = ("query", "key", "value")
    weights = [place.arrays(dict.fromkeys(names, (512, 512))) for _ in range(3)]
    x = place.array(8, 1024, 512)
    arguments = with_moments(place, weights), place.array(2, dtype="uint32"), x, x
    after = step_by(jax.checkpoint(by_bernoulli))
    return Pair("bits", Side(step_by(by_bernoulli), arguments, (0,)), Side(after, arguments, (0,)))


# Large constants that a function closes over.


@pair
def constant_table(place):
    """A table that is part of the program, and an argument."""
    table = np.random.default_rng(0).standard_normal((8192, 4096), np.float32)

    def look_up(table, weights, tokens):
        return jnp.tanh(table[tokens] @ weights)

    def closed(weights, tokens):
        return look_up(jnp.asarray(table), weights, tokens)

    arguments = place.array(4096, 512), place.array(64, 512, dtype="int32")
    return Pair(
        "constant", Side(closed, arguments), Side(look_up, (place.array(8192, 4096), *arguments))
    )


@pair
def constant_mask(place):
    """A mask of numpy, and the same computed from positions."""
    mask = np.where(np.arange(4096)[:, None] >= np.arange(4096), 0.0, -1e9).astype(np.float32)

    def by(mask):
        def attend(query, key, value):
            scores = jnp.einsum("hqd,hkd->hqk", query, key) + mask()
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), value)

        return attend

    def computed():
        at = jnp.arange(4096)
        return jnp.where(at[:, None] >= at, 0.0, -1e9)

    arguments = (place.array(4, 4096, 64),) * 3
    return Pair("constant", Side(by(lambda: mask), arguments), Side(by(computed), arguments))


# Layers that are computed again.


@pair
def remat_blocks(place):
    """Blocks of flax one by one, and each under nn.remat."""
    from flax import linen

    def step_by(wrap):
        class Block(linen.Module):
            @linen.compact
            def __call__(self, x):
                y = linen.SelfAttention(8)(linen.LayerNorm()(x))
                x = x + y
                y = linen.gelu(linen.Dense(2048)(linen.LayerNorm()(x)))
                return x + linen.Dense(512)(y)

        class Model(linen.Module):
            @linen.compact
            def __call__(self, x):
                for _ in range(6):
                    x = wrap(Block)()(x)
                return x

        model = Model()
        weights = weights_of(place, model, place.array(1, 16, 512))

        def step(state, x, targets):
            def loss(weights):
                return jnp.mean((model.apply(weights, x) - targets) ** 2)

            return adam(state, jax.grad(loss)(state["params"]))

        x = place.array(16, 512, 512)
        return Side(step, (with_moments(place, weights), x, x), (0,))

    return Pair("remat", step_by(lambda block: block), step_by(linen.remat), "full")


@pair
def remat_gated(place):
    """Gated layers of a scan, and each computed again."""

    def layer(x, each):
        return x + (jax.nn.silu(x @ each["gate"]) * (x @ each["up"])) @ each["down"], None

    def step_by(layer):
        def step(state, x, targets):
            def loss(weights):
                return jnp.mean((jax.lax.scan(layer, x, weights)[0] - targets) ** 2)

            return adam(state, jax.grad(loss)(state["params"]))

        return step

    shapes = {"gate": (10, 512, 1536), "up": (10, 512, 1536), "down": (10, 1536, 512)}
    x = place.array(8192, 512)
    arguments = with_moments(place, place.arrays(shapes)), x, x
    return Pair(
        "remat",
        Side(step_by(layer), arguments, (0,)),
        Side(step_by(jax.checkpoint(layer)), arguments, (0,)),
        "full",
    )


# Programs in which nothing of this is left to do.


@pair
def right_int8_cache(place):
    """Caches in int8, donated."""
    return Pair("none", grouped(place, "int8"))


@pair
def right_small_constant(place):
    """A table of positions of 64 KiB is part of the program."""
    table = np.sin(np.arange(128 * 128, dtype=np.float32)).reshape(128, 128)

    def rotate(x):
        return (x.reshape(-1, 128) @ table).reshape(x.shape)

    return Pair("none", Side(rotate, (place.array(1 << 26),), (0,)))


@pair
def right_noise(place):
    """Noise that a sampler adds, for which there is no gradient."""

    def sample(weights, key, x):
        def turn(number, x):
            noise = jax.random.normal(jax.random.fold_in(key, number), x.shape)
            return x - 0.1 * jnp.tanh(x @ weights) + 0.01 * noise

        return jax.lax.fori_loop(0, 50, turn, x)

    arguments = place.array(1024, 1024), place.array(2, dtype="uint32"), place.array(65_536, 1024)
    return Pair("none", Side(sample, arguments, (2,)))


@pair
def right_waves(place):
    """A transform along the whole of an axis that is large."""

    def solve(x):
        waves = jnp.fft.rfft2(x)
        return jnp.fft.irfft2(waves / (1 + jnp.arange(waves.shape[-1])), s=x.shape)

    return Pair("none", Side(solve, (place.array(8192, 8192),), (0,)))


@pair
def right_factors(place):
    """Alternating least squares: each side needs all of the other."""

    def step(rows, columns, ratings):
        gram = columns.T @ columns + jnp.eye(64)
        rows = jnp.linalg.solve(gram, columns.T @ ratings.T).T
        gram = rows.T @ rows + jnp.eye(64)
        return rows, jnp.linalg.solve(gram, rows.T @ ratings).T

    arguments = place.array(8192, 64), place.array(16_384, 64), place.array(8192, 16_384)
    return Pair("none", Side(step, arguments, (0, 1)))


@pair
def right_adapters(place):
    """Small adapters are trained, and the large weights are only read."""

    def step(state, frozen, x, targets):
        def loss(adapters):
            y = x
            for each, adapter in zip(frozen, adapters, strict=True):
                y = y @ each + (y @ adapter["in"]) @ adapter["out"]
            return jnp.mean((y - targets) ** 2)

        return adam(state, jax.grad(loss)(state["params"]))

    adapters = [place.arrays({"in": (4096, 8), "out": (8, 4096)}) for _ in range(6)]
    frozen = [place.array(4096, 4096) for _ in range(6)]
    x = place.array(256, 4096)
    return Pair("none", Side(step, (with_moments(place, adapters), frozen, x, x), (0,)))


@pair
def right_mapped(place):
    """Jacobians, a thousand at a time."""
    return Pair("none", map_jacobians(place).after)


@pair
def right_votes(place):
    """Votes of the nearest, a part of the queries at a time."""
    return Pair("none", chunk_votes(place).after)


@pair
def right_only_new(place):
    """A loop that gives back what is new."""
    return Pair("none", returned_by_fori(place).after)


@pair
def right_answer(place):
    """An answer without its prompt."""
    return Pair("none", returned_prompt(place).after)


@pair
def right_carried(place):
    """States that a loop carries."""
    return Pair("none", carry_states_of_layers(place).after)


@pair
def right_sum_of_all(place):
    """The mean over a large batch, of which no part is kept."""

    def statistics(x):
        mean = x.mean(0)
        return mean, ((x - mean) ** 2).mean(0)

    return Pair("none", Side(statistics, (place.array(262_144, 512),)))


SAME |= {
    ("right_int8_cache", "before"): ("int8_grouped_cache", "after"),
    ("right_mapped", "before"): ("map_jacobians", "after"),
    ("right_votes", "before"): ("chunk_votes", "after"),
    ("right_only_new", "before"): ("returned_by_fori", "after"),
    ("right_answer", "before"): ("returned_prompt", "after"),
    ("right_carried", "before"): ("carry_states_of_layers", "after"),
}
