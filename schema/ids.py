"""Every id of the warehouse: a hash of what identifies the row.

The same row has the same id in every process and warehouse, so many writers agree on ids.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import itemgetter

from ..xla.hashes import hash_of_texts


def module_id(module_name: str, contents: Iterable[tuple[str, str | None]]) -> int:
    """A module: its name, and the format and SHA-256 of each file that holds its content."""
    return hash_of_texts(module_name, *(f"{format_} {sha256}" for format_, sha256 in contents))


def dump_id(run_id: str, workload: str, stem: str, target: str | None) -> int:
    """A module as dumped in a run; its files' names share `stem` and `target`."""
    return hash_of_texts(run_id, workload, stem, target or "")


def flags_id(flags: Mapping[str, str]) -> int:
    """A set of compiler flags."""
    return _flags_id(tuple(flags.items()))


# Most dumps of a run have the same flags.
@lru_cache(maxsize=16)
def _flags_id(flags: tuple[tuple[str, str], ...]) -> int:
    return hash_of_texts(*(f"{flag}={value}" for flag, value in sorted(flags)))


def files_id(files: Iterable[Mapping[str, object]]) -> int:
    """A set of files, given as rows of `file_sets`."""
    rows = sorted(files, key=itemgetter("name"))
    return hash_of_texts("".join(f"{_text(value)}\n" for row in rows for value in row.values()))


def _text(value: object) -> object:
    return "" if value is None else value


def series_id(
    branch: str, suite: str, workload: str, module_name: str, platform: str | None, number: int
) -> int:
    """A chain of dumps: its lineage, the group of its first dump, and its number there."""
    return hash_of_texts(
        "series", branch, suite, workload, module_name, platform or "", str(number)
    )


def oom_id(run_id: str, path: str, line: int) -> int:
    """A message of XLA that memory ran out."""
    return hash_of_texts("oom", run_id, path, str(line))
