"""Programs of few arrays, whose arguments and outputs pair in ways of their own."""

import jax
import jax.numpy as jnp

from .registry import donation, pair


@pair
def wave_equation(place):
    """The state now becomes the state before: outputs and arguments cross."""

    def step(now, before):
        across = jnp.roll(now, 1, 0) + jnp.roll(now, -1, 0)
        along = jnp.roll(now, 1, 1) + jnp.roll(now, -1, 1)
        return 2 * now - before + 0.1 * (across + along - 4 * now), now

    wave = place.array(8192, 8192)
    return donation(step, wave, wave, donated=(0, 1))


@pair
def players_swap(place):
    """Two players, each of whom learns from the other: their arguments cross."""

    def step(first, second):
        return jnp.tanh(second) * 0.5, jnp.tanh(first) + 1.0

    side = place.array(6144, 8192)
    return donation(step, side, side, donated=(0, 1))


@pair
def old_value_read(place):
    """The old weights are read after the new ones are there: a step's length is limited."""

    def step(weights, gradients):
        new = jnp.cumsum(weights - gradients, axis=0)
        return new, jnp.vdot(weights[::-1], new)

    weights = place.array(8192, 8192)
    return donation(step, weights, weights, donated=(0,))


@pair
def small_old_value_read(place):
    """The same with arrays that VMEM has room for."""

    def step(weights, gradients):
        new = jnp.cumsum(weights - gradients, axis=0)
        return new, jnp.vdot(weights[::-1], new)

    weights = place.array(1024, 2048)
    return donation(step, weights, weights, donated=(0,))


@pair
def types_differ(place):
    """Donated, but the output has another element type of fewer bytes."""

    def quantized(weights):
        scale = jnp.max(jnp.abs(weights)) / 127
        return jnp.round(weights / scale).astype(jnp.int8), scale

    return donation(quantized, place.array(8192, 8192), donated=(0,))


@pair
def types_of_one_size(place):
    """Donated; the output has another element type of as many bytes."""

    def ranked(scores):
        return jnp.argsort(scores, axis=1)

    return donation(ranked, place.array(65536, 1024), donated=(0,))


@pair
def elements_differ(place):
    """Donated, but the output has fewer elements."""

    def pooled(images):
        return images.reshape(256, 64, 4, 64, 4, 64).max((2, 4))

    return donation(pooled, place.array(256, 256, 256, 64), donated=(0,))


@pair
def shapes_differ(place):
    """Donated, but the output has another shape with as many elements."""

    def patches(images):
        parts = images.reshape(64, 32, 16, 32, 16, 8).swapaxes(2, 3)
        return parts.reshape(64, 1024, 2048) * 2.0

    return donation(patches, place.array(64, 512, 512, 8), donated=(0,))


@pair
def particles(place):
    """A simulation whose state is a tuple of tuples, of which one part stays as it is."""

    def step(state, box):
        (where, speed), mass = state
        pull = jnp.roll(where, 1, 0) - where
        speed = speed + 0.01 * pull / mass[:, None]
        return ((where + 0.01 * speed) % box, speed), mass

    state = (place.array(4_000_000, 8), place.array(4_000_000, 8)), place.array(4_000_000)
    return donation(step, state, place.array(8), donated=(0,))


@pair
def several_of_one_shape(place):
    """Four arguments of one shape, three outputs of it: the order decides who pairs."""

    def step(projections, x):
        q, k, v, out = (projections[name] for name in ("q", "k", "v", "out"))
        pulled = x.T @ x
        return {"merged": q @ k, "moved": v - 0.1 * pulled, "kept": out * 0.9}

    square = place.array(6144, 6144)
    projections = dict.fromkeys(("q", "k", "v", "out"), square)
    return donation(step, projections, place.array(512, 6144), donated=(0,))


@pair
def replay_buffer(place):
    """A ring of past experience into which a batch is written, and a sample is drawn."""

    def step(ring, at, new, picks):
        ring = jax.tree.map(
            lambda old, rows: jax.lax.dynamic_update_slice_in_dim(old, rows, at, 0), ring, new
        )
        return ring, jax.tree.map(lambda old: old[picks], ring), at + 64

    def experience(rows):
        return {
            "seen": place.array(rows, 84, 84, 4, dtype="uint8"),
            "done": place.array(rows, 256),
        }

    at, picks = place.array(dtype="int32"), place.array(256, dtype="int32")
    return donation(step, experience(20_000), at, experience(64), picks, donated=(0,))


@pair
def conjugate_gradients(place):
    """A solver: a loop that carries four vectors, three of which are arguments."""

    def solve(x, residual, direction, diagonal):
        def turn(i, state):
            x, residual, direction = state
            image = diagonal * direction - 0.1 * jnp.roll(direction, 1, 0)
            square = jnp.vdot(residual, residual)
            length = square / jnp.vdot(direction, image)
            x, residual = x + length * direction, residual - length * image
            return x, residual, residual + jnp.vdot(residual, residual) / square * direction

        return jax.lax.fori_loop(0, 50, turn, (x, residual, direction))

    vector = place.array(16384, 4096)
    return donation(solve, *[vector] * 4, donated=(0, 1, 2))


@pair
def diffusion_sampler(place):
    """A loop that denoises images by a small convolution."""

    def sample(images, kernels):
        def turn(i, images):
            noise = images
            for kernel in kernels:
                noise = jax.lax.conv_general_dilated(
                    noise, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
                noise = jax.nn.silu(noise)
            return images - 0.02 * noise

        return jax.lax.fori_loop(0, 20, turn, images)

    kernels = [place.array(3, 3, 64, 64) for _ in range(2)]
    return donation(sample, place.array(32, 128, 128, 64), kernels, donated=(0,))
