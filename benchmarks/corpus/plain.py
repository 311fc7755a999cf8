"""Programs of JAX and optax alone, as people write them: sharded, scanned, decoding, offloaded."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .registry import BOTH, TOPOLOGIES, Case, Place, program

LAYERS, WIDTH, HEADS, WORDS = 6, 256, 4, 4096


def weights() -> dict[str, Any]:
    """The weights of a decoder, stacked over its layers."""
    shapes = {
        "attention": {"qkv": (LAYERS, WIDTH, 3, HEADS, 64), "out": (LAYERS, HEADS, 64, WIDTH)},
        "mlp": {"up": (LAYERS, WIDTH, 4 * WIDTH), "down": (LAYERS, 4 * WIDTH, WIDTH)},
        "scale": (LAYERS, 2, WIDTH),
    }
    layers = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32),
        shapes,
        is_leaf=lambda shape: isinstance(shape, tuple),
    )
    return {"embed": jax.ShapeDtypeStruct((WORDS, WIDTH), jnp.float32), "layers": layers}


def normed(x: Any, scale: Any) -> Any:
    """The root mean square norm."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def layer(x: Any, w: Any) -> Any:
    """A layer of the decoder."""
    q, k, v = jnp.einsum("bld,dche->cblhe", normed(x, w["scale"][0]), w["attention"]["qkv"])
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / 8.0
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    y = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
    x = x + checkpoint_name(jnp.einsum("bqhe,hed->bqd", y, w["attention"]["out"]), "attended")
    hidden = jax.nn.silu(normed(x, w["scale"][1]) @ w["mlp"]["up"])
    return x + hidden @ w["mlp"]["down"]


def loss_of(params: Any, tokens: Any, policy: Any = None) -> Any:
    """The mean loss of the next tokens; layers are worked out again, but for what policy saves."""
    body = jax.checkpoint(lambda x, w: (layer(x, w), None), policy=policy)
    x, _ = jax.lax.scan(body, params["embed"][tokens], params["layers"])
    logits = x @ params["embed"].T
    losses = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
    return losses.mean()


def train(
    optimizer: Any, params: Any, tokens: Any, policy: Any = None, options: Any = None
) -> Case:
    """A training step."""

    def train_step(params: Any, opt_state: Any, tokens: Any) -> tuple[Any, ...]:
        value, grads = jax.value_and_grad(loss_of)(params, tokens, policy)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    opt_state = jax.eval_shape(optimizer.init, params)
    return Case(
        train_step,
        {"params": params, "opt_state": opt_state, "tokens": tokens},
        {"params": "weight", "opt_state": "optimizer state", "tokens": "input"},
        donated=("params", "opt_state"),
        options=options or {},
    )


TOKENS = jax.ShapeDtypeStruct((8, 256), jnp.int32)


@program(environments=BOTH)
def optax_adafactor(place: Place) -> Case:
    """Adafactor, whose state is factored."""
    return train(optax.adafactor(1e-3), weights(), TOKENS)


@program()
def optax_muon(place: Place) -> Case:
    """Muon, which turns its gradients into orthogonal matrices."""
    return train(optax.contrib.muon(1e-3), weights(), TOKENS)


@program(environments=BOTH)
def optax_multi_steps(place: Place) -> Case:
    """Gradients are summed over four calls, and then Adam takes them."""
    return train(optax.MultiSteps(optax.adam(1e-3), 4), weights(), TOKENS)


@program(*TOPOLOGIES)
def jax_fsdp(place: Place) -> Case:
    """Weights and moments lie in parts on four chips, and are gathered where they are used."""
    mesh = place.mesh(data=4)

    def spread(leaf: Any) -> Any:
        axis = next((i for i, n in reversed(list(enumerate(leaf.shape))) if n % 4 == 0), None)
        spec = P(*["data" if i == axis else None for i in range(len(leaf.shape))])
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    case = train(optax.adamw(1e-3), jax.tree.map(spread, weights()), TOKENS)
    arguments = dict(case.arguments)
    arguments["opt_state"] = jax.tree.map(spread, arguments["opt_state"])
    arguments["tokens"] = jax.ShapeDtypeStruct(
        TOKENS.shape, TOKENS.dtype, sharding=NamedSharding(mesh, P("data"))
    )
    return Case(case.function, arguments, case.roles, case.donated)


@program(*TOPOLOGIES)
def jax_offload(place: Place) -> Case:
    """What the layers save for the backward pass rests on the host."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["attended"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return train(optax.adam(1e-3), weights(), TOKENS, policy)


@program(environments=BOTH)
def jax_decode(place: Place) -> Case:
    """A token is generated with a cache that is donated."""
    params = weights()
    cache = jax.ShapeDtypeStruct((LAYERS, 2, 8, 512, HEADS, 64), jnp.bfloat16)

    def decode(params: Any, cache: Any, tokens: Any, position: Any) -> tuple[Any, Any]:
        def step(x: Any, given: Any) -> tuple[Any, Any]:
            w, kept = given
            q, k, v = jnp.einsum("bd,dche->cbhe", normed(x, w["scale"][0]), w["attention"]["qkv"])
            new = jnp.stack([k, v]).astype(kept.dtype)[:, :, None]
            kept = jax.lax.dynamic_update_slice_in_dim(kept, new, position, axis=2)
            scores = jnp.einsum("bhe,bkhe->bhk", q, kept[0])
            y = jnp.einsum("bhk,bkhe->bhe", jax.nn.softmax(scores / 8.0), kept[1])
            x = x + jnp.einsum("bhe,hed->bd", y, w["attention"]["out"])
            hidden = jax.nn.silu(normed(x, w["scale"][1]) @ w["mlp"]["up"])
            return x + hidden @ w["mlp"]["down"], kept

        x, cache = jax.lax.scan(step, params["embed"][tokens], (params["layers"], cache))
        return jnp.argmax(x @ params["embed"].T, -1), cache

    return Case(
        decode,
        {
            "params": params,
            "cache": cache,
            "tokens": jax.ShapeDtypeStruct((8,), jnp.int32),
            "position": jax.ShapeDtypeStruct((), jnp.int32),
        },
        {"params": "weight", "cache": "state", "tokens": "input", "position": "input"},
        donated=("cache",),
    )


@program(*TOPOLOGIES)
def jax_experts(place: Place) -> Case:
    """Experts on four chips, to which their tokens are sent, under `shard_map`."""
    mesh = place.mesh(expert=4)
    rows, width, hidden = 1024, 256, 1024

    def shape(spec: Any, *sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16, sharding=NamedSharding(mesh, spec))

    def experts(params: Any, x: Any) -> Any:
        def exchanged(y: Any) -> Any:
            return jax.lax.all_to_all(y.reshape(4, -1, width), "expert", 0, 0, tiled=True)

        got = exchanged(x).reshape(-1, width)
        y = jax.nn.gelu(got @ params["up"][0]) @ params["down"][0]
        return exchanged(y).reshape(x.shape)

    apart = jax.shard_map(
        experts, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert")
    )

    def train_step(params: Any, x: Any) -> tuple[Any, Any]:
        value, grads = jax.value_and_grad(lambda p: jnp.mean(apart(p, x).astype(jnp.float32) ** 2))(
            params
        )
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    return Case(
        train_step,
        {
            "params": {
                "up": shape(P("expert"), 4, width, hidden),
                "down": shape(P("expert"), 4, hidden, width),
            },
            "x": shape(P("expert"), 4 * rows, width),
        },
        {"params": "weight", "x": "input"},
        donated=("params",),
    )
