"""Why a path has nothing to ingest, and what to give instead."""

import glob
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from . import formats
from .formats import other_by_name
from .sources.files import is_dump_file, open_source

_MAKE = "make some with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
_WHOLE = (
    "give the folder with all files of the program, with *after_optimizations.txt and "
    "*after_optimizations-buffer-assignment.txt among them"
)
_MODULE = re.compile(r"^module_\d+\.[^.]+\.")


def nothing_found(path: Path) -> str:
    """Why ingest finds nothing under a path, and what to do: one line, told by names alone."""
    _, why = nothing_among(path)
    return why


def nothing_among(path: Path) -> tuple[int, str]:
    """How many files there are under a path where ingest finds nothing, and why it does not.

    No file is opened but archives: one of the files may be the warehouse.
    """
    if is_dump_file(path):
        return 1, f"{path}: {_no_dump(path)}"
    kinds: Counter[str] = Counter()
    instead: dict[str, str] = {}
    count = 0

    def passed_over(file: PurePosixPath, size: int) -> None:
        nonlocal count
        count += 1
        known, other = formats.by_name(file.name), other_by_name(file.name)
        if known is not None:
            kinds[known.format.title] += 1
            instead[known.format.title] = _WHOLE
        elif other is not None:
            kinds[other.title] += 1
            instead[other.title] = other.instead

    with ExitStack() as cleanup:
        for _ in open_source(path, lambda name: False, cleanup, lambda why: None, passed_over):
            pass
    nothing = f"{path}: there are no memory dumps of XLA here"
    if not count:
        return 0, f"{nothing}, and nothing else: {_MAKE}"
    if not kinds:
        return count, f"{nothing}: {_MAKE}"
    found = kinds.most_common()
    listed = ", ".join(f"{title} ({counted})" for title, counted in found[:3])
    more = ", …" if len(found) > 3 else ""
    return count, f"{nothing}, but {listed}{more}: {instead[found[0][0]]}"


def _no_dump(path: Path) -> str:
    """Why one file makes no dump, and which to give in its place."""
    known, other = formats.by_name(path.name), other_by_name(path.name)
    if known is not None:
        return f"{known.format} alone makes no dump: {_WHOLE}"
    if other is None or other.name == "log":
        return (
            "this is not a memory dump of XLA, nor a log with an out-of-memory message: give a "
            "dump folder, archive or dump file, or such a log"
        )
    holds = f"this holds {other.title}, which is no memory dump"
    if isinstance(path, Path) and (match := _MODULE.match(path.name)) is not None:
        beside = sorted(
            file.name
            for file in path.parent.glob(f"{glob.escape(match[0])}*")
            if (found := formats.by_name(file.name)) and found.format in formats.MAKES_A_DUMP
        )
        if beside:
            return f"{holds}: give {path.with_name(beside[-1])}, or the whole folder"
    return f"{holds}: {other.instead}"
