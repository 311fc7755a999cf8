"""A warehouse of all sample dumps (`data/dumps`)."""

from pathlib import Path

from .dumps import RUNS
from .shared import shared
from .warehouse import fill


def samples_warehouse() -> Path:
    """The file. Only read it: it is shared."""
    return shared("samples.duckdb", _fill)


def _fill(db: Path) -> None:
    for summary in fill(db, *RUNS):
        assert summary.problems == []
