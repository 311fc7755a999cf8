"""Programs of TensorFlow, compiled by `tf.function(jit_compile=True)` as they run."""

import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf

from .registry import Place, Ran, program


def ran(function: Any, arguments: tuple[Any, ...], roles: dict[int, str]) -> Ran:
    """Run a function once; its variables follow its arguments among the program's.

    roles: of variables, by their `id`; all others are optimizer state, the arguments inputs.
    """
    concrete = function.get_concrete_function(*arguments)
    of_handle = {id(variable.handle): roles.get(id(variable)) for variable in concrete.variables}
    found = []
    for number, given in enumerate(concrete.inputs):
        captured = number - len(arguments)
        role: str | None = "input"
        size = given.shape.num_elements() * given.dtype.size
        if captured >= 0:
            handle = concrete.captured_inputs[captured]
            role = of_handle[id(handle)]
            (variable,) = (v for v in concrete.variables if v.handle is handle)
            size = variable.shape.num_elements() * variable.dtype.size
        found.append({"argument": number, "role": role, "bytes": size})
    return Ran(lambda: function(*arguments), r"a_inference_train_step_.*", found)


def train(model: Any, optimizer: Any, loss_of: Callable[..., Any], x: Any, y: Any) -> Ran:
    """A training step of a Keras model."""
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss

    roles = {id(variable.value): "weight" for variable in model.trainable_variables}
    roles |= {id(variable.value): "optimizer state" for variable in optimizer.variables}
    return ran(train_step, (x, y), roles)


CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@program("cpu", environments=("tensorflow",))
def tensorflow_images(place: Place) -> Ran:
    """A convolutional network with batch normalisation."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(64, 3, activation="relu", name="first"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(128, 3, activation="relu", name="second"),
            layers.Flatten(),
            layers.Dense(10, name="classes"),
        ]
    )
    images, labels = tf.zeros((32, 32, 32, 3)), tf.zeros((32,), tf.int32)
    return train(model, keras.optimizers.SGD(0.1, momentum=0.9), CROSS_ENTROPY, images, labels)


@program("cpu", environments=("tensorflow",))
def tensorflow_transformer(place: Place) -> Ran:
    """A decoder of four layers, with AdamW."""
    layers = keras.layers
    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(4096, 128, name="embed")(tokens)
    for i in range(4):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 32, name=f"attention_{i}")(y, y, use_causal_mask=True)
        y = layers.Dense(512, "gelu", name=f"up_{i}")(layers.LayerNormalization()(x))
        x = x + layers.Dense(128, name=f"down_{i}")(y)
    model = keras.Model(tokens, layers.Dense(4096, name="words")(x))
    batch = tf.zeros((8, 64), tf.int32)
    return train(model, keras.optimizers.AdamW(1e-3), CROSS_ENTROPY, batch, batch)


@program("cpu", environments=("tensorflow",))
def tensorflow_lstm(place: Place) -> Ran:
    """A recurrent network, whose steps are a loop."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 64)),
            layers.LSTM(128, return_sequences=True, name="recurrent"),
            layers.Dense(16, name="classes"),
        ]
    )
    sequences, labels = tf.zeros((16, 32, 64)), tf.zeros((16, 32), tf.int32)
    return train(model, keras.optimizers.RMSprop(1e-3), CROSS_ENTROPY, sequences, labels)
