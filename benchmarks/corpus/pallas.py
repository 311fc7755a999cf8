"""Programs around Pallas kernels that JAX brings along, for TPU."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox import ops as megablox
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

from .registry import TOPOLOGIES, Case, Place, program

HEADS, LENGTH, DEPTH = 4, 1024, 128


@program(*TOPOLOGIES)
def pallas_splash(place: Place) -> Case:
    """A gradient step of one layer of splash attention."""
    mask = masks.MultiHeadMask([masks.CausalMask((LENGTH, LENGTH))] * HEADS)
    kernel = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1)

    def train_step(params: dict[str, Any], x: Any) -> tuple[Any, Any]:
        def loss(params: dict[str, Any]) -> Any:
            q, k, v = (jnp.einsum("bld,dhe->bhle", x, params[name]) for name in "qkv")
            y = jax.vmap(kernel)(q, k, v)
            return jnp.mean(jnp.einsum("bhle,hed->bld", y, params["out"]).astype(jnp.float32) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    into = jax.ShapeDtypeStruct((512, HEADS, DEPTH), jnp.bfloat16)
    out = jax.ShapeDtypeStruct((HEADS, DEPTH, 512), jnp.bfloat16)
    return Case(
        train_step,
        {
            "params": {"q": into, "k": into, "v": into, "out": out},
            "x": jax.ShapeDtypeStruct((2, LENGTH, 512), jnp.bfloat16),
        },
        {"params": "weight", "x": "input"},
        donated=("params",),
    )


@program(*TOPOLOGIES)
def pallas_megablox(place: Place) -> Case:
    """A mixture of experts whose tokens are sorted by expert, with megablox's products."""
    experts, width, hidden, tokens = 8, 512, 1024, 2048

    def train_step(params: dict[str, Any], x: Any) -> tuple[Any, Any]:
        def loss(params: dict[str, Any]) -> Any:
            chosen = jnp.argmax(x @ params["router"], axis=-1)
            order = jnp.argsort(chosen)
            sizes = jnp.bincount(chosen, length=experts).astype(jnp.int32)
            y = megablox.gmm(x[order], params["up"], sizes, jnp.bfloat16)
            y = megablox.gmm(jax.nn.gelu(y), params["down"], sizes, jnp.bfloat16)
            return jnp.mean(y[jnp.argsort(order)].astype(jnp.float32) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    return Case(
        train_step,
        {
            "params": {
                "router": jax.ShapeDtypeStruct((width, experts), jnp.bfloat16),
                "up": jax.ShapeDtypeStruct((experts, width, hidden), jnp.bfloat16),
                "down": jax.ShapeDtypeStruct((experts, hidden, width), jnp.bfloat16),
            },
            "x": jax.ShapeDtypeStruct((tokens, width), jnp.bfloat16),
        },
        {"params": "weight", "x": "input"},
        donated=("params",),
    )
