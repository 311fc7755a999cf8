"""Reader of the memory usage report, the only file that names the memory spaces.

Its totals are exact and its other figures rounded; BufferAssignment has the exact figures. Reports
before about JAX 0.10 sort allocations by size and do not name spaces (`tpu/llama-v5e-jax0.7.0`);
newer ones list no allocations.
"""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...xla.columns.parts import BufferAssignment
from ...xla.errors import LARGEST_SIZE, DumpError
from .buffer_assignment import HEADING, read_buffer_assignment
from .lines import Lines, Positions, divided, lines_of
from .pasted import xla_allocation

_SPACE = r"^Memory Space: (?P<space_name>.+) \(color=(?P<memory_space>\d+)\)$"
_TOTAL = r"^Total bytes(?: used)?: (?P<total_bytes>\d+) "
_SIZE = r"[0-9.]+[KMGTPE]?i?B"
_ALLOCATION = re.compile(
    rf" *{_SIZE}\( *\d+%\); +{_SIZE}; (?P<start>allocation \d+: (?:0x[0-9a-f]+, )?size )"
    r"(?P<size>\d{1,9}(?:\.\d{1,9})?)(?P<unit>[KMGTPE]?)i?B(?P<rest>.*)"
)


def read_usage_report(lines: Lines) -> pa.Table:
    """The named spaces: memory_space, space_name. Raises DumpError."""
    (found,) = read_usage_reports(lines, lines.starts[:1])
    return found


def read_usage_reports(lines: Lines, starts: Positions) -> list[pa.Table]:
    """The same of several reports, which start at these positions of the lines' content."""
    is_space = lines.starting("Memory Space: ")
    is_told = is_space | lines.starting("Total bytes used: ")
    bounds = lines.bounds(starts)
    at = np.append(np.flatnonzero(is_told), len(lines))
    is_none = at[np.searchsorted(at, bounds[:-1])] >= bounds[1:]
    if is_none.any():
        raise DumpError(
            "not a memory usage report: expected 'Memory Space: NAME (color=N)'",
            int(lines.numbers[bounds[np.argmax(is_none)]]),
        )
    spaces = lines.where(is_space)
    found = spaces.extract(_SPACE, "'Memory Space: NAME (color=N)'")
    table = pa.table(
        {
            "memory_space": spaces.integers(found["memory_space"]),
            "space_name": found["space_name"],
        }
    )
    return divided(table, spaces.bounds(starts))


def read_totals(lines: Lines) -> dict[int, int]:
    """The bytes of all allocations of each memory space, exactly.

    An old report has one total of all spaces, which stands under space 0. Raises DumpError.
    """
    is_space = lines.starting("Memory Space: ")
    totals = lines.where(lines.starting("Total bytes"))
    texts = totals.extract(_TOTAL, "'Total bytes: N'")["total_bytes"]
    sizes = totals.integers(texts, most=LARGEST_SIZE).to_pylist()
    spaces = [0] * len(sizes)
    if is_space.any():
        numbers = read_usage_report(lines)["memory_space"].to_pylist()
        below = np.searchsorted(lines.numbers[is_space], totals.numbers) - 1
        spaces = [numbers[at] for at in below.tolist()]
    return dict(zip(spaces, sizes, strict=True))


def read_rounded_allocations(lines: Lines) -> BufferAssignment | None:
    """The allocations that an old report lists, with rounded sizes. Raises DumpError."""
    listed = []
    for number, text in zip(lines.numbers.tolist(), lines.text.to_pylist(), strict=True):
        if found := _ALLOCATION.fullmatch(text):
            power = " KMGTPE".index(found["unit"] or " ")
            size = round(float(found["size"]) * 1024**power)
            printed = xla_allocation(f"{found['start']}{size}{found['rest']}")
            if printed is not None:
                listed.append((printed, number))
    if not listed:
        return None
    texts, numbers = zip((HEADING, int(lines.numbers[0])), *listed, strict=True)
    column = pa.array(texts, pa.large_string())
    assignment = read_buffer_assignment(lines_of(column, np.array(numbers)))
    return replace(assignment, origin="estimated")
