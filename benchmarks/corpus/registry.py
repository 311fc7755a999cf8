"""What a program of the corpus is, and the devices that it is compiled for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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


def role_of(name: str, roles: Mapping[str, str]) -> str | None:
    """The role of an argument by its path; the longest start that fits counts."""
    starts = [path for path in roles if re.match(re.escape(path) + r"(?!\w)", name)]
    return roles[max(starts, key=len)] if starts else None


class Place:
    """The devices that programs are compiled for; none of them need be there."""

    def __init__(self, device: str) -> None:
        import jax

        if device == "cpu":
            self.devices = jax.devices("cpu")
            return
        from jax.experimental import topologies

        if device in TOPOLOGIES:
            found = topologies.get_topology_desc(TOPOLOGIES[device], platform="tpu")
        else:
            target = (Path(__file__).parent / TARGETS[device]).read_text()
            found = topologies.get_topology_desc(
                device, platform="cuda", target_config=target, topology="1x1x1"
            )
        self.devices = list(found.devices)

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


@dataclass(frozen=True)
class Program:
    """A program: `make` gives its case on the devices that it is for."""

    make: Callable[[Place], Case]
    devices: tuple[str, ...]
    environments: tuple[str, ...]


PROGRAMS: dict[str, Program] = {}
DEVICES = ("cpu", *TARGETS, *TOPOLOGIES)


def program(
    *devices: str, old: bool = False
) -> Callable[[Callable[[Place], Case]], Callable[[Place], Case]]:
    """Add a program, named after the function that makes it, for all devices unless some are named.

    old: it is compiled with an old JAX too.
    """

    def add(make: Callable[[Place], Case]) -> Callable[[Place], Case]:
        environments = ("new", "old") if old else ("new",)
        PROGRAMS[make.__name__] = Program(make, devices or DEVICES, environments)
        return make

    return add
