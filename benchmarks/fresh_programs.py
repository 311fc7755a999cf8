"""Compile programs that are unlike each other, and keep what XLA dumps of each.

    python benchmarks/fresh_programs.py OUT [--platform tpu] [--only NAME ...]

Needs `jax`, and `libtpu` for `--platform tpu`; a TPU is not needed, as nothing is run. Each
program is compiled in a process of its own, because XLA reads its flags once in a process.
OUT/PROGRAM then holds the scheduled HLO text, the buffer assignment and the live ranges. A
program that a platform cannot compile leaves `error.txt` there instead.

The rules of liveness were read off other dumps: these programs say whether they hold elsewhere.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from places import Place

PLATFORMS = ("cpu", "tpu")
DEVICES = 4
KEPT = re.compile(r"after_optimizations(-[a-z-]+)?\.txt$")

PROGRAMS = {}


def program(function):
    """Add a program; its function takes a place and gives a lowered computation."""
    PROGRAMS[function.__name__] = function
    return function


def lowered(function, *arguments, **options):
    """What `jax.jit` makes of a function, not yet compiled."""
    import jax

    return jax.jit(function, **options).lower(*arguments)


# Control flow.


@program
def switch_in_while_in_fori(place):
    """Three ways to go in a loop whose length is not known, in a loop whose length is."""
    import jax
    import jax.numpy as jnp

    def step(state):
        count, x = state
        ways = [jnp.sin, lambda v: v @ v.T, lambda v: jnp.cumsum(v, axis=0)]
        return count + 1, jax.lax.switch(count % 3, ways, x)

    def turn(i, x):
        def again(state):
            return (state[0] < i + 5) & (state[1].sum() < 1e6)

        return jax.lax.while_loop(again, step, (i, x))[1]

    return lowered(lambda x: jax.lax.fori_loop(0, 4, turn, x), place.array(64, 64))


@program
def while_with_large_carry(place):
    """A loop that carries a tree of many arrays, some of which no turn changes."""
    import jax
    import jax.numpy as jnp

    def turn(state):
        grads = jax.tree.map(lambda w: w * 0.1, state["weights"])
        moved = jax.tree.map(lambda m, g: 0.9 * m + g, state["moments"], grads)
        weights = jax.tree.map(lambda w, m: w - m, state["weights"], moved)
        left = state["left"] - 1
        return {"weights": weights, "moments": moved, "left": left, "fixed": state["fixed"]}

    def run(weights, fixed):
        moments = jax.tree.map(jnp.zeros_like, weights)
        state = {"weights": weights, "moments": moments, "left": 9, "fixed": fixed}
        return jax.lax.while_loop(lambda s: s["left"] > 0, turn, state)

    sizes = [(128, 128), (128, 256), (256,), (256, 64)]
    return lowered(run, [place.array(*s) for s in sizes], place.array(32, 32))


@program
def while_swaps_its_carry(place):
    """A loop that hands its two arrays on crosswise, so that a copy is needed."""
    import jax

    def turn(state):
        count, a, b = state
        return count + 1, b, a

    def run(count, a, b):
        return jax.lax.while_loop(lambda s: s[0] < 10, turn, (count, a, b))

    count = place.array(dtype="int32")
    return lowered(run, count, place.array(128, 128), place.array(128, 128))


@program
def loops_in_loops_in_branches(place):
    """A branch that loops, a loop in it that branches, and a third level below."""
    import jax
    import jax.numpy as jnp

    def inner(i, x):
        return jax.lax.cond(x[0, 0] > i, lambda v: jnp.sort(v, axis=1), lambda v: v * 2.0, x)

    def middle(i, state):
        x, y = state
        return jax.lax.fori_loop(0, i, inner, x), y + x

    def run(p, x, y):
        def looped(v):
            return jax.lax.fori_loop(0, 3, middle, v)

        return jax.lax.cond(p, looped, lambda v: (v[1], v[0]), (x, y))

    return lowered(run, place.array(dtype="bool"), place.array(64, 64), place.array(64, 64))


def _branches(place, **options):
    import jax

    def change(state):
        a, b = state
        return a.at[:8].set(b[:8] * 2.0), b

    def run(p, a, b):
        return jax.lax.cond(p, change, lambda s: s, (a, b))

    big = place.array(256, 256)
    return lowered(run, place.array(dtype="bool"), big, big, **options)


@program
def branches_with_donated_arguments(place):
    """One branch gives its argument back as it is, the other changes half of it in place."""
    return _branches(place, donate_argnums=(1, 2))


@program
def branches_with_kept_arguments(place):
    """The same two branches, with the arguments not donated."""
    return _branches(place)


@program
def gives_its_arguments_back(place):
    """Arguments that are results, arguments that nobody reads, one result that stands twice."""
    a, b, c = place.array(64, 64), place.array(32), place.array(16)
    options = {"donate_argnums": (0,), "keep_unused": True}
    return lowered(lambda a, b, c: ((a, b), a + 1.0, (b, b)), a, b, c, **options)


# Gradients.


@program
def scan_with_residuals(place):
    """The gradient of a recurrent network: the backward scan reads what the forward one kept."""
    import jax
    import jax.numpy as jnp

    def loss(w, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x)
            return h, jnp.mean(h**2)

        return jnp.sum(jax.lax.scan(step, jnp.zeros((16, 64)), xs)[1])

    return lowered(jax.value_and_grad(loss), place.array(64, 64), place.array(12, 16, 64))


@program
def custom_gradient(place):
    """A function with a gradient of its own, which clips."""
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def soft(x):
        return jnp.log1p(jnp.exp(x))

    def forward(x):
        return soft(x), x

    def backward(x, g):
        return (jnp.clip(g * jax.nn.sigmoid(x), -1.0, 1.0),)

    soft.defvjp(forward, backward)
    big = place.array(128, 128)
    return lowered(jax.grad(lambda w, x: soft(x @ w).sum(), argnums=(0, 1)), big, big)


def remat_with(place, policy):
    """The gradient of a chain of layers under a policy of what to keep."""
    import jax
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    def layer(x, w):
        x = jnp.sin(checkpoint_name(x @ w, "product"))
        return checkpoint_name(x, "layer")

    def loss(ws, x):
        for w in ws:
            x = jax.checkpoint(layer, policy=policy)(x, w)
        return jnp.sum(x)

    w = place.array(128, 128)
    return lowered(jax.grad(loss), [w] * 6, place.array(512, 128))


@program
def remat_nothing_kept(place):
    """Each layer is worked out again."""
    return remat_with(place, None)


@program
def remat_products_kept(place):
    """Each layer is worked out again, but for its product."""
    import jax

    return remat_with(place, jax.checkpoint_policies.dots_saveable)


@program
def remat_names_kept(place):
    """Each layer is worked out again, but for what bears a name."""
    import jax

    return remat_with(place, jax.checkpoint_policies.save_only_these_names("layer"))


@program
def remat_in_scan(place):
    """A scan over layers, each of which is worked out again."""
    import jax
    import jax.numpy as jnp

    def loss(ws, x):
        @jax.checkpoint
        def layer(x, w):
            return jax.nn.gelu(x @ w) @ w.T, None

        return jnp.sum(jax.lax.scan(layer, x, ws)[0])

    return lowered(jax.grad(loss), place.array(6, 128, 256), place.array(64, 128))


def training_step(place, **options):
    """One step of Adam for a small network."""
    import jax
    import jax.numpy as jnp

    def loss(weights, x, y):
        for w, b in weights[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = weights[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    def step(weights, first, second, x, y):
        cost, grads = jax.value_and_grad(loss)(weights, x, y)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)

        def move(w, m, v):
            return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8)

        return jax.tree.map(move, weights, first, second), first, second, cost

    sizes = [(64, 256), (256, 256), (256, 10)]
    weights = [(place.array(a, b), place.array(b)) for a, b in sizes]
    x, y = place.array(128, 64), place.array(128, 10)
    return lowered(step, weights, weights, weights, x, y, **options)


@program
def training_donated(place):
    """A training step that gives its weights' room back."""
    return training_step(place, donate_argnums=(0, 1, 2))


