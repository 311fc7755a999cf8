"""The memory spaces of a module and their names, also for sources that do not name them.

The binary of a TPU program has only the numbers. libtpu's memory usage reports give them
these names, in every version that names spaces at all.
"""

import pyarrow as pa
import pyarrow.compute as pc

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


def memory_spaces(parts: Parts) -> pa.Table:
    """Every space that an allocation is in or the usage report names."""
    none = pa.table(
        {"memory_space": pa.array([], pa.int32()), "space_name": pa.array([], pa.large_string())}
    )
    named = parts.space_names if parts.space_names is not None else none
    if parts.buffer_assignment is None:
        return named
    used = pc.unique(parts.buffer_assignment.allocations["memory_space"])
    unnamed = used.filter(
        pc.invert(pc.is_in(used, value_set=named["memory_space"].combine_chunks()))
    )
    rest = pa.table(
        {"memory_space": unnamed, "space_name": pa.nulls(len(unnamed), pa.large_string())}
    )
    return pa.concat_tables([named, rest]).sort_by("memory_space")
