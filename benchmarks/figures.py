"""A measured quantity: the values of all rounds, their median and spread, and its target."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Figure:
    """What was measured, with a value for each round; without values, `parts` says why not.

    `unit` is empty for a ratio or an exponent. The target holds for the median, which must be
    at most `limit`, or at least `limit` with `at_least`. `parts` shows what the values are
    made of.
    """

    what: str
    values: Sequence[float]
    unit: str = ""
    limit: float | None = None
    at_least: bool = False
    parts: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds. Raises StatisticsError if nothing was measured."""
        return median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without a target or a value."""
        if self.limit is None or not self.values:
            return None
        return self.median >= self.limit if self.at_least else self.median <= self.limit

    def shown(self) -> dict[str, str]:
        """The row of the printed table."""
        target = ""
        if self.limit is not None:
            target = f"{'>=' if self.at_least else '<='} {quantity(self.limit, self.unit, True)}"
            if self.met is not None:
                target += ": met" if self.met else ": missed"
        return {
            "what": self.what,
            "median": quantity(self.median, self.unit) if self.values else "not measured",
            "spread": spread(self.values, self.unit) if len(self.values) > 1 else "",
            "target": target,
            "parts": self.parts,
        }

    def as_json(self) -> dict[str, Any]:
        """The figure as it stands in a file of results; `Figure(**…)` reads it again."""
        return asdict(self) | {"values": list(self.values)}


def quantity(value: float, unit: str, short: bool = False) -> str:
    """A value with its unit; `short` without zeros at the end, as targets are written."""
    if unit == "bytes":
        value, unit = value / 1e6, "MB"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:g}" if short else f"{value:,.{digits}f}"
    return f"{text} {unit}".rstrip()


def spread(values: Sequence[float], unit: str) -> str:
    """The lowest and the highest value."""
    return f"{quantity(min(values), unit)} to {quantity(max(values), unit)}"
