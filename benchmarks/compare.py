"""Compares two results of the benchmarks: python compare.py BEFORE.json AFTER.json.

The files are those of `bench.py --json`. A measurement is better or worse if all values of one
result are on one side of all values of the other; other changes may be chance.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from measurement import Measurement, print_table, quantity, read_results, spread


def compare(
    before: Mapping[str, Measurement], after: Mapping[str, Measurement]
) -> list[dict[str, str]]:
    """A row for each measurement of either result: both medians and spreads, and the change."""
    return [_row(name, before.get(name), after.get(name)) for name in {**before, **after}]


def _row(name: str, before: Measurement | None, after: Measurement | None) -> dict[str, str]:
    change, verdict = "", ""
    if before and after and before.values and after.values:
        if before.median:
            change = f"{100 * (after.median / before.median - 1):+.0f} %"
        verdict = _verdict(before, after)
    return {
        "name": name,
        "before": _cell(before),
        "after": _cell(after),
        "change": change,
        "verdict": verdict,
    }


def _cell(measurement: Measurement | None) -> str:
    if measurement is None or not measurement.values:
        return "not measured"
    cell = quantity(measurement.median, measurement.unit)
    if len(measurement.values) > 1:
        cell += f" ({spread(measurement.values, measurement.unit)})"
    return cell


def _verdict(before: Measurement, after: Measurement) -> str:
    if min(before.values) <= max(after.values) and min(after.values) <= max(before.values):
        return "the same" if before.median == after.median else "within the spread"
    return "better" if after.median < before.median else "worse"


def main(before_path: str, after_path: str) -> None:
    """Print the comparison, and what differs between the two environments."""
    try:
        before, after = read_results(Path(before_path)), read_results(Path(after_path))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print_table(compare(before.by_name(), after.by_name()))
    print()
    for name in {**before.environment, **after.environment}:
        left, right = (e.environment.get(name, "unknown") for e in (before, after))
        if left != right:
            print(f"{name}: {left} before, {right} after")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: compare.py BEFORE.json AFTER.json")
    main(*sys.argv[1:])