@program
def training_kept(place):
    """A training step that keeps the old weights beside the new."""
    return training_step(place)


@program
def convolution_gradient(place):
    """A convolution network's gradient: pooling, batch norm, strides."""
    import jax
    import jax.numpy as jnp

    names = ("NHWC", "HWIO", "NHWC")

    def loss(k1, k2, x):
        for k, stride in ((k1, 1), (k2, 2)):
            x = jax.lax.conv_general_dilated(x, k, (stride, stride), "SAME", None, None, names)
            x = jax.nn.relu((x - x.mean((0, 1, 2))) / (x.std((0, 1, 2)) + 1e-5))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean(x)

    k1, k2 = place.array(3, 3, 8, 16), place.array(3, 3, 16, 32)
    return lowered(jax.grad(loss, argnums=(0, 1)), k1, k2, place.array(8, 32, 32, 8))


@program
def lstm(place):
    """A recurrent cell with four gates and a carry of two arrays."""
    import jax
    import jax.numpy as jnp

    def step(w, carry, x):
        h, c = carry
        i, f, g, o = jnp.split(jnp.concatenate([h, x], axis=1) @ w, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def run(w, h, c, xs):
        return jax.lax.scan(lambda carry, x: step(w, carry, x), (h, c), xs)

    state = place.array(8, 32)
    return lowered(run, place.array(64, 128), state, state, place.array(20, 8, 32))


# Operations with rules of their own.


@program
def fourier(place):
    """A filter in the frequency domain: real, complex and back."""
    import jax.numpy as jnp

    def run(x):
        f = jnp.fft.rfft2(x)
        return jnp.fft.irfft2(f * jnp.exp(-jnp.abs(f))), jnp.fft.fft(x[0])

    return lowered(run, place.array(4, 64, 64))


@program
def sorting(place):
    """Sorts with one operand and with several, and the order of a sort."""
    import jax
    import jax.numpy as jnp

    def run(x, keys):
        order = jnp.argsort(x, axis=-1)
        a, b, c = jax.lax.sort((keys, x, x * 2.0), num_keys=1)
        return order, a, b + c, jnp.sort(x, axis=0)

    return lowered(run, place.array(64, 128), place.array(64, 128, dtype="int32"))


@program
def largest(place):
    """The largest few, and where they stand."""
    import jax
    import jax.numpy as jnp

    def run(x):
        values, places = jax.lax.top_k(x, 8)
        return jax.nn.softmax(values), jnp.take_along_axis(x, places, axis=1), jnp.argmax(x, 1)

    return lowered(run, place.array(64, 1024))


@program
def linear_algebra(place):
    """Factors of a matrix, and systems that they solve."""
    import jax
    import jax.numpy as jnp

    def run(a, b):
        factor = jnp.linalg.cholesky(a @ a.T + jnp.eye(64))
        q, r = jnp.linalg.qr(a)
        solved = jax.scipy.linalg.solve_triangular(factor, b, lower=True)
        return factor, q @ r, solved, jax.scipy.linalg.solve_triangular(r, solved)

    return lowered(run, place.array(64, 64), place.array(64, 16))


@program
def linear_algebra_gradient(place):
    """The gradient of a Gaussian's likelihood through a factor and a system."""
    import jax
    import jax.numpy as jnp

    def loss(a, b):
        factor = jnp.linalg.cholesky(a @ a.T + jnp.eye(48))
        y = jax.scipy.linalg.cho_solve((factor, True), b)
        return jnp.sum(b * y) + 2 * jnp.sum(jnp.log(jnp.diag(factor)))

    return lowered(jax.grad(loss, argnums=(0, 1)), place.array(48, 48), place.array(48, 4))


@program
def singular_values(place):
    """Eigenvalues and singular values: loops on TPU, custom calls on CPU."""
    import jax.numpy as jnp

    def run(a):
        return jnp.linalg.eigh(a + a.T), jnp.linalg.svd(a, full_matrices=False)

    return lowered(run, place.array(24, 24))


@program
def decode_with_cache(place):
    """Tokens one by one, with keys and values written into a donated cache."""
    import jax
    import jax.numpy as jnp

    def step(i, state):
        keys, values, x = state
        keys = jax.lax.dynamic_update_slice(keys, (x * 2.0)[:, None], (0, i, 0))
        values = jax.lax.dynamic_update_slice(values, (x + 1.0)[:, None], (0, i, 0))
        scores = jnp.einsum("bd,btd->bt", x, keys)
        scores = jnp.where(jnp.arange(64) <= i, scores, -1e9)
        return keys, values, jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), values)

    def run(keys, values, x):
        return jax.lax.fori_loop(0, 64, step, (keys, values, x))

    cache = place.array(4, 64, 128)
    return lowered(run, cache, cache, place.array(4, 128), donate_argnums=(0, 1))


