"""What a pair is: a program before and after one change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from places import Place

HALF = "bfloat16"


@dataclass(frozen=True)
class Side:
    """A program: its function, its arguments' shapes, and which arguments are donated."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A program before and after one change; a program that is right already has no `after`.

    kind: donate, remat, offload, pad, unpad, narrow, chunk, map, microbatch, gather, returned,
    int8, carry, bits, constant or none. policy: of a checkpoint, what it saves; of parts, how many.
    """

    kind: str
    before: Side
    after: Side | None = None
    policy: str | None = None


Make = Callable[[Place], Pair]
PAIRS: dict[str, Make] = {}
# A pair's side, such as ("x", "before"), that is the program of another pair's side.
SAME: dict[tuple[str, str], tuple[str, str]] = {}


def pair(make: Make) -> Make:
    """Add a pair, named after the function that makes it."""
    PAIRS[make.__name__] = make
    return make


def donation(function: Callable[..., Any], *arguments: Any, donated: tuple[int, ...]) -> Pair:
    """The pair of a program without and with donated arguments."""
    return Pair("donate", Side(function, arguments), Side(function, arguments, donated))
