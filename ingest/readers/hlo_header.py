"""The first line of HLO text: the module's name and attributes."""

import re
from typing import Final

from ...xla.errors import DumpError
from ...xla.program import Header
from .lines import excerpt

_NAME: Final = re.compile(r"HloModule ([^ ,]+)")
_BRACE: Final = re.compile(r"[{}]")
# Counts are 32-bit integers in the warehouse.
_MAX_DIGITS: Final = 9


def header_name(line: str) -> str | None:
    """The module's name in the first line of HLO text; None if the text is not HLO."""
    match = _NAME.match(line)
    return match[1] if match is not None else None


def read_header(line: str) -> Header:
    """The module's attributes. Raises DumpError."""
    if header_name(line) is None:
        raise DumpError(f"not HLO text: it starts with {excerpt(line)}", 1)
    return Header(
        ", is_scheduled=true" in line,
        braced_value(line, "entry_computation_layout") or None,
        _count(line, "num_partitions"),
        _count(line, "replica_count"),
    )


def braced_value(line: str, attribute: str) -> str:
    """The text between an attribute's braces; empty without the attribute. Raises DumpError."""
    start = line.find(f", {attribute}={{")
    if start < 0:
        return ""
    start += len(attribute) + 4
    depth = 1
    for brace in _BRACE.finditer(line, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return line[start : brace.start()].strip()
    raise DumpError(f"the braces of {attribute} do not close", 1)


def _count(line: str, attribute: str) -> int:
    """A number of partitions or replicas, which XLA prints only if it is greater than 1."""
    match = re.search(rf", {attribute}=([0-9]+)\b", line)
    if match is None:
        return 1
    if len(match[1]) > _MAX_DIGITS:
        raise DumpError(f"{attribute} is over 32 bits: {excerpt(match[1])}", 1)
    return int(match[1])
