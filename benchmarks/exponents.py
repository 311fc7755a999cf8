"""How costs grow with a count: the exponent of a curve."""

from collections.abc import Mapping, Sequence

import numpy as np
from figures import Figure, quantity

# A little more than linear, because measured costs vary.
LINEAR = 1.1
# Costs that differ by a smaller share of the first cost do not differ measurably.
_NOISE = 0.05


def exponent(costs: Mapping[int, float]) -> float:
    """The k for which the costs, beyond the first, grow most nearly as (count - first) ** k.

    `costs` are by count. 0 if the last cost is not above the first. The cost of the first
    count is left out because it is mostly start-up. A point weighs as much as its cost,
    because a small difference of two times is mostly noise. Raises ValueError if there are
    fewer than three counts.
    """
    if len(costs) < 3:
        raise ValueError("an exponent needs the costs of three counts or more")
    counts = np.array(sorted(costs), float)
    values = np.array([costs[count] for count in sorted(costs)], float)
    more = counts[1:] - counts[0]
    beyond = np.maximum(values[1:] - values[0], _NOISE * values[0])
    slope, _ = np.polyfit(np.log(more), np.log(beyond), 1, w=beyond)
    return max(0.0, float(slope))


def growth_figure(
    what: str, rounds: Sequence[Mapping[int, float]], unit: str, limit: float = LINEAR
) -> Figure:
    """The exponent of each round's curve; the curve of the medians is shown beside it.

    A curve of two counts, as short options make it, has no exponent.
    """
    middle = {count: float(np.median([costs[count] for costs in rounds])) for count in rounds[0]}
    return Figure(
        f"exponent of {what}",
        [exponent(costs) for costs in rounds if len(costs) > 2],
        limit=limit,
        parts=", ".join(f"{count:,}: {quantity(cost, unit)}" for count, cost in middle.items()),
    )
