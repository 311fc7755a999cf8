"""What a pair is, and where the programs' arguments lie."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

TOPOLOGY = "v5e:2x2"
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


class Place:
    """The device to compile for, and arguments that lie on it."""

    def __init__(self, platform: str) -> None:
        device = jax.devices("cpu")[0]
        if platform == "tpu":
            from jax.experimental import topologies

            device = topologies.get_topology_desc(TOPOLOGY, platform="tpu").devices[0]
        self.sharding = jax.sharding.SingleDeviceSharding(device)

    def array(self, *shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
        """An argument."""
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.sharding)

    def arrays(self, shapes: dict[str, tuple[int, ...]], dtype: str = "float32") -> dict[str, Any]:
        """An argument for each name."""
        return {name: self.array(*shape, dtype=dtype) for name, shape in shapes.items()}


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