@program
def one_decode_step(place):
    """One token, with a cache that is not donated, in bfloat16."""
    import jax
    import jax.numpy as jnp

    def run(cache, x, i):
        cache = jax.lax.dynamic_update_slice(cache, x[:, None], (0, i, 0))
        return cache, jax.nn.softmax(jnp.einsum("bd,btd->bt", x, cache))

    cache = place.array(4, 64, 128, dtype="bfloat16")
    token = place.array(4, 128, dtype="bfloat16")
    return lowered(run, cache, token, place.array(dtype="int32"))


@program
def segments(place):
    """Sums over segments, scatters that add, set and take the largest, and a gather."""
    import jax
    import jax.numpy as jnp

    def run(x, ids, table):
        sums = jax.ops.segment_sum(x, ids, num_segments=32)
        table = table.at[ids].add(x, mode="drop")
        table = table.at[ids[:4]].max(sums[:4])
        return sums, jnp.take(table, ids[:16], axis=0), table

    ids = place.array(256, dtype="int32")
    return lowered(run, place.array(256, 16), ids, place.array(64, 16), donate_argnums=(2,))


@program
def random_numbers(place):
    """Bits, normal numbers and a shuffle."""
    import jax

    def run(data):
        a, b, c = jax.random.split(jax.random.wrap_key_data(data), 3)
        normal = jax.random.normal(b, (64, 64))
        return jax.random.bits(a, (128,)), normal, jax.random.permutation(c, normal)

    return lowered(run, place.array(2, dtype="uint32"))


