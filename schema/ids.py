"""Every id of the warehouse: a hash of what identifies the row.

The same row has the same id in every process and warehouse, so many writers agree on ids.
"""

import hashlib
from collections.abc import Iterable, Mapping


def module_id(module_name: str, contents: Iterable[tuple[str, str | None]]) -> int:
    """A module: its name, and the format and SHA-256 of each file that holds its content."""
    return _hash64(module_name, *(f"{format_} {sha256}" for format_, sha256 in contents))


def dump_id(run_id: str, workload: str, stem: str, target: str | None) -> int:
    """A module as dumped in a run; its files' names share `stem` and `target`."""
    return _hash64(run_id, workload, stem, target or "")


def flags_id(flags: Mapping[str, str]) -> int:
    """A set of compiler flags."""
    return _hash64(*(f"{flag}={value}" for flag, value in sorted(flags.items())))


def series_id(workload: str, module_name: str, platform: str | None, number: int) -> int:
    """A chain of dumps: the group of its first dump, and its number within this group."""
    return _hash64("series", workload, module_name, platform or "", str(number))


def _hash64(*texts: str) -> int:
    """A 63-bit hash of texts: a command line would parse a negative id as an option."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1
