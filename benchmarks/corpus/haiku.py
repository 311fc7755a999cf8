"""Programs of haiku: a recurrent network, and a residual network with state."""

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from .registry import BOTH, Case, Place, program


@program(environments=BOTH)
def haiku_lstm(place: Place) -> Case:
    """A training step of two LSTMs over a sequence, with RMSProp."""

    def network(tokens: Any) -> Any:
        x = hk.Embed(1024, 128)(tokens)
        core = hk.DeepRNN([hk.LSTM(256), jax.nn.relu, hk.LSTM(256)])
        x, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
        return hk.BatchApply(hk.Linear(1024))(x)

    model, optimizer = hk.without_apply_rng(hk.transform(network)), optax.rmsprop(1e-3)
    tokens = jax.ShapeDtypeStruct((64, 16), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), tokens)

    def update(params: Any, opt_state: Any, tokens: Any) -> tuple[Any, ...]:
        def loss(params: Any) -> Any:
            logits = model.apply(params, tokens[:-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[1:]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return Case(
        update,
        {"params": params, "opt_state": jax.eval_shape(optimizer.init, params), "tokens": tokens},
        {"params": "weight", "opt_state": "optimizer state", "tokens": "input"},
    )


@program(environments=BOTH)
def haiku_resnet(place: Place) -> Case:
    """A training step of haiku's own ResNet of 50 layers."""

    def network(images: Any) -> Any:
        return hk.nets.ResNet50(100)(images, is_training=True)

    model, optimizer = hk.without_apply_rng(hk.transform_with_state(network)), optax.adam(1e-3)
    images = jax.ShapeDtypeStruct((8, 64, 64, 3), jnp.float32)
    params, state = jax.eval_shape(model.init, jax.random.key(0), images)

    def update(
        params: Any, state: Any, opt_state: Any, images: Any, labels: Any
    ) -> tuple[Any, ...]:
        def loss(params: Any) -> tuple[Any, Any]:
            logits, changed = model.apply(params, state, images)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), changed, opt_state, value

    return Case(
        update,
        {
            "params": params,
            "state": state,
            "opt_state": jax.eval_shape(optimizer.init, params),
            "images": images,
            "labels": jax.ShapeDtypeStruct((8,), jnp.int32),
        },
        {"params": "weight", "opt_state": "optimizer state", "images": "input", "labels": "input"},
        donated=("params", "state", "opt_state"),
    )