@program
def random_numbers_by_xla(place):
    """XLA's own generator, whose result is a tuple of state and bits."""
    import jax

    def run(state):
        state, bits = jax.lax.rng_bit_generator(state, (64, 128), dtype="uint32")
        return state, bits >> 9

    return lowered(run, place.array(4, dtype="uint32"), donate_argnums=(0,))


@program
def associative(place):
    """A linear recurrence as an associative scan."""
    import jax

    def join(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    big = place.array(128, 64)
    return lowered(lambda a, b: jax.lax.associative_scan(join, (a, b)), big, big)


@program
def batched_attention(place):
    """A product and a softmax under vmap."""
    import jax

    def attend(q, k, v):
        return jax.nn.softmax(q @ k.T / 8.0, axis=-1) @ v

    big = place.array(4, 8, 64, 32)
    return lowered(jax.vmap(jax.vmap(attend)), big, big, big)


@program
def eight_bits(place):
    """Products of 8-bit integers, scaled back and rounded again."""
    import jax
    import jax.numpy as jnp

    def run(x, w, scale):
        y = jax.lax.dot(x, w, preferred_element_type=jnp.int32)
        y = y.astype(jnp.float32) * scale
        top = jnp.max(jnp.abs(y), axis=1, keepdims=True)
        return jnp.clip(jnp.round(y / top * 127), -127, 127).astype(jnp.int8), top

    x, w = place.array(128, 256, dtype="int8"), place.array(256, 128, dtype="int8")
    return lowered(run, x, w, place.array(128))


@program
def many_types(place):
    """Predicates, halves, doubled bits, complex numbers, and casts between them."""
    import jax
    import jax.numpy as jnp

    def run(x, y):
        mask = (x > 0) & (jnp.arange(64) % 2 == 0)
        bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
        z = jax.lax.complex(x, x * 2) * (1 + 2j)
        return mask, bits ^ 7, z.imag, jnp.where(mask, y, y.astype(jnp.float16)), z

    return lowered(run, place.array(64, 64), place.array(64, 64, dtype="bfloat16"))


@program
def mixture_of_experts(place):
    """Tokens sent to experts by a gather, and brought back by a scatter."""
    import jax
    import jax.numpy as jnp

    def run(x, gate, experts):
        weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate), 2)
        order = jnp.argsort(chosen.reshape(-1))
        sent = jnp.take(jnp.repeat(x, 2, axis=0), order, axis=0).reshape(4, 64, 64)
        done = jax.nn.silu(jnp.einsum("etd,edf->etf", sent, experts)).reshape(256, 128)
        back = jnp.zeros_like(done).at[order].set(done).reshape(128, 2, 128)
        return jnp.einsum("tk,tkf->tf", weights, back)

    return lowered(run, place.array(128, 64), place.array(64, 4), place.array(4, 64, 128))


