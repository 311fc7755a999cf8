"""The marker's arguments: what a program may take, and by how much it may grow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..queries.checking.thresholds import Threshold, parse_growth, parse_size

if TYPE_CHECKING:
    import pytest

# The name by which users know memory space 0 of any device.
MAIN_SPACE = "hbm"


@dataclass(frozen=True)
class Limit:
    """What the programs of a test may take in one memory space.

    most: the largest peak; growth: the most that the peak may lie above the one before; space:
    hbm for memory space 0, or a space's name or number; workload: which program of a warehouse
    is the one before, where several have its name.
    """

    most: Threshold | None
    growth: Threshold | None
    space: str
    workload: str | None


def read_limits(markers: Iterable[pytest.Mark]) -> list[Limit]:
    """The limits of one test: of each memory space the closest marker.

    markers: the closest to the test first. Raises ValueError, and TypeError as a call does.
    """
    limits: dict[str, Limit] = {}
    for marker in markers:
        limit = limit_memory(*marker.args, **marker.kwargs)
        limits.setdefault(limit.space, limit)
    return list(limits.values())


def limit_memory(
    most: str | int | None = None,
    *,
    space: str | int = MAIN_SPACE,
    growth: str | None = None,
    workload: str | None = None,
) -> Limit:
    """The arguments as a test writes them. Raises ValueError, and TypeError as a call does."""
    if most is None and growth is None:
        raise ValueError('nothing is limited: write limit_memory("2 GiB") or growth="2%"')
    if not isinstance(space, str | int) or isinstance(space, bool):
        raise ValueError(f'space is a name such as "hbm" or a number, found {space!r}')
    if growth is not None and not isinstance(growth, str):
        raise ValueError(f'growth is a text such as "2%" or "64 MiB", found {growth!r}')
    if workload is not None and growth is None:
        raise ValueError("workload says what growth is held against: give growth too")
    return Limit(
        _size(most),
        None if growth is None else parse_growth(growth),
        MAIN_SPACE if str(space) == "0" else str(space).lower(),
        workload,
    )


def _size(most: str | int | None) -> Threshold | None:
    match most:
        case None:
            return None
        case str():
            return parse_size(most)
        case int() if most > 0 and not isinstance(most, bool):
            return Threshold(most, False, f"{most} B")
    raise ValueError(f'a limit is a size such as "2 GiB", or bytes, found {most!r}')
