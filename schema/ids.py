"""Every id of the warehouse: a hash of what the row is.

Ids are the same wherever and whenever they are made, so many writers agree on them.
"""

import hashlib
from collections.abc import Iterable, Mapping


def module_id(module_name: str, contents: Iterable[tuple[str, str | None]]) -> int:
    """A module's content: its name, and the format and SHA-256 of each file that holds it."""
    return _hash64(module_name, *(f"{format_} {sha256}" for format_, sha256 in contents))


def dump_id(run_id: str, workload: str, stem: str, target: str | None) -> int:
    """A module as dumped in a run: `stem` and `target` are what its files' names share."""
    return _hash64(run_id, workload, stem, target or "")


def flags_id(flags: Mapping[str, str]) -> int:
    """A set of compiler flags."""
    return _hash64(*(f"{flag}={value}" for flag, value in sorted(flags.items())))


def series_id(workload: str, module_name: str, platform: str | None, number: int) -> int:
    """A chain of dumps: the group in which it began, and its number among those that did."""
    return _hash64("series", workload, module_name, platform or "", str(number))


def _hash64(*texts: str) -> int:
    """A hash of texts in 63 bits: a negative id would be an option on a command line."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1
