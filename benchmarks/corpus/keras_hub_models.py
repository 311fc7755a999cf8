"""Models of keras-hub on JAX, made without their published weights."""

import jax
import jax.numpy as jnp

# This one comes first: it chooses the backend.
from .keras_jax import keras, train  # isort: skip
import keras_hub

from .registry import Case, Place, program


@program()
def keras_hub_gpt2(place: Place) -> Case:
    """A training step of GPT-2 with twelve layers, unrolled as Keras does."""
    models = keras_hub.models
    backbone = models.GPT2Backbone(
        vocabulary_size=8192,
        num_layers=12,
        num_heads=4,
        hidden_dim=256,
        intermediate_dim=1024,
        max_sequence_length=128,
    )
    model = models.GPT2CausalLM(backbone=backbone, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    tokens = jax.ShapeDtypeStruct((4, 128), jnp.int32)
    inputs = {"token_ids": tokens, "padding_mask": tokens}
    return train(model, keras.optimizers.AdamW(1e-4), loss, (inputs, tokens))


@program()
def keras_hub_bert(place: Place) -> Case:
    """Classes of texts by a BERT of 24 layers."""
    models = keras_hub.models
    backbone = models.BertBackbone(
        vocabulary_size=8192,
        num_layers=24,
        num_heads=4,
        hidden_dim=256,
        intermediate_dim=1024,
        max_sequence_length=128,
    )
    model = models.BertTextClassifier(backbone=backbone, num_classes=4, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    tokens = jax.ShapeDtypeStruct((8, 128), jnp.int32)
    inputs = {"token_ids": tokens, "padding_mask": tokens, "segment_ids": tokens}
    labels = jax.ShapeDtypeStruct((8,), jnp.int32)
    return train(model, keras.optimizers.AdamW(1e-4), loss, (inputs, labels))
