"""A measured quantity: its value in each round, median, spread and target."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """A measured quantity and its target.

    Attributes:
        name: what was measured; unique among the results.
        values: one value per round; empty if nothing could be measured.
        unit: "s", "ms", "bytes", or empty for a ratio.
        limit: the largest median that meets the target; None without a target.
        detail: what the values are made of.
    """

    name: str
    values: Sequence[float]
    unit: str = ""
    limit: float | None = None
    detail: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds. Raises StatisticsError without values."""
        return median(self.values)

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the target; None without a target or a value."""
        if self.limit is None or not self.values:
            return None
        return self.median <= self.limit

    def row(self) -> dict[str, str]:
        """The measurement as a row of the printed table."""
        target = "" if self.limit is None else f"<= {quantity(self.limit, self.unit, short=True)}"
        if self.is_met is not None:
            target += ": met" if self.is_met else ": missed"
        return {
            "name": self.name,
            "median": quantity(self.median, self.unit) if self.values else "not measured",
            "spread": spread(self.values, self.unit) if len(self.values) > 1 else "",
            "target": target,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Results:
    """What was measured, and what makes it comparable: versions, cores, load."""

    environment: dict[str, str]
    measurements: Sequence[Measurement]

    def by_name(self) -> dict[str, Measurement]:
        """The measurements by their names."""
        return {measurement.name: measurement for measurement in self.measurements}


def write_results(path: Path, results: Results) -> None:
    """Write the results as JSON."""
    path.write_text(json.dumps(asdict(results), indent=1) + "\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote. Raises ValueError if the file is not that, OSError."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        measurements = [Measurement(**fields) for fields in content["measurements"]]
        return Results(dict(content["environment"]), measurements)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not written by `bench.py --json`: {error}") from error


def quantity(value: float, unit: str, *, short: bool = False) -> str:
    """A value with its unit; `short` drops trailing zeros, as targets are written."""
    if unit == "bytes":
        value, unit = value / 1e6, "MB"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:g}" if short else f"{value:,.{digits}f}"
    return f"{text} {unit}".rstrip()


def spread(values: Sequence[float], unit: str) -> str:
    """The lowest and the highest value."""
    return f"{quantity(min(values), unit)} to {quantity(max(values), unit)}"


def print_table(rows: Sequence[dict[str, str]]) -> None:
    """Print rows with the same keys as a Markdown table."""
    if rows:
        for cells in (rows[0].keys(), ["---"] * len(rows[0]), *(row.values() for row in rows)):
            print("| " + " | ".join(cells) + " |")
