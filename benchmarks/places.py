"""Where programs are compiled for, and arguments that lie there: a TPU need not be there."""

from typing import Any

TOPOLOGY = "v5e:2x2"


class Place:
    """The devices to compile for, and arguments that lie on them."""

    def __init__(self, platform: str) -> None:
        import jax

        if platform == "tpu":
            from jax.experimental import topologies

            self.devices = list(topologies.get_topology_desc(TOPOLOGY, platform="tpu").devices)
        else:
            self.devices = list(jax.devices(platform))

    def array(self, *shape: int, dtype: str = "float32", memory: str | None = None) -> Any:
        """An argument on one device."""
        import jax

        where = jax.sharding.SingleDeviceSharding(self.devices[0], memory_kind=memory)
        return jax.ShapeDtypeStruct(shape, dtype, sharding=where)

    def arrays(self, shapes: dict[str, tuple[int, ...]], dtype: str = "float32") -> dict[str, Any]:
        """An argument on one device for each name."""
        return {name: self.array(*shape, dtype=dtype) for name, shape in shapes.items()}

    def mesh(self, **axes: int) -> Any:
        """All devices, as a mesh with these axes."""
        import jax
        import numpy as np

        grid = np.array(self.devices).reshape(tuple(axes.values()))
        return jax.sharding.Mesh(grid, tuple(axes))

    def spread(
        self, mesh: Any, spec: Any, *shape: int, dtype: str = "float32", memory: str | None = None
    ) -> Any:
        """An argument that is spread over a mesh."""
        import jax

        where = jax.sharding.NamedSharding(mesh, spec, memory_kind=memory)
        return jax.ShapeDtypeStruct(shape, dtype, sharding=where)
