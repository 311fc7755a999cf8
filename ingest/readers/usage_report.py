"""Reader of the memory usage report, the only file that names the memory spaces.

Its totals are exact and its other sizes rounded; BufferAssignment has the exact sizes. Reports
before about JAX 0.10 list allocations by size and do not name spaces (`tpu/llama-v5e-jax0.7.0`);
newer ones list no allocations.
"""

import re
from dataclasses import replace

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import BufferAssignment
from .buffer_assignment import read_allocations
from .lines import Lines, at_line, read_integer
from .pasted import allocation_line

_SPACE_START = "Memory Space: "
_SPACE = re.compile(r"Memory Space: (.+) \(color=([0-9]+)\)")
_TOTAL = re.compile(r"Total bytes(?: used)?: ([0-9]+) ")
_SIZE = r"[0-9.]+[KMGTPE]?i?B"
_ALLOCATION = re.compile(
    rf" *{_SIZE}\( *\d+%\); +{_SIZE}; (?P<start>allocation \d+: (?:0x[0-9a-f]+, )?size )"
    r"(?P<size>\d{1,9}(?:\.\d{1,9})?)(?P<unit>[KMGTPE]?)i?B(?P<rest>.*)"
)


def read_usage_report(lines: Lines) -> dict[int, str]:
    """The names of the memory spaces by number; old reports name none. Raises DumpError."""
    if not any(line.startswith((_SPACE_START, "Total bytes used: ")) for line in lines.text):
        raise DumpError(
            "not a memory usage report: expected 'Memory Space: NAME (color=N)'",
            lines.first_number,
        )
    names, _ = _read_spaces(lines)
    return names


def read_totals(lines: Lines) -> dict[int, int]:
    """The exact bytes of all allocations by memory space. Raises DumpError.

    An old report has one total of all spaces, which is that of space 0 here.
    """
    _, totals = _read_spaces(lines)
    return totals


def _read_spaces(lines: Lines) -> tuple[dict[int, str], dict[int, int]]:
    """The names and the total bytes of the memory spaces. Raises DumpError."""
    names: dict[int, str] = {}
    totals: dict[int, int] = {}
    memory_space = 0
    for number, line in enumerate(lines.text, lines.first_number):
        try:
            if line.startswith(_SPACE_START):
                match = _SPACE.fullmatch(line)
                if match is None:
                    raise DumpError("expected 'Memory Space: NAME (color=N)'")
                memory_space = read_integer(match[2])
                names[memory_space] = match[1]
            elif match := _TOTAL.match(line):
                totals[memory_space] = read_integer(match[1], LARGEST_SIZE)
        except DumpError as problem:
            raise at_line(problem, line, number) from None
    return names, totals


def read_rounded_allocations(lines: Lines) -> BufferAssignment | None:
    """The allocations in an old report, with rounded sizes; None if it lists none.

    Raises DumpError.
    """
    # Empty lines for all others: they keep the line numbers.
    allocations = [_exact_line(line) or "" for line in lines.text]
    if not any(allocations):
        return None
    assignment = read_allocations(Lines(allocations, lines.first_number))
    return replace(assignment, origin="estimated")


def _exact_line(line: str) -> str | None:
    """A report's line about an allocation as in BufferAssignment; None for any other line."""
    match = _ALLOCATION.fullmatch(line)
    if match is None:
        return None
    power = " KMGTPE".index(match["unit"] or " ")
    size = round(float(match["size"]) * 1024**power)
    return allocation_line(f"{match['start']}{size}{match['rest']}")
