"""What a test's program may take, and what it needs at its peak, with the lines that own it."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..queries.checking.policy import Threshold, parse_growth, parse_size
from ..queries.read_module import ReadModule
from ..schema.readable import human_bytes

# The marker's arguments: what a program may take, and by how much it may grow.

# The name by which users know memory space 0 of any device.
MAIN_SPACE = "hbm"
# The memory that kernels hold for themselves, beside the arrays that XLA puts there.
_KERNELS_SPACE = "vmem"


@dataclass(frozen=True)
class Limit:
    """What the programs of a test may take in one memory space.

    most: the largest peak; growth: the most that the peak may lie above the one before; space:
    hbm for memory space 0, or a space's name or number; workload: which program of a warehouse
    is the one before, where several have its name.
    """

    most: Threshold | None
    growth: Threshold | None
    space: str
    workload: str | None


def read_limits(markers: Iterable[pytest.Mark]) -> list[Limit]:
    """The limits of one test: of each memory space the closest marker.

    markers: the closest to the test first. Raises ValueError, and TypeError as a call does.
    """
    limits: dict[str, Limit] = {}
    for marker in markers:
        limit = limit_memory(*marker.args, **marker.kwargs)
        limits.setdefault(limit.space, limit)
    return list(limits.values())


def limit_memory(
    most: str | int | None = None,
    *,
    space: str | int = MAIN_SPACE,
    growth: str | None = None,
    workload: str | None = None,
) -> Limit:
    """The arguments as a test writes them. Raises ValueError, and TypeError as a call does."""
    if most is None and growth is None:
        raise ValueError('nothing is limited: write limit_memory("2 GiB") or growth="2%"')
    if not isinstance(space, str | int) or isinstance(space, bool):
        raise ValueError(f'space is a name such as "hbm" or a number, found {space!r}')
    if growth is not None and not isinstance(growth, str):
        raise ValueError(f'growth is a text such as "2%" or "64 MiB", found {growth!r}')
    if workload is not None and growth is None:
        raise ValueError("workload says what growth is held against: give growth too")
    return Limit(
        _size(most),
        None if growth is None else parse_growth(growth),
        MAIN_SPACE if str(space) == "0" else str(space).lower(),
        workload,
    )


def _size(most: str | int | None) -> Threshold | None:
    match most:
        case None:
            return None
        case str():
            return parse_size(most)
        case int() if most > 0 and not isinstance(most, bool):
            return Threshold(most, False, f"{most} B")
    raise ValueError(f'a limit is a size such as "2 GiB", or bytes, found {most!r}')


# What a test's program needs at its peak, and the lines of code that own it.

_ARGUMENTS = "(arguments)"
_LONGEST_CODE = 60


@dataclass(frozen=True)
class Line:
    """A line of code that owns some of the peak: where it is now, and what it says.

    The text, `model.py: h = x @ w`, tells a line from others after lines above it were added. An
    owner that is no line of a file that can be read has the same name as both: an argument, say.
    """

    where: str
    text: str
    size_bytes: int


@dataclass(frozen=True)
class Measured:
    """A program's peak in one memory space, in bytes, with its owners, the largest first.

    program: its name; if a test has several of one name, the second is `jit_step #2`. is_kernel: a
    kernel takes more for itself than all arrays in the memory space, and this is its size.
    """

    program: str
    platform: str
    space: str
    space_number: int
    peak_bytes: int
    is_estimate: bool
    lines: tuple[Line, ...]
    is_kernel: bool = False

    @property
    def key(self) -> str:
        """What tells it from the other programs of its test."""
        return f"{self.program} on {self.platform}, {self.space}"

    @property
    def peak(self) -> str:
        """The peak as a person reads it."""
        mark = "≈" if self.is_estimate else ""
        size = human_bytes(self.peak_bytes)
        when = "in a kernel" if self.is_kernel else "at the peak"
        return f"{mark}{size} of {self.space} {when}, on {self.platform}"

    @property
    def owners(self) -> dict[str, int]:
        """The bytes of each owner by its text: lines that say the same are one."""
        return _sums((line.text, line.size_bytes) for line in self.lines)


def platform_in(key: str) -> str:
    """The platform that a program's key names."""
    return key.rpartition(" on ")[2].partition(", ")[0]


