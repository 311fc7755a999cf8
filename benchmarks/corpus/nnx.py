"""Programs of flax's nnx: a decoder that is trained, one that generates, and LoRA."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .registry import Case, Place, program

WORDS, WIDTH, HEADS, LENGTH = 4096, 256, 4, 128


class Decoder(nnx.Module):
    """A decoder of a few layers; with a rank its dense layers have LoRA beside them."""

    def __init__(self, layers: int, rank: int, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(WORDS, WIDTH, rngs=rngs)
        self.layers = nnx.List([Layer(rank, rngs) for _ in range(layers)])
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        """The logits of the next tokens."""
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.embed.attend(self.norm(x))


class Layer(nnx.Module):
    """Attention and a gated layer."""

    def __init__(self, rank: int, rngs: nnx.Rngs) -> None:
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.gate = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)
        self.before, self.between = (nnx.RMSNorm(WIDTH, rngs=rngs) for _ in range(2))
        if rank:
            self.beside = nnx.LoRA(WIDTH, rank, 4 * WIDTH, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """The tokens after this layer."""
        mask = nnx.make_causal_mask(x[..., 0])
        x = x + self.attention(self.before(x), mask=mask)
        y = self.between(x)
        up = self.up(y) + self.beside(y) if hasattr(self, "beside") else self.up(y)
        return x + self.down(nnx.silu(self.gate(y)) * up)


def made(layers: int, rank: int = 0) -> Decoder:
    """A decoder whose arrays are shapes."""
    return nnx.eval_shape(lambda: Decoder(layers, rank, nnx.Rngs(0)))


TOKENS = jax.ShapeDtypeStruct((8, LENGTH), jnp.int32)


def cross_entropy(logits: Any, tokens: Any) -> Any:
    """The mean loss of the next tokens."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
    return losses.mean()


@program()
def nnx_train(place: Place) -> Case:
    """A training step with Lion, weights as a state."""
    graph, params = nnx.split(made(3))
    optimizer = optax.lion(1e-4)

    def train_step(params: Any, opt_state: Any, tokens: Any) -> tuple[Any, ...]:
        def loss(params: Any) -> Any:
            return cross_entropy(nnx.merge(graph, params)(tokens), tokens)

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return Case(
        train_step,
        {"params": params, "opt_state": jax.eval_shape(optimizer.init, params), "tokens": TOKENS},
        {"params": "weight", "opt_state": "optimizer state", "tokens": "input"},
        donated=("params", "opt_state"),
    )


@program()
def nnx_lora(place: Place) -> Case:
    """A step that trains LoRA alone: the weights under it are frozen."""
    graph, lora, frozen = nnx.split(made(3, rank=8), nnx.LoRAParam, ...)
    optimizer = optax.adam(1e-3)

    def finetune(lora: Any, opt_state: Any, frozen: Any, tokens: Any) -> tuple[Any, ...]:
        def loss(lora: Any) -> Any:
            return cross_entropy(nnx.merge(graph, lora, frozen)(tokens), tokens)

        value, grads = jax.value_and_grad(loss)(lora)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(lora, updates), opt_state, value

    return Case(
        finetune,
        {
            "lora": lora,
            "opt_state": jax.eval_shape(optimizer.init, lora),
            "frozen": frozen,
            "tokens": TOKENS,
        },
        {"lora": "weight", "opt_state": "optimizer state", "frozen": "weight", "tokens": "input"},
        donated=("lora", "opt_state"),
    )
