"""What a user asks of a fit, as it is written and as it is meant: the function and its keywords."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ..schema.errors import UsageError

Value = int | float | bool | str
Axis = range | Sequence[Value] | Value
Combination = tuple[str, dict[str, Value]]
_RANGE = re.compile(r"(\d{1,12})\.\.(\d{1,12})")
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)%")


@dataclass(frozen=True)
class Asked:
    """What is to be fitted.

    target, function: the file or module, and the function in it that builds the program;
    axes: its keywords; a range is searched, of a list each value is tried; topologies: what to
    compile for; memory_bytes: of a device that does not say it; budget: at most so many compiles;
    is_exact: the edge to the step, also of large sizes; reserve: the share of the memory that is
    held back; timeout: of one compile, in seconds; most_bytes: of memory for a compiler, by default
    its part of nearly all that the machine has; jobs: how many compile at once; flags: of XLA,
    beside those of the environment.
    """

    target: str
    function: str
    axes: Mapping[str, Axis]
    topologies: Sequence[str]
    memory_bytes: int | None = None
    budget: int | None = None
    is_exact: bool = False
    reserve: float = 0.0
    timeout: float = 900.0
    most_bytes: int | None = None
    jobs: int = 1
    flags: str = ""

    @property
    def name(self) -> str:
        """The label `fit` of the runs: train:build."""
        return f"{Path(self.target).stem}:{self.function}"

    @property
    def searched(self) -> str | None:
        """The keyword whose largest value is searched."""
        return next((name for name, axis in self.axes.items() if isinstance(axis, range)), None)

    def combinations(self) -> Iterator[Combination]:
        """Each topology with each choice of the keywords that are not searched."""
        fixed = {
            name: [axis] if isinstance(axis, Value) else list(axis)
            for name, axis in self.axes.items()
            if name != self.searched
        }
        for topology in self.topologies:
            for values in product(*fixed.values()):
                yield topology, dict(zip(fixed, values, strict=True))


def target_of(build: Callable[..., Any] | str) -> tuple[str, str]:
    """The file and the name of a function, or what a text names. Raises UsageError.

    Another process imports the file, so the function stands at its outermost level.
    """
    if isinstance(build, str):
        return parse_target(build)
    try:
        file = inspect.getsourcefile(build)
    except TypeError:
        file = None
    name = getattr(build, "__qualname__", "")
    if file is None or not Path(file).is_file() or not name.isidentifier():
        raise UsageError(
            "another process imports what builds the program: give a function of a file, or"
            " 'train.py:build'",
            "build",
        )
    return file, name


def parse_target(program: str) -> tuple[str, str]:
    """FILE.py:FUNCTION or MODULE:FUNCTION; the function is `build` if it is not named."""
    target, _, function = program.partition(":")
    if not target.endswith(".py"):
        return target, function or "build"
    path = Path(target).absolute()
    if not path.is_file():
        raise UsageError(f"there is no file {target}", "program")
    return str(path), function or "build"


def parse_axes(words: Sequence[str], grid: Sequence[str], align: int) -> dict[str, Axis]:
    """The keywords in `--batch 1..512 --layers 12` and in `remat=none,full`. Raises UsageError.

    >>> parse_axes(["--batch", "1..64", "--layers", "12"], ["remat=none,full"], 8)
    {'batch': range(8, 65, 8), 'layers': 12, 'remat': ['none', 'full']}
    """
    pairs = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not (equals or rest):
            raise UsageError(f"{word!r} is no keyword with a value: write --batch 1..512")
        pairs.append((name, value if equals else rest.pop(0)))
    for text in grid:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{text!r} is no list of values: write remat=none,full", "grid")
        pairs.append((name, value))
    return {name.replace("-", "_"): _axis(value, align) for name, value in pairs}


def _axis(text: str, align: int) -> Axis:
    if match := _RANGE.fullmatch(text):
        first, last = int(match[1]), int(match[2])
        return range(-(-max(first, 1) // align) * align, last + 1, align)
    if ".." in text:
        raise UsageError(f"{text!r} is no range of sizes: write 1..512")
    values = [_value(part) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _value(text: str) -> Value:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def parse_share(text: str) -> float:
    """The share in a text such as 2%. Raises UsageError.

    >>> parse_share("2%")
    0.02
    """
    match = _SHARE.fullmatch(text.replace(" ", ""))
    if match is None:
        raise UsageError(f"{text!r} is no share of the memory: write 2%", "reserve")
    return float(match[1]) / 100