@program
def pure_elementwise(place):
    """Long chains of elementwise work between products, in which operands' room is taken over."""
    import jax.numpy as jnp

    def run(a, b, c):
        x = a @ b
        y = jnp.tanh(x) * 2.0 + c
        z = y @ b
        return jnp.exp(z - z.max(1, keepdims=True)) + y, jnp.cumsum(z, axis=1)

    big = place.array(256, 256)
    return lowered(run, big, big, big)


@program
def unknown_sizes(place):
    """Sizes that only the data tell, bounded by the shape: set-dimension-size."""
    import jax
    import jax.numpy as jnp
    import numpy
    from jax.extend import core
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo as hlo

    sized = core.Primitive("sized_sum")
    sized.def_abstract_eval(lambda x, n: jax.core.ShapedArray((), x.dtype))

    def lower(context, x, n):
        shape = ir.RankedTensorType(x.type)
        bounds = ir.Attribute.parse(f"#stablehlo.bounds<{shape.shape[0]}, ?>")
        dynamic = [ir.ShapedType.get_dynamic_size(), *shape.shape[1:]]
        kind = ir.RankedTensorType.get(dynamic, shape.element_type, bounds)
        cut = hlo.SetDimensionSizeOp(x, n, 0, results=[kind]).result
        doubled = hlo.AddOp(cut, cut).result
        zero = mlir.ir_constant(numpy.float32(0))
        scalar = ir.RankedTensorType.get([], shape.element_type)
        total = hlo.ReduceOp([scalar], [doubled], [zero], list(range(shape.rank)))
        block = total.body.blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            hlo.ReturnOp([hlo.AddOp(*block.arguments).result])
        return [total.result]

    mlir.register_lowering(sized, lower)

    def run(x, n):
        return sized.bind(jnp.sin(x), n)

    return lowered(run, place.array(64, 32), place.array(dtype="int32"))


# Several devices.


def shared(place, body, into, out, *arguments, axes=None, **options):
    """A function that runs on each of the devices with its own part."""
    import jax

    mesh = place.mesh(**(axes or {"d": 4}))
    mapped = jax.shard_map(body, mesh=mesh, in_specs=into, out_specs=out, check_vma=False)
    given = []
    for spec, (shape, dtype) in zip(into, arguments, strict=True):
        given.append(place.spread(mesh, spec, *shape, dtype=dtype))
    return lowered(mapped, *given, **options)


@program
def gathers(place):
    """Parts of weights gathered before each product, and sums that are spread again."""
    import jax
    from jax.sharding import PartitionSpec as P

    def body(x, w):
        y = jax.nn.relu(x @ jax.lax.all_gather(w, "d", axis=0, tiled=True))
        z = y @ jax.lax.all_gather(w, "d", axis=0, tiled=True).T
        return jax.lax.psum_scatter(z, "d", scatter_dimension=1, tiled=True)

    arguments = ((256, 128), "float32"), ((128, 128), "float32")
    return shared(place, body, (P("d"), P("d")), P("d"), *arguments)


