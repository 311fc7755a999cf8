"""Programs of equinox: a vision transformer, and a recurrent network under a checkpoint."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .registry import BOTH, Case, Place, program


class Vision(eqx.Module):
    """A vision transformer of a few blocks."""

    patch: eqx.nn.Conv2d
    attention: list[eqx.nn.MultiheadAttention]
    dense: list[eqx.nn.MLP]
    norms: list[eqx.nn.LayerNorm]
    head: eqx.nn.Linear

    def __init__(self, blocks: int, width: int, key: Any) -> None:
        keys = iter(jax.random.split(key, 2 * blocks + 2))
        self.patch = eqx.nn.Conv2d(3, width, 8, 8, key=next(keys))
        self.attention = [
            eqx.nn.MultiheadAttention(4, width, key=next(keys)) for _ in range(blocks)
        ]
        self.dense = [
            eqx.nn.MLP(width, width, 4 * width, 1, jax.nn.gelu, key=next(keys))
            for _ in range(blocks)
        ]
        self.norms = [eqx.nn.LayerNorm(width) for _ in range(2 * blocks)]
        self.head = eqx.nn.Linear(width, 10, key=next(keys))

    def __call__(self, image: Any) -> Any:
        """The logits of an image."""
        x = self.patch(image).reshape(self.patch.out_channels, -1).T
        for i, (attention, dense) in enumerate(zip(self.attention, self.dense, strict=True)):
            y = jax.vmap(self.norms[2 * i])(x)
            x = x + attention(y, y, y)
            x = x + jax.vmap(dense)(jax.vmap(self.norms[2 * i + 1])(x))
        return self.head(x.mean(0))


def step(model: Any, loss: Any, *batch: Any, names: tuple[str, ...]) -> Case:
    """A training step of a model's arrays, with Adam; `loss` takes the model and the batch."""
    arrays, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    optimizer = optax.adam(1e-3)

    def make_step(arrays: Any, opt_state: Any, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        model = eqx.combine(arrays, static)
        value, grads = eqx.filter_value_and_grad(loss)(model, *batch)
        updates, opt_state = optimizer.update(grads, opt_state)
        return eqx.filter(eqx.apply_updates(model, updates), eqx.is_array), opt_state, value

    return Case(
        make_step,
        {
            "arrays": arrays,
            "opt_state": jax.eval_shape(optimizer.init, arrays),
            "batch": batch,
        },
        {"arrays": "weight", "opt_state": "optimizer state", "batch": "input"},
        donated=("arrays", "opt_state"),
    )


@program(environments=BOTH)
def equinox_vision(place: Place) -> Case:
    """A training step over a batch of images, by `vmap`."""
    model = eqx.filter_eval_shape(Vision, 3, 128, jax.random.key(0))

    def loss(model: Vision, images: Any, labels: Any) -> Any:
        logits = jax.vmap(model)(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    images = jax.ShapeDtypeStruct((16, 3, 64, 64), jnp.float32)
    labels = jax.ShapeDtypeStruct((16,), jnp.int32)
    return step(model, loss, images, labels, names=("images", "labels"))
