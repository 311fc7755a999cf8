"""Programs of flax's linen: a transformer, and a network with batch statistics."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from .registry import BOTH, Case, Place, program


class Block(nn.Module):
    """A block of a transformer."""

    heads: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """The tokens after attention and after two dense layers."""
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        hidden = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(hidden)


class Transformer(nn.Module):
    """A decoder that gives logits."""

    layers: int
    width: int
    words: int = 8192

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """The logits of the next tokens."""
        embed = nn.Embed(self.words, self.width)
        places = (tokens.shape[1], self.width)
        x = embed(tokens) + self.param("where", nn.initializers.normal(), places)
        for _ in range(self.layers):
            x = Block(self.width // 64)(x)
        return embed.attend(nn.LayerNorm()(x))


def train(layers: int, width: int, batch: int, length: int) -> Case:
    """A training step of the transformer, with AdamW and a clipped gradient."""
    model = Transformer(layers, width)
    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def create(key: Any) -> TrainState:
        params = model.init(key, jnp.zeros(tokens.shape, tokens.dtype))["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=optimizer)

    def train_step(state: TrainState, batch: dict[str, Any]) -> tuple[TrainState, Any]:
        def loss(params: Any) -> Any:
            logits = state.apply_fn({"params": params}, batch["inputs"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["targets"]).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    return Case(
        train_step,
        {
            "state": jax.eval_shape(create, jax.random.key(0)),
            "batch": {"inputs": tokens, "targets": tokens},
        },
        {"state.params": "weight", "state.opt_state": "optimizer state", "batch": "input"},
        donated=("state",),
    )


@program(environments=BOTH)
def linen_transformer(place: Place) -> Case:
    """Four layers."""
    return train(layers=4, width=256, batch=8, length=128)


@program()
def linen_transformer_deep(place: Place) -> Case:
    """Sixty layers without a scan."""
    return train(layers=60, width=128, batch=4, length=64)


class Residual(nn.Module):
    """A block of a residual network."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """The images after two convolutions."""
        norm = nn.BatchNorm(use_running_average=False)
        y = nn.relu(norm(nn.Conv(self.features, (3, 3), self.stride, use_bias=False)(x)))
        y = nn.BatchNorm(use_running_average=False)(nn.Conv(self.features, (3, 3))(y))
        if y.shape != x.shape:
            x = nn.Conv(self.features, (1, 1), self.stride)(x)
        return nn.relu(x + y)


class Images(nn.Module):
    """A residual network that tells ten classes apart."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """The logits of the classes."""
        for features, stride in ((64, 1), (128, 2), (256, 2)):
            x = Residual(features, stride)(x)
        return nn.Dense(10)(x.mean((1, 2)))


@program(environments=BOTH)
def linen_batch_norm(place: Place) -> Case:
    """A training step of a residual network, with batch statistics and momentum."""
    model, optimizer = Images(), optax.sgd(0.1, momentum=0.9)
    images = jax.ShapeDtypeStruct((32, 32, 32, 3), jnp.float32)
    variables = jax.eval_shape(model.init, jax.random.key(0), images)

    def train_step(
        params: Any, batch_stats: Any, opt_state: Any, images: Any, labels: Any
    ) -> tuple[Any, ...]:
        def loss(params: Any) -> tuple[Any, Any]:
            logits, changed = model.apply(
                {"params": params, "batch_stats": batch_stats}, images, mutable=["batch_stats"]
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), changed["batch_stats"]

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), changed, opt_state, value

    return Case(
        train_step,
        {
            "params": variables["params"],
            "batch_stats": variables["batch_stats"],
            "opt_state": jax.eval_shape(optimizer.init, variables["params"]),
            "images": images,
            "labels": jax.ShapeDtypeStruct((32,), jnp.int32),
        },
        {"params": "weight", "opt_state": "optimizer state", "images": "input", "labels": "input"},
        donated=("params", "batch_stats", "opt_state"),
    )
