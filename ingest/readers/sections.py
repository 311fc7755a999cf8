"""Splits a document into its sections: older XLA prints several parts into one file."""

from collections.abc import Mapping
from typing import TypeVar

from .lines import Lines

Name = TypeVar("Name")


def split_sections(lines: Lines, openings: Mapping[Name, str]) -> dict[Name, Lines]:
    """The sections in the lines, in order; `openings` has the first text of each section.

    Raises DumpError if a line that is not blank precedes the first section.
    """
    starts = sorted(
        (
            (int(index), name)
            for name, opening in openings.items()
            for index in lines.starting(opening).nonzero()[0][:1]
        ),
        key=lambda start: start[0],
    )
    if starts:
        before = lines.between(0, starts[0][0])
        if not before.equal("").all():
            before.refuse(~before.equal(""), f"expected {starts[0][1]}")
    stops = [*(start for start, _ in starts[1:]), len(lines)] if starts else []
    return {
        name: lines.between(start, stop) for (start, name), stop in zip(starts, stops, strict=True)
    }
