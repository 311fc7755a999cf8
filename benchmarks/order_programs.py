"""Programs whose order of instructions matters or might: loops in Python, steps, losses.

Each makes a jitted function and its arguments, as `memhouse fit` takes them.
"""

import itertools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

shape = jax.ShapeDtypeStruct
_F32 = jnp.float32


def _of(*sizes):
    return shape(sizes, _F32)


def _sgd(loss, weights, *data):
    def step(weights, *data):
        gradients = jax.grad(loss)(weights, *data)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    return jax.jit(step, donate_argnums=0), (weights, *data)


def heads():
    """Attention, a head at a time."""

    def attend(q, k, v):
        each = [jax.nn.softmax(q[h] @ k[h].T / 8) @ v[h] for h in range(12)]
        return jnp.concatenate(each, -1)

    return jax.jit(attend), (_of(12, 1024, 64),) * 3


def ensemble():
    """The mean of many models' sorted scores."""

    def mean(weights, x):
        return sum(jnp.sort(jnp.tanh(x @ w), 0)[::4].mean(0) for w in weights)

    return jax.jit(mean), ([_of(256, 1024)] * 24, _of(2048, 256))


def _mlp(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def microbatches():
    """Gradients of microbatches, added up in Python."""

    def loss(weights, x):
        return (_mlp(weights, x) ** 2).mean()

    def step(weights, batch):
        total = [jax.grad(loss)(weights, part) for part in batch]
        return jax.tree.map(lambda w, *g: w - 0.1 * sum(g), weights, *total)

    return jax.jit(step, donate_argnums=0), ([_of(1024, 1024)] * 8, _of(6, 1024, 1024))


def experts():
    """A mixture of experts, an expert at a time, with its step."""

    def loss(weights, x):
        gates = jax.nn.softmax(x @ weights["gate"])
        each = [
            gates[:, number, None] * (jax.nn.gelu(x @ up) @ down)
            for number, (up, down) in enumerate(weights["experts"])
        ]
        return (sum(each) ** 2).mean()

    weights = {"gate": _of(512, 12), "experts": [(_of(512, 2048), _of(2048, 512))] * 12}
    return _sgd(loss, weights, _of(2048, 512))


def evaluations():
    """Metrics of ten data sets in one program."""

    def evaluate(weights, sets):
        return [
            {"loss": jax.nn.logsumexp(x @ weights, -1).mean(), "top": jnp.sort(x @ weights)[:, -5:]}
            for x in sets
        ]

    return jax.jit(evaluate), (_of(256, 4096), [_of(1024, 256)] * 10)


def gradient_norms():
    """The norm of the gradient of each of several losses."""

    def norms(weights, x, targets):
        def loss(weights, target):
            return ((_mlp(weights, x) - target) ** 2).mean()

        return [optax.global_norm(jax.grad(loss)(weights, target)) for target in targets]

    return jax.jit(norms), ([_of(1024, 1024)] * 4, _of(512, 1024), [_of(512, 1024)] * 6)


def _block(weights, x):
    q, k, v = jnp.split(x @ weights["qkv"], 3, -1)
    heads = [each.reshape(*each.shape[:2], 8, -1).swapaxes(1, 2) for each in (q, k, v)]
    scores = jax.nn.softmax(heads[0] @ heads[1].swapaxes(-1, -2) / 8)
    x = x + (scores @ heads[2]).swapaxes(1, 2).reshape(x.shape) @ weights["out"]
    return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]


_BLOCK = {"qkv": _of(512, 1536), "out": _of(512, 512), "up": _of(512, 2048), "down": _of(2048, 512)}


def _transformer(wrap, layers=6):
    def loss(weights, x):
        for layer in weights:
            x = wrap(_block)(layer, x)
        return (x**2).mean()

    return _sgd(loss, [_BLOCK] * layers, _of(4, 512, 512))


def transformer():
    """Six layers in Python."""
    return _transformer(lambda block: block)


def transformer_checkpointed():
    """The same, each layer computed again."""
    return _transformer(jax.checkpoint)


def transformer_scanned():
    """The same as a scan."""

    def loss(weights, x):
        x, _ = jax.lax.scan(lambda x, layer: (_block(layer, x), None), x, weights)
        return (x**2).mean()

    stacked = jax.tree.map(lambda w: _of(6, *w.shape), _BLOCK)
    return _sgd(loss, stacked, _of(4, 512, 512))


def _conv(x, w, stride=1):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)


def images():
    """A convolutional network with its step."""

    def loss(weights, x):
        for number, w in enumerate(weights):
            x = jax.nn.relu(_conv(x, w, 1 + number % 2))
        return (x**2).mean()

    weights = [_of(3, 3, 3, 32), *(_of(3, 3, 32, 32),) * 6]
    return _sgd(loss, weights, _of(16, 128, 128, 3))


def unet():
    """Down and up, with what the way up reads of the way down."""

    def loss(weights, x):
        kept = []
        for w in weights["down"]:
            x = jax.nn.relu(_conv(x, w))
            kept.append(x)
            x = _conv(x, w[:1, :1].repeat(2, 0).swapaxes(0, 1).repeat(2, 0), 2)
        for w, other in zip(weights["up"], reversed(kept), strict=True):
            x = jax.image.resize(x, other.shape, "nearest")
            x = jax.nn.relu(_conv(jnp.concatenate([x, other], -1), w))
        return (x**2).mean()

    weights = {"down": [_of(3, 3, 16, 16)] * 4, "up": [_of(3, 3, 32, 16)] * 4}
    return _sgd(loss, weights, _of(8, 128, 128, 16))


