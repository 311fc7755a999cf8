"""The names of a TPU's memory spaces, for sources that do not name them.

A binary has only the numbers. libtpu's memory usage reports give them these names, in every
version that names spaces at all.
"""

import pyarrow as pa

from .parts import Parts

_OF_TPU = {0: "default", 1: "vmem", 2: "smem", 4: "host"}


def with_space_names(parts: Parts, platform: str | None) -> Parts:
    """The parts, where a TPU's memory spaces have names."""
    if parts.space_names is None and parts.buffer_assignment is not None and platform == "tpu":
        used = parts.buffer_assignment.allocations["memory_space"].unique().sort()
        names = [_OF_TPU.get(space, f"color_{space}") for space in used.to_pylist()]
        parts.space_names = pa.table(
            {"memory_space": used, "space_name": pa.array(names, pa.large_string())}
        )
    return parts
