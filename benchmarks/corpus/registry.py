"""What a program of the corpus is, and the devices that it is compiled for."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

# The devices that a program can be compiled for ahead of time, besides the CPU.
TOPOLOGIES = {"v5e": "v5e:2x2", "v6e": "v6e:2x2", "7x": "tpu7x:2x2x1"}
TARGETS = {"h100": "h100.pbtxt"}


@dataclass(frozen=True)
class Case:
    """A function to compile, and its arguments.

    arguments: by the names of the function's parameters, in their order: pytrees of arrays or of
    `jax.ShapeDtypeStruct`. roles: the role of each argument, by the start of its path, such as
    `state.params`; what no path fits is not compared. donated: the names of the parameters that
    are donated. options: of `jax.jit`.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    roles: Mapping[str, str]
    donated: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """A program of a framework that compiles as it runs.

    module: a regular expression of the compiled module's name; the last one is kept. arguments: of
    each the `argument`, which is its number, its `role`, which may be None, and its `bytes`.
    """

    run: Callable[[], Any]
    module: str
    arguments: Sequence[Mapping[str, Any]]


def role_of(name: str, roles: Mapping[str, str]) -> str | None:
    """The role of an argument by its path; the longest start that fits counts."""
    starts = [path for path in roles if re.match(re.escape(path) + r"(?!\w)", name)]
    return roles[max(starts, key=len)] if starts else None


class Place:
    """The devices that programs are compiled for; none of them need be there."""

    def __init__(self, device: str) -> None:
        self.device = device

    @cached_property
    def devices(self) -> list[Any]:
        """The devices, for JAX."""
        import jax

        if self.device == "cpu":
            return list(jax.devices("cpu"))
        from jax.experimental import topologies

        if self.device in TOPOLOGIES:
            found = topologies.get_topology_desc(TOPOLOGIES[self.device], platform="tpu")
        else:
            target = (Path(__file__).parent / TARGETS[self.device]).read_text()
            found = topologies.get_topology_desc(
                self.device, platform="cuda", target_config=target, topology="1x1x1"
            )
        return list(found.devices)

    def mesh(self, **axes: int) -> Any:
        """All devices as a mesh with these axes."""
        import jax
        import numpy as np

        grid = np.array(self.devices).reshape(tuple(axes.values()))
        return jax.sharding.Mesh(grid, tuple(axes))

    def put(self, tree: Any) -> Any:
        """The shapes of a pytree's arrays on the first device; what has a place keeps it."""
        import jax

        first = jax.sharding.SingleDeviceSharding(self.devices[0])

        def shape(leaf: Any) -> Any:
            placed = isinstance(leaf, jax.ShapeDtypeStruct) and leaf.sharding is not None
            return leaf if placed else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=first)

        return jax.tree.map(shape, tree)


# Makes a program on the devices that it is for.
Make = Callable[[Place], Case | Ran]


@dataclass(frozen=True)
class Program:
    """A program, and the devices and environments that it is for."""

    make: Make
    devices: tuple[str, ...]
    environments: tuple[str, ...]


PROGRAMS: dict[str, Program] = {}
DEVICES = ("cpu", *TARGETS, *TOPOLOGIES)


def program(*devices: str, environments: tuple[str, ...] = ("new",)) -> Callable[[Make], Make]:
    """Add a program, named after the function that makes it; without devices it is for all."""

    def add(make: Make) -> Make:
        PROGRAMS[make.__name__] = Program(make, devices or DEVICES, environments)
        return make

    return add


# With the newest JAX, and with one that many still have.
BOTH = ("new", "old")
