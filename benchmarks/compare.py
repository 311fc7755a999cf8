"""Hold two results of the benchmarks against each other.

    python benchmarks/compare.py A.json B.json

The files are what `all.py --json` wrote. A change that is larger than the spread of both is
called better or worse; the others may be chance.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from figures import Figure, quantity, spread

from memhouse.cli.render.text import print_rows
from memhouse.queries.result import Rows


class Results(NamedTuple):
    """What `all.py --json` wrote: where it was measured, and the figures by name."""

    environment: dict[str, str]
    figures: dict[str, Figure]


def read_results(path: Path) -> Results:
    """Read a file of results. Raises ValueError if the file is not one, OSError."""
    try:
        written: dict[str, Any] = json.loads(path.read_text())
        figures = [Figure(**figure) for figure in written["figures"]]
        return Results(dict(written["environment"]), {figure.what: figure for figure in figures})
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not written by `all.py --json`: {error}") from error


def compared(before: Mapping[str, Figure], after: Mapping[str, Figure]) -> list[dict[str, str]]:
    """A row for each figure of either result: both medians and spreads, and the change."""
    return [_row(what, before.get(what), after.get(what)) for what in {**before, **after}]


def _row(what: str, before: Figure | None, after: Figure | None) -> dict[str, str]:
    row = {
        "what": what,
        "before": _cell(before),
        "after": _cell(after),
        "change": "",
        "verdict": "",
    }
    if before and after and before.values and after.values:
        if before.median:
            row["change"] = f"{100 * (after.median / before.median - 1):+.0f} %"
        row["verdict"] = _verdict(before, after)
    return row


def _cell(figure: Figure | None) -> str:
    if figure is None or not figure.values:
        return "not measured"
    shown = quantity(figure.median, figure.unit)
    if len(figure.values) == 1:
        return shown
    return f"{shown} ({spread(figure.values, figure.unit)})"


def _verdict(before: Figure, after: Figure) -> str:
    """Better or worse, if no value of one result lies between the values of the other."""
    if min(before.values) <= max(after.values) and min(after.values) <= max(before.values):
        return "the same" if before.median == after.median else "within the spread"
    return "better" if (after.median > before.median) == after.at_least else "worse"


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs between two environments, a line each."""
    return [
        f"{name}: {before.get(name, 'unknown')} before, {after.get(name, 'unknown')} after"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


def main() -> None:
    """Read the command line, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", metavar="A.json", type=Path)
    parser.add_argument("after", metavar="B.json", type=Path)
    given = parser.parse_args()
    try:
        before, after = read_results(given.before), read_results(given.after)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    rows = compared(before.figures, after.figures)
    print_rows(Rows(pa.Table.from_pylist(rows)), "markdown")
    if lines := differences(before.environment, after.environment):
        print("", *lines, sep="\n")


if __name__ == "__main__":
    main()