@program
def gathers_several(place):
    """Gathers that XLA may join into one with several operands, in a loop."""
    import jax
    from jax.sharding import PartitionSpec as P

    def body(x, ws):
        def turn(x, w):
            a, b = (jax.lax.all_gather(v, "d", axis=0, tiled=True) for v in w)
            return jax.nn.relu(x @ a) @ b, None

        return jax.lax.scan(turn, x, ws)[0]

    mesh = place.mesh(d=4)
    mapped = jax.shard_map(
        body, mesh=mesh, in_specs=(P("d"), P(None, "d")), out_specs=P("d"), check_vma=False
    )
    w = place.spread(mesh, P(None, "d"), 4, 128, 128)
    return lowered(mapped, place.spread(mesh, P("d"), 256, 128), (w, w))


@program
def ring(place):
    """A product by parts that go round from device to device."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    def body(x, w):
        def turn(i, state):
            w, y = state
            y = y + jax.lax.dynamic_slice_in_dim(x, i * 64, 64, 1) @ w
            return jax.lax.ppermute(w, "d", [(0, 1), (1, 2), (2, 3), (3, 0)]), y

        return jax.lax.fori_loop(0, 4, turn, (w, jnp.zeros((64, 128))))[1]

    arguments = ((256, 256), "float32"), ((256, 128), "float32")
    return shared(place, body, (P("d"), P("d")), P("d"), *arguments)


@program
def ring_unrolled(place):
    """The same without a loop, with two arrays that go opposite ways."""
    import jax
    from jax.sharding import PartitionSpec as P

    def body(x, w):
        left, right, y = w, w, x
        for _ in range(3):
            left = jax.lax.ppermute(left, "d", [(0, 1), (1, 2), (2, 3), (3, 0)])
            right = jax.lax.ppermute(right, "d", [(1, 0), (2, 1), (3, 2), (0, 3)])
            y = y + x @ left + x @ right
        return y

    arguments = ((256, 128), "float32"), ((512, 128), "float32")
    return shared(place, body, (P("d"), P("d")), P("d"), *arguments)


@program
def all_to_all(place):
    """Rows for columns: each device sends a part to each."""
    import jax
    from jax.sharding import PartitionSpec as P

    def body(x, w):
        y = jax.lax.all_to_all(x, "d", split_axis=1, concat_axis=0, tiled=True)
        y = jax.nn.softmax(y @ w)
        return jax.lax.all_to_all(y, "d", split_axis=0, concat_axis=1, tiled=True)

    arguments = ((256, 128), "float32"), ((32, 32), "float32")
    return shared(place, body, (P("d"), P()), P("d"), *arguments)


@program
def ragged_all_to_all(place):
    """Parts of unlike sizes, sent into an array that is there already."""
    import jax
    from jax.sharding import PartitionSpec as P

    def body(x, out, starts, sizes, to, got):
        y = jax.lax.ragged_all_to_all(x, out, starts, sizes, to, got, axis_name="d")
        return y * 2.0

    whole = ((256, 128), "float32")
    counts = ((16,), "int32")
    return shared(place, body, (P("d"),) * 6, P("d"), whole, whole, *[counts] * 4)


@program
def data_parallel(place):
    """A training step with a sum of gradients over devices, and donated weights."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    def body(w1, w2, x):
        def loss(w1, w2):
            return jnp.mean((jax.nn.relu(x @ w1) @ w2) ** 2)

        cost, grads = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2)
        g1, g2 = jax.lax.pmean(grads, "d")
        return w1 - 0.1 * g1, w2 - 0.1 * g2, jax.lax.pmax(cost, "d")

    big = ((128, 128), "float32")
    specs = (P(), P(), P("d"))
    arguments = big, big, ((512, 128), "float32")
    return shared(place, body, specs, (P(), P(), P()), *arguments, donate_argnums=(0, 1))