def measure_all(modules: Iterable[ReadModule], space: str, root: Path) -> list[Measured]:
    """The peaks of a test's modules in a memory space. Raises ValueError if one has no such space.

    root: the project's folder, for the names of files.
    """
    seen: Counter[str] = Counter()
    found = []
    for module in modules:
        seen[module.name] += 1
        number = seen[module.name]
        name = module.name if number == 1 else f"{module.name} #{number}"
        found.append(_measure(module, name, space, root))
    return found


def _measure(module: ReadModule, name: str, space: str, root: Path) -> Measured:
    rows = module.peaks().arrow().to_pylist()
    named = {_space(row["memory_space"], row["space"]): row for row in rows}
    numbered = {str(row["memory_space"]): row for row in rows}
    row = named.get(space) or numbered.get(space)
    arrays = 0 if row is None else row["peak_bytes"] or 0
    kernel = _largest_kernel(module) if space == _KERNELS_SPACE else None
    if kernel is not None and kernel["scoped_bytes"] > arrays:
        return Measured(
            name,
            module.platform or "an unknown platform",
            space,
            kernel["memory_space"],
            kernel["scoped_bytes"],
            kernel["is_lower_bound"],
            tuple(_lines({kernel["source"] or kernel["kernel"]: kernel["scoped_bytes"]}, root)),
            is_kernel=True,
        )
    if row is None or row["peak_bytes"] is None:
        known = ", ".join(there for there, each in named.items() if each["peak_bytes"] is not None)
        raise ValueError(
            f"{module.name} has no peak in memory space {space!r}, only in: {known or 'none'}"
        )
    if row["peak_upper_bytes"] is not None:
        raise ValueError(
            f"{module.name} has no schedule, so its peak is only known to lie between two "
            "estimates: give the compiled program"
        )
    number = row["memory_space"]
    return Measured(
        name,
        module.platform or "an unknown platform",
        _space(number, row["space"]),
        number,
        row["peak_bytes"],
        module.origin == "estimated",
        tuple(_lines(_owners(module, number), root)),
    )


def _largest_kernel(module: ReadModule) -> dict[str, Any] | None:
    rows = module.kernels().arrow().to_pylist()
    sized = [row for row in rows if row["space"] == _KERNELS_SPACE and row["scoped_bytes"]]
    return max(sized, key=lambda row: row["scoped_bytes"], default=None)


def _space(number: int, name: str) -> str:
    return MAIN_SPACE if number == 0 else name


def _owners(module: ReadModule, space: int) -> dict[str, int]:
    """The bytes of each source line and, by its name, of each argument, the largest first."""
    owners = module.owners(space, by="source").arrow().to_pylist()
    sizes = Counter(_sums((each["source"], each["counted_bytes"]) for each in owners))
    if _ARGUMENTS in sizes:
        for buffer in module.buffers(space).arrow().to_pylist():
            if buffer["category"] == "argument" and buffer["op_name"]:
                sizes[f"argument {buffer['op_name']}"] += buffer["counted_bytes"]
                sizes[_ARGUMENTS] -= buffer["counted_bytes"]
    return {owner: size for owner, size in sizes.most_common() if size > 0}


def _sums(sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for owner, size in sizes:
        total[owner] += size
    return dict(total.most_common())


def _lines(owners: dict[str, int], root: Path) -> Iterator[Line]:
    for owner, size in owners.items():
        file, colon, number = owner.rpartition(":")
        if not colon or not number.isdecimal():
            yield Line(owner, owner, size)
            continue
        where = f"{_below(Path(file), root)}:{number}"
        code = _code(file, int(number))
        yield Line(where, f"{Path(file).name}: {code}" if code else where, size)


def _code(file: str, number: int) -> str:
    """What a line of Python says, cut; empty if there is no such file.

    A dump names any file, and the baseline would keep its text: only Python's are opened.
    """
    if not (file.endswith(".py") and Path(file).is_file()):
        return ""
    code = " ".join(linecache.getline(file, number).split())
    return code if len(code) <= _LONGEST_CODE else f"{code[: _LONGEST_CODE - 1]}…"


def _below(file: Path, root: Path) -> str:
    """The file as seen from the project; the last two parts of one that lies elsewhere."""
    if file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return "/".join(file.parts[-2:])