def towers():
    """Contrast of two towers."""

    def loss(weights, x, y):
        a, b = (_mlp(side, each) for side, each in zip(weights, (x, y), strict=True))
        logits = a @ b.T
        return jax.nn.logsumexp(logits, 0).mean() + jax.nn.logsumexp(logits, 1).mean()

    return _sgd(loss, [[_of(512, 512)] * 4] * 2, _of(4096, 512), _of(4096, 512))


def adam():
    """A language model with clipping and Adam."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def loss(weights, tokens):
        x = weights["table"][tokens]
        for layer in weights["layers"]:
            x = _block(layer, x)
        logits = x @ weights["table"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    def step(weights, state, tokens):
        gradients = jax.grad(loss)(weights, tokens)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    weights = {"table": _of(8192, 512), "layers": [_BLOCK] * 4}
    state = jax.eval_shape(optimizer.init, weights)
    tokens = shape((4, 256), jnp.int32)
    return jax.jit(step, donate_argnums=(0, 1)), (weights, state, tokens)


def multi_steps():
    """Optax adds up the gradients of several steps."""
    optimizer = optax.MultiSteps(optax.adam(1e-3), 4)

    def loss(weights, x):
        return (_mlp(weights, x) ** 2).mean()

    def step(weights, state, x):
        updates, state = optimizer.update(jax.grad(loss)(weights, x), state, weights)
        return optax.apply_updates(weights, updates), state

    weights = [_of(1024, 1024)] * 6
    state = jax.eval_shape(optimizer.init, weights)
    return jax.jit(step, donate_argnums=(0, 1)), (weights, state, _of(2048, 1024))


def heads_in_scan():
    """A scan over layers whose body has its heads in Python."""

    def attend(x, weights):
        each = [jax.nn.softmax((x @ w) @ x.T / 8) @ x[:, :64] for w in weights]
        return x + jnp.concatenate(each, -1), None

    def run(weights, x):
        return jax.lax.scan(attend, x, weights)[0]

    return jax.jit(run), (_of(4, 8, 512, 512), _of(1024, 512))


def recurrent():
    """A recurrent network with its step."""

    def loss(weights, x):
        def cell(carry, x):
            carry = jnp.tanh(carry @ weights["own"] + x @ weights["input"])
            return carry, carry

        carry = jnp.zeros((x.shape[1], 512))
        return (jax.lax.scan(cell, carry, x)[1] ** 2).mean()

    return _sgd(loss, {"own": _of(512, 512), "input": _of(256, 512)}, _of(256, 64, 256))


def folds():
    """Ridge regressions of several penalties."""

    def fit(x, y):
        def error(penalty):
            gram = x.T @ x + penalty * jnp.eye(x.shape[1])
            return ((x @ jnp.linalg.inv(gram) @ (x.T @ y) - y) ** 2).mean()

        return [error(penalty) for penalty in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]

    return jax.jit(fit), (_of(4096, 512), _of(4096, 64))


def spectra():
    """A loss over spectrograms of several sizes."""

    def loss(x, y):
        found = 0.0
        for size in (256, 512, 1024, 2048):
            parts = [jnp.abs(jnp.fft.rfft(each.reshape(-1, size))) for each in (x, y)]
            found += jnp.abs(parts[0] - parts[1]).mean()
        return found

    return jax.jit(jax.grad(loss)), (_of(2097152), _of(2097152))


def scattered():
    """Gradients of many lookups in one table."""

    def loss(table, indices):
        return sum((jnp.tanh(table[each]) ** 2).mean() for each in indices)

    return jax.jit(jax.grad(loss)), (_of(4096, 512), [shape((4096,), jnp.int32)] * 18)


def flax_step():
    """A network of Flax NNX with its optimizer."""

    class Network(nnx.Module):
        def __init__(self, rngs):
            sizes = [512, 2048, 2048, 2048, 512]
            ends = itertools.pairwise(sizes)
            self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in ends])
            self.norm = nnx.LayerNorm(512, rngs=rngs)

        def __call__(self, x):
            for layer in self.layers:
                x = nnx.gelu(layer(x))
            return self.norm(x)

    graph, state = nnx.split(nnx.eval_shape(lambda: Network(nnx.Rngs(0))))
    optimizer = optax.adam(1e-3)

    def step(state, moments, x):
        def loss(state):
            return (nnx.merge(graph, state)(x) ** 2).mean()

        updates, moments = optimizer.update(jax.grad(loss)(state), moments, state)
        return optax.apply_updates(state, updates), moments

    state = jax.tree.map(lambda w: shape(w.shape, w.dtype), nnx.to_pure_dict(state))
    moments = jax.eval_shape(optimizer.init, state)
    return jax.jit(step, donate_argnums=(0, 1)), (state, moments, _of(2048, 512))


def pyramid():
    """Filters of several sizes, each kept for its difference from the next."""

    def differences(x):
        found = []
        for size in (3, 5, 9, 17, 33, 65):
            kernel = jnp.ones((size,)) / size
            found.append(jax.vmap(lambda row, kernel=kernel: jnp.convolve(row, kernel, "same"))(x))
        return sum(((a - b) ** 2).sum(0) for a, b in itertools.pairwise(found))

    return jax.jit(differences), (_of(1024, 4096),)


PROGRAMS = {
    each.__name__: each
    for each in (
        heads,
        ensemble,
        microbatches,
        experts,
        evaluations,
        gradient_norms,
        transformer,
        transformer_checkpointed,
        transformer_scanned,
        images,
        unet,
        towers,
        adam,
        multi_steps,
        heads_in_scan,
        recurrent,
        folds,
        spectra,
        scattered,
        flax_step,
        pyramid,
    )
}
