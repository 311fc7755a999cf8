"""Names of `bridge_d`, for callers that are not yet plain."""

from .bridge_d import (
    CONTROL_FLOW,
    CPU,
    GPU,
    KNOWN_OPCODES,
    TPU,
    Dataflow,
    Schedule,
    Sizes,
    array_bytes,
    platform_of,
    value_sizes,
)

__all__ = [
    "CONTROL_FLOW",
    "CPU",
    "GPU",
    "KNOWN_OPCODES",
    "TPU",
    "Dataflow",
    "Schedule",
    "Sizes",
    "array_bytes",
    "platform_of",
    "value_sizes",
]
