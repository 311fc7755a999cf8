"""The files that a recorded command made XLA dump, under the names that ingest knows."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

# XLA puts the time in microseconds before the names, if asked to.
_TIMED = re.compile(r"(?P<time>\d{12,20})\.(?P<name>module_(?P<number>\d+)\..*)")
_STAGE = re.compile(
    r"(?P<stem>module_\d+\..*?)\."
    r"(?P<stage>(?:(?:cpu|gpu|sm_\d+(?:\.\d+)?[a-z]*_gpu|gfx\w+_gpu)_)?after_optimizations"
    r"|before_optimizations)(?P<rest>[-._].*)"
)
_PROGRAM = re.compile(r"\.(txt|hlo\.pb)(\.gz)?")

_State = dict[Path, tuple[int, int]]


def remember(folder: Path) -> _State:
    """The files that are in a folder, with their times and sizes."""
    found: _State = {}
    for file in _files(folder):
        with suppress(OSError):  # It has vanished.
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size)
    return found


def link_new(folder: Path, before: _State, to: Path) -> None:
    """Link what is new in the user's own folder, or has changed there, into a folder."""
    for file, state in remember(folder).items():
        if before.get(file) != state:
            link = to / file.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)


def tell_processes_apart(folder: Path) -> None:
    """Take the times out of the files' names.

    The files of a module have one time. Modules of one number and name are of different
    processes: the first one's files stay, the second one's move to the folder `2`, and so on.
    The order is that of their size, because the order of the times is chance.
    """
    timed: dict[tuple[str, str], list[tuple[str, Path]]] = defaultdict(list)
    untimed: list[Path] = []
    for file in _files(folder, deep=False):
        match = _TIMED.fullmatch(file.name)
        if match is None:
            untimed.append(file)
        else:
            timed[match["time"], match["number"]].append((match["name"], file))
    copies: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (time, number), files in timed.items():
        copies[_stem([name for name, _ in files])].append((_size(files), f"{time}.{number}"))
    for stem, found in copies.items():
        for copy, (_, key) in enumerate(sorted(found), 1):
            place = folder if copy == 1 else folder / str(copy)
            place.mkdir(exist_ok=True)
            time, _, number = key.partition(".")
            for name, file in timed[time, number]:
                file.rename(place / name)
            for file in untimed if copy > 1 else ():
                # XLA writes the flags without a time; they are the same for all processes.
                if file.name == f"{stem}.debug_options":
                    shutil.copy2(file, place)


def cached_modules(folder: Path) -> dict[Path, set[str]]:
    """The stems of the programs that JAX took from its persistent cache, by folder.

    Of such a program XLA dumps the final stage alone, without a target in the file's name and
    without a buffer assignment.
    """
    stages: dict[tuple[Path, str], set[bool]] = defaultdict(set)
    for file in _files(folder):
        match = _STAGE.fullmatch(file.name)
        if match is not None:
            is_final = match["stage"] == "after_optimizations"
            is_program = _PROGRAM.fullmatch(match["rest"]) is not None
            stages[file.parent, match["stem"]].add(is_final and is_program)
    cached: dict[Path, set[str]] = defaultdict(set)
    for (place, stem), found in stages.items():
        if found == {True}:
            cached[place].add(stem)
    return cached


def _files(folder: Path, *, deep: bool = True) -> Iterator[Path]:
    found = folder.rglob("*") if deep else folder.iterdir()
    return (path for path in sorted(found) if path.is_file())


def _stem(names: Sequence[str]) -> str:
    """What the names of a module's files have in common."""
    stages = filter(None, map(_STAGE.fullmatch, names))
    return next((match["stem"] for match in stages), names[0].rpartition(".")[0])


def _size(files: Sequence[tuple[str, Path]]) -> int:
    """The size of a module's files of its program."""
    return sum(file.stat().st_size for name, file in files if _STAGE.fullmatch(name))
