"""The metrics as users name them."""

from ..schema.errors import UsageError
from ..schema.metrics import METRICS


def metric_column(metric: str, argument: str = "metric") -> str:
    """The metric `peak` or `peak_bytes` as `module_memory` names it. Raises UsageError."""
    column = f"{metric.removesuffix('_bytes')}_bytes"
    if column not in METRICS:
        names = ", ".join(name.removesuffix("_bytes") for name in METRICS)
        raise UsageError(f"unknown metric {metric!r}: use one of {names}", argument)
    return column
