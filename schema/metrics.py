"""The metrics: the columns of `module_memory` that have a history, as `tables.py` declares them."""

from typing import NamedTuple

from .tables import module_memory


class Metric(NamedTuple):
    """A metric: `better` is lower or higher; `regresses` if `regressions` tells of its growth."""

    name: str
    meaning: str
    better: str
    regresses: bool


# By name, in the order in which they are shown.
METRICS = {
    column.name: Metric(
        column.name, column.comment or "", column.info["better"], column.info["regresses"]
    )
    for column in sorted(
        (column for column in module_memory.c if column.info),
        key=lambda column: column.info["place"],
    )
}
# As users name them: peak, total and so on, all in bytes.
METRIC_NAMES = tuple(metric.removesuffix("_bytes") for metric in METRICS)
# The metric of `trends` that is no size.
WORK = "flops"