@program
def parted_by_the_compiler(place):
    """A training step whose collectives the partitioner puts in, on a mesh of two axes."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = place.mesh(x=2, y=2)

    def loss(w1, w2, x):
        return jnp.mean(jax.nn.gelu(x @ w1) @ w2)

    def step(w1, w2, x):
        g1, g2 = jax.grad(loss, argnums=(0, 1))(w1, w2, x)
        return w1 - g1, w2 - g2

    w1 = place.spread(mesh, P("x", "y"), 256, 512)
    w2 = place.spread(mesh, P("y", "x"), 512, 256)
    return lowered(step, w1, w2, place.spread(mesh, P("x"), 512, 256), donate_argnums=(0, 1))


# Memory of the host.


@program
def host_round_trip(place):
    """An array that goes to the host and comes back."""
    import jax

    def run(a, b):
        kept = jax.device_put(a @ b, jax.memory.Space.Host)
        c = (a + b) @ b
        return c + jax.device_put(kept, jax.memory.Space.Device)

    big = place.array(512, 512)
    return lowered(run, big, big)


@program
def host_residuals(place):
    """A gradient whose kept values lie on the host."""
    import jax

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["layer"],
        names_which_can_be_offloaded=["product"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return remat_with(place, policy)


@program
def host_residuals_in_scan(place):
    """A scan over layers whose kept values go to the host one by one."""
    import jax
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["kept"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def loss(ws, x):
        def layer(x, w):
            return jnp.sin(checkpoint_name(x, "kept") @ w), None

        return jnp.sum(jax.lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0])

    return lowered(jax.grad(loss), place.array(6, 256, 256), place.array(512, 256))


@program
def host_arguments(place):
    """Moments that lie on the host, are fetched for a step, and go back there."""
    import jax

    def run(w, moment, grad):
        moment = 0.9 * jax.device_put(moment, jax.memory.Space.Device) + grad
        return w - moment, jax.device_put(moment, jax.memory.Space.Host)

    big = place.array(512, 512)
    kept = place.array(512, 512, memory="pinned_host")
    out = (big.sharding, kept.sharding)
    return lowered(run, big, kept, big, out_shardings=out, donate_argnums=(0, 1))


@program
def host_compute(place):
    """Work that the host does on an array of its own."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.compute_on import compute_on

    @compute_on("device_host")
    @jax.jit
    def on_host(x):
        return jnp.sin(x) * 2.0

    def run(a, b):
        there = on_host(jax.device_put(a @ b, jax.memory.Space.Host))
        return jax.device_put(there, jax.memory.Space.Device) + a

    big = place.array(512, 512)
    return lowered(run, big, big)


def compile_one(name, platform):
    """Compile one program in this process; XLA writes its dump on the way."""
    PROGRAMS[name](Place(platform)).compile()


def compile_all(out, platform, names):
    """Compile each program in a process of its own, and say how it went."""
    for name in names:
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        flags = f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text"
        if platform == "cpu":
            flags += f" --xla_force_host_platform_device_count={DEVICES}"
        settings = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
        command = [sys.executable, __file__, str(out), "--platform", platform, "--one", name]
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        for path in list(folder.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            elif not KEPT.search(path.name):
                path.unlink()
        if done.returncode:
            (folder / "error.txt").write_text(done.stderr)
        kept = sum(path.name.endswith("after_optimizations.txt") for path in folder.iterdir())
        said = f"{kept} modules"
        if done.returncode:
            said += ", failed: " + (done.stderr.strip().splitlines() or ["?"])[-1][:200]
        print(f"{name}: {said}", flush=True)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--platform", choices=PLATFORMS, default="cpu")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--one", choices=PROGRAMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        try:
            compile_one(given.one, given.platform)
        except Exception:
            # The whole trace goes to the file; the last line of it is what is shown.
            traceback.print_exc()
            sys.exit(1)
    else:
        compile_all(given.out, given.platform, given.only or PROGRAMS)


if __name__ == "__main__":
    main()
