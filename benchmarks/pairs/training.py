"""Training steps with and without their state donated."""

from itertools import pairwise

import jax
import jax.numpy as jnp

from .networks import (
    adam,
    cross_entropy,
    layer_shapes,
    momentum,
    transformer_layer,
    with_moments,
)
from .registry import donation, pair


def language_model(layers):
    """The step of a language model; `layers` takes the activations and the weights of layers."""

    def loss(weights, tokens, labels):
        x = layers(weights["embedding"][tokens], weights["layers"])
        return cross_entropy(x, weights["embedding"], labels)

    def step(state, tokens, labels):
        cost, gradients = jax.value_and_grad(loss)(state["params"], tokens, labels)
        return adam(state, gradients), cost

    return step


def unrolled(heads):
    """Layers one after the other."""

    def layers(x, weights):
        for each in weights:
            x = transformer_layer(x, each, heads)
        return x

    return layers


def scanned(heads):
    """A scan over layers that are worked out again for the gradient."""

    def layers(x, weights):
        @jax.checkpoint
        def layer(x, weights):
            return transformer_layer(x, weights, heads), None

        return jax.lax.scan(layer, x, weights)[0]

    return layers


def language_state(place, vocabulary, width, layers):
    """Adam's state of a language model; `layers` are the weights of all layers."""
    weights = {"embedding": place.array(vocabulary, width), "layers": layers}
    return with_moments(place, weights)


@pair
def gpt_step(place):
    """Two layers one after the other, Adam's state in a dictionary."""
    layers = [place.arrays(layer_shapes(512)) for _ in range(2)]
    state = language_state(place, 8192, 512, layers)
    tokens = place.array(8, 512, dtype="int32")
    return donation(language_model(unrolled(8)), state, tokens, tokens, donated=(0,))


@pair
def gpt_scan_step(place):
    """A scan over eight layers, each worked out again; Adam's state in a dictionary."""
    layers = place.arrays(layer_shapes(1024, 8))
    state = language_state(place, 16384, 1024, layers)
    tokens = place.array(8, 512, dtype="int32")
    return donation(language_model(scanned(16)), state, tokens, tokens, donated=(0,))


def dense(x, weights):
    """Dense layers with an activation between them."""
    for weight, bias in weights[:-1]:
        x = jax.nn.leaky_relu(x @ weight + bias)
    weight, bias = weights[-1]
    return x @ weight + bias


@pair
def gan_step(place):
    """Two networks, each with weights and moments, of which one is trained on the other."""

    def step(generator, discriminator, noise, real):
        def told_apart(weights, made):
            good, bad = dense(real, weights), dense(made, weights)
            return jnp.mean(jax.nn.softplus(-good)) + jnp.mean(jax.nn.softplus(bad))

        def believed(weights, judge):
            return jnp.mean(jax.nn.softplus(-dense(dense(noise, weights), judge)))

        made = dense(noise, generator[0])
        weights, moments = discriminator
        discriminator = momentum(weights, moments, jax.grad(told_apart)(weights, made))
        weights, moments = generator
        gradients = jax.grad(believed)(weights, discriminator[0])
        return momentum(weights, moments, gradients), discriminator

    def network(*widths):
        return [(place.array(a, b), place.array(b)) for a, b in pairwise(widths)]

    generator, discriminator = network(256, 4096, 4096, 3072), network(3072, 4096, 2048, 1)
    arguments = (generator, generator), (discriminator, discriminator)
    inputs = place.array(256, 256), place.array(256, 3072)
    return donation(step, *arguments, *inputs, donated=(0, 1))


@pair
def lstm_step(place):
    """A recurrent network over 64 steps of time, weights and moments apart."""
    width = 2048

    def loss(weights, inputs, targets):
        def cell(carry, x):
            hidden, memory = carry
            gates = x @ weights["input"] + hidden @ weights["hidden"] + weights["bias"]
            enters, forgets, leaves, new = jnp.split(gates, 4, axis=-1)
            kept = jax.nn.sigmoid(forgets) * memory
            memory = kept + jax.nn.sigmoid(enters) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(leaves) * jnp.tanh(memory)
            return (hidden, memory), hidden

        empty = jnp.zeros((inputs.shape[1], width))
        _, hidden = jax.lax.scan(cell, (empty, empty), inputs)
        return jnp.mean((hidden @ weights["head"] - targets) ** 2)

    def step(weights, moments, inputs, targets):
        return momentum(weights, moments, jax.grad(loss)(weights, inputs, targets))

    gates = {"input": (512, 4 * width), "hidden": (width, 4 * width), "bias": (4 * width,)}
    weights, inputs = place.arrays(gates | {"head": (width, 512)}), place.array(64, 32, 512)
    return donation(step, weights, weights, inputs, inputs, donated=(0, 1))


@pair
def lion_in_bfloat16(place):
    """Only the optimizer: weights in float32, one moment in bfloat16, over many arrays."""

    def step(weights, moments, gradients):
        def one(weight, moment, gradient):
            wide = moment.astype(jnp.float32)
            weight = weight - 1e-4 * (jnp.sign(0.9 * wide + 0.1 * gradient) + 0.1 * weight)
            return weight, (0.99 * wide + 0.01 * gradient).astype(jnp.bfloat16)

        both = jax.tree.map(one, weights, moments, gradients)
        return [new for new, _ in both], [moment for _, moment in both]

    shapes = [(4096, 4096), (4096, 11008), (11008, 4096), (4096, 1024)]
    weights = [place.array(*shape) for shape in shapes]
    moments = [place.array(*shape, dtype="bfloat16") for shape in shapes]
    return donation(step, weights, moments, weights, donated=(0, 1))


def averaged(weights, average, gradients):
    """The next weights, and their average over all steps."""
    weights = jax.tree.map(lambda w, g: w - 1e-2 * g, weights, gradients)
    average = jax.tree.map(lambda a, w: 0.999 * a + 0.001 * w, average, weights)
    change = sum(jnp.sum(jnp.abs(a - w)) for a, w in zip(average, weights, strict=True))
    return weights, average, change


@pair
def average_of_weights(place):
    """The moving average of weights beside the weights."""
    weights = [place.array(4096, 4096), place.array(4096, 8192), place.array(8192, 1024)]
    return donation(averaged, weights, weights, weights, donated=(0, 1))


@pair
def average_of_small_weights(place):
    """The same with arrays that VMEM has room for."""
    weights = [place.array(1024, 1024), place.array(1024, 2048), place.array(2048, 256)]
    return donation(averaged, weights, weights, weights, donated=(0, 1))


@pair
def embedding_update(place):
    """A large table of which a batch changes some rows."""

    def step(table, ids, gradients):
        return table.at[ids].add(-0.1 * gradients)

    table, ids = place.array(400_000, 256), place.array(8192, dtype="int32")
    return donation(step, table, ids, place.array(8192, 256), donated=(0,))


@pair
def embedding_with_moments(place):
    """A table and its accumulated squares, both changed by rows, and a lookup before."""

    def step(table, squares, ids, targets):
        def loss(rows):
            return jnp.mean((rows - targets) ** 2)

        cost, gradients = jax.value_and_grad(loss)(table[ids])
        squares = squares.at[ids].add(gradients**2)
        moves = gradients * jax.lax.rsqrt(squares[ids] + 1e-6)
        return table.at[ids].add(-0.1 * moves), squares, cost

    table, ids = place.array(250_000, 256), place.array(4096, dtype="int32")
    return donation(step, table, table, ids, place.array(4096, 256), donated=(0, 1))
