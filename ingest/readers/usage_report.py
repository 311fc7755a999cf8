"""Reader of the memory usage report, the only file that names the memory spaces.

Its other figures are rounded; BufferAssignment has the exact figures. Reports before about
JAX 0.10 sort allocations by size and do not name spaces (`tpu/llama-v5e-jax0.7.0`).
"""

import pyarrow as pa

from ...xla.errors import DumpError
from .lines import Lines

_SPACE = r"^Memory Space: (?P<space_name>.+) \(color=(?P<memory_space>\d+)\)$"


def read_usage_report(lines: Lines) -> pa.Table:
    """The named spaces: memory_space, space_name. Raises DumpError."""
    is_space = lines.starting("Memory Space: ")
    old = lines.starting("Total bytes used: ")
    if not is_space.any() and not old.any():
        raise DumpError(
            "not a memory usage report: expected 'Memory Space: NAME (color=N)'",
            int(lines.numbers[0]),
        )
    spaces = lines.where(is_space)
    found = spaces.extract(_SPACE, "'Memory Space: NAME (color=N)'")
    return pa.table(
        {
            "memory_space": spaces.integers(found["memory_space"]),
            "space_name": found["space_name"],
        }
    )
