"""Programs of Keras and keras-hub on JAX."""

import os
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras

from .registry import Case, Place, program


def train(model: Any, optimizer: Any, loss_of: Any, batch: Any) -> Case:
    """A training step of a built model as Keras writes one for JAX."""
    optimizer.build(model.trainable_variables)

    def train_step(
        trainable: Any, non_trainable: Any, optimizer_variables: Any, x: Any, y: Any
    ) -> tuple[Any, ...]:
        def loss(trainable: Any) -> tuple[Any, Any]:
            predicted, changed = model.stateless_call(trainable, non_trainable, x, training=True)
            return loss_of(y, predicted), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(trainable)
        trainable, optimizer_variables = optimizer.stateless_apply(
            optimizer_variables, grads, trainable
        )
        return trainable, changed, optimizer_variables, value

    x, y = batch
    return Case(
        train_step,
        {
            "trainable": [v.value for v in model.trainable_variables],
            "non_trainable": [v.value for v in model.non_trainable_variables],
            "optimizer_variables": [v.value for v in optimizer.variables],
            "x": x,
            "y": y,
        },
        {
            "trainable": "weight",
            "optimizer_variables": "optimizer state",
            "x": "input",
            "y": "input",
        },
        donated=("trainable", "non_trainable", "optimizer_variables"),
    )


@program()
def keras_images(place: Place) -> Case:
    """A convolutional network with batch normalisation and dropout."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(64, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(128, 3, activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(256, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = jax.ShapeDtypeStruct((32, 32, 32, 3), jnp.float32)
    labels = jax.ShapeDtypeStruct((32,), jnp.int32)
    return train(model, keras.optimizers.Adam(1e-3), loss, (images, labels))
