"""Every id of the warehouse: a hash of what identifies the row.

The same row has the same id in every process and warehouse, so many writers agree on ids.
"""

import hashlib
from collections.abc import Iterable, Mapping
from hashlib import blake2b


def module_id(module_name: str, contents: Iterable[tuple[str, str | None]]) -> int:
    """A module: its name, and the format and SHA-256 of each file that holds its content."""
    return _hash64(module_name, *(f"{format_} {sha256}" for format_, sha256 in contents))


def program_id(entry: int, allocations: bytes, values: bytes) -> int:
    """A program: its entry computation's hash, and those of its allocations and values."""
    content = blake2b(entry.to_bytes(8, "little"), digest_size=8)
    # The length tells where the allocations end.
    for part in (len(allocations).to_bytes(8, "little"), allocations, values):
        content.update(part)
    return _short(content.digest())


def skeleton_id(arguments: Iterable[tuple[str, int]]) -> int:
    """The entry computation's arguments: their names and ranks, in order."""
    return _hash64("skeleton", *(f"{rank} {name}" for name, rank in arguments))


def dump_id(run_id: str, workload: str, stem: str, target: str | None) -> int:
    """A module as dumped in a run; its files' names share `stem` and `target`."""
    return _hash64(run_id, workload, stem, target or "")


def flags_id(flags: Mapping[str, str]) -> int:
    """A set of compiler flags."""
    return _hash64(*(f"{flag}={value}" for flag, value in sorted(flags.items())))


def series_id(
    branch: str, suite: str, workload: str, module_name: str, platform: str | None, number: int
) -> int:
    """A chain of dumps: its lineage, the group of its first dump, and its number there."""
    return _hash64("series", branch, suite, workload, module_name, platform or "", str(number))


def oom_id(run_id: str, path: str, line: int) -> int:
    """A message of XLA that memory ran out."""
    return _hash64("oom", run_id, path, str(line))


def _hash64(*texts: str) -> int:
    """A hash of texts."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    return _short(hashlib.sha256(content).digest())


def _short(digest: bytes) -> int:
    """63 bits of a hash: a command line would parse a negative id as an option."""
    return int.from_bytes(digest[:8], "big") >> 1
