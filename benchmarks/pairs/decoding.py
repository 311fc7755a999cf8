"""Decoding with a cache of keys and values, with and without the cache donated."""

import jax
import jax.numpy as jnp

from .networks import cached_layer, layer_shapes
from .registry import HALF, donation, pair

HEADS, WIDTH, BATCH = 16, 2048, 16


def inputs(place):
    """One activation a sequence, and the position of the next token."""
    return place.array(BATCH, WIDTH, dtype=HALF), place.array(dtype="int32")


def caches(place, length, *stacked):
    """The keys or the values of all sequences."""
    return place.array(*stacked, BATCH, length, HEADS, WIDTH // HEADS, dtype=HALF)


@pair
def decode_in_fori(place):
    """Sixteen tokens in a loop that carries one cache for all layers."""

    def decode(weights, cache, x, position):
        def token(i, state):
            x, cache = state
            for number, layer in enumerate(weights):
                keys, values = cache["keys"], cache["values"]
                old = keys[number], values[number], position + i
                x, new_keys, new_values = cached_layer(x, layer, *old, HEADS)
                cache = {
                    "keys": keys.at[number].set(new_keys),
                    "values": values.at[number].set(new_values),
                }
            return x, cache

        return jax.lax.fori_loop(0, 16, token, (x, cache))

    weights = [place.arrays(layer_shapes(WIDTH), HALF) for _ in range(2)]
    cache = {"keys": caches(place, 2048, 2), "values": caches(place, 2048, 2)}
    return donation(decode, weights, cache, *inputs(place), donated=(1,))


@pair
def decode_until_stop(place):
    """A loop that ends when all sequences stopped, with a cache for each layer in its carry."""

    def decode(weights, cache, x, position):
        def goes_on(state):
            x, _, at = state
            return (at < 2048) & jnp.any(x[:, 0] > 0)

        def token(state):
            x, cache, at = state
            new = []
            for layer, (keys, values) in zip(weights, cache, strict=True):
                x, keys, values = cached_layer(x, layer, keys, values, at, HEADS)
                new.append((keys, values))
            return x, new, at + 1

        return jax.lax.while_loop(goes_on, token, (x, cache, position))

    weights = [place.arrays(layer_shapes(WIDTH), HALF) for _ in range(2)]
    cache = [(caches(place, 2048), caches(place, 2048)) for _ in weights]
    return donation(decode, weights, cache, *inputs(place), donated=(1,))


@pair
def decode_step(place):
    """One token; the cache is a list of tuples, one a layer."""

    def decode(weights, cache, x, position):
        new = []
        for layer, (keys, values) in zip(weights, cache, strict=True):
            x, keys, values = cached_layer(x, layer, keys, values, position, HEADS)
            new.append((keys, values))
        return x, new

    weights = [place.arrays(layer_shapes(WIDTH), HALF) for _ in range(4)]
    cache = [(caches(place, 1024), caches(place, 1024)) for _ in weights]
    return donation(decode, weights, cache, *inputs(place), donated=(1,))


def scanned(weights, keys, values, x, position):
    """One token; a scan takes each layer's cache in and gives it out."""

    def layer(x, each):
        weights, keys, values = each
        x, keys, values = cached_layer(x, weights, keys, values, position, HEADS)
        return x, (keys, values)

    return jax.lax.scan(layer, x, (weights, keys, values))


@pair
def cache_scanned_over(place):
    """A cache that goes into a scan and comes out of it as another array."""
    weights, cache = place.arrays(layer_shapes(WIDTH, 4), HALF), caches(place, 2048, 4)
    return donation(scanned, weights, cache, cache, *inputs(place), donated=(1, 2))


@pair
def small_cache_scanned_over(place):
    """The same with a cache that VMEM has room for."""
    weights, cache = place.arrays(layer_shapes(WIDTH, 4), HALF), caches(place, 128, 4)
    return donation(scanned, weights, cache, cache, *inputs(place), donated=(1, 2))


@pair
def cache_carried_by_scan(place):
    """What to do instead: the scan carries the cache and writes a layer's part."""

    def decode(weights, keys, values, x, position):
        def layer(state, each):
            x, keys, values = state
            weights, number = each
            x, *new = cached_layer(x, weights, keys[number], values[number], position, HEADS)
            return (x, keys.at[number].set(new[0]), values.at[number].set(new[1])), None

        return jax.lax.scan(layer, (x, keys, values), (weights, jnp.arange(len(keys))))[0]

    weights, cache = place.arrays(layer_shapes(WIDTH, 4), HALF), caches(place, 2048, 4)
    return donation(decode, weights, cache, cache, *inputs(place), donated=(1, 2))
