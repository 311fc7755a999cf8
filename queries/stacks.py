"""The peak by stack: Python's frames, or a module's path. Flame graphs are drawn from it.

A stack begins with the outermost frame and ends with the operation, or with an argument's name. The
bytes of all stacks add up to the peak.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from ..schema.readable import one_line
from ..schema.store import Store
from ..xla.frames import is_library
from ..xla.scopes import folds
from .catalogue import statement

# What a stack is made of: Python's frames, with modules where no frame is the user's; or modules
# alone.
WAYS = ("source", "scope")
# An argument's name in its parts: p, ['layers'], [0], .mu
PART_OF_NAME = re.compile(r"\[[^\[\]]*\]|[.]?[^.\[]+|.", re.DOTALL)
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class Frame(NamedTuple):
    """A step of a stack.

    kind: mine or library of a Python frame; else module, operation, or `other` for what has no
    code, such as arguments; file and line: of a Python frame.
    """

    name: str
    kind: str
    file: str = ""
    line: int | None = None

    @property
    def text(self) -> str:
        """For example `train_step (train.py:9)`."""
        if not self.file:
            return self.name
        short = re.split(r"[/\\]", self.file)[-1]
        return f"{self.name} ({short}:{self.line or '?'})"


Stacks = Mapping[tuple[Frame, ...], int]


def peak_rows(store: Store, module_id: int, memory_space: int) -> Sequence[Mapping[str, Any]]:
    """What fills a memory space at the peak of a module: the rows that stacks are made of."""
    rows: list[dict[str, Any]] = store.rows(
        statement("stacks"), [module_id, memory_space]
    ).to_pylist()
    return rows


def peak_stacks(
    rows: Sequence[Mapping[str, Any]], by: str = "source", *, unfold: bool = False
) -> Stacks:
    """The stacks of `peak_rows` with their bytes, the largest first.

    by: one of WAYS. Unless `unfold`, repeated layers are one step.
    """
    own_files = {row["source_file"] for row in rows} - {None}
    files = {frame["file"] for row in rows for frame in row["frames"]} - {None}
    library = {file for file in files - own_files if is_library(file)}
    modules = _steps_of((row["fold"], row["module_path"]) for row in rows)
    arguments = _argument_steps({row["argument"] for row in rows} - {None})
    found: dict[tuple[Frame, ...], int] = defaultdict(int)
    for row in rows:
        name = row["argument"]
        if row["kind"].endswith("arguments"):
            path = _parts(name or "") if unfold else arguments.get(name, [])
            steps = (f"({row['kind']})", row["role"] or "(not known)", *path)
            stack = tuple(Frame(step, "other") for step in steps)
        else:
            path = row["module_path"].split("/") if unfold else modules[row["module_path"]]
            stack = (*_frames(row, by, path, library), Frame(row["operation"], "operation"))
        found[stack] += row["counted_bytes"]
    return dict(sorted(found.items(), key=lambda stack: -stack[1]))


def _frames(
    row: Mapping[str, Any], by: str, path: Sequence[str], library: set[str]
) -> tuple[Frame, ...]:
    """The frames of a row's stack without its operation."""
    if by == "source" and row["source_file"] is not None:
        frames = tuple(
            Frame(
                frame["name"] or "?",
                "library" if frame["file"] in library else "mine",
                frame["file"] or "?",
                frame["line"],
            )
            for frame in row["frames"]
        )
        # Old dumps have the innermost line alone.
        return frames or (Frame("?", "mine", row["source_file"], row["source_line"]),)
    modules = tuple(Frame(step, "module") for step in path if step)
    if by == "source" and row["library_file"] is not None and not modules:
        return (Frame("?", "library", row["library_file"], row["library_line"]),)
    return modules or (Frame(f"({row['kind']})", "other"),)


def _parts(name: str) -> list[str]:
    """The steps of an argument's name; a key of text stands for itself.

    >>> _parts("p['layers'][0].mu")
    ['p', 'layers', '[0]', '.mu']
    """
    return [re.sub(r"^\['(.*)'\]$", r"\1", part) for part in PART_OF_NAME.findall(name)]


def _argument_steps(names: Iterable[str]) -> dict[str, list[str]]:
    """The steps of each argument's name, folded."""
    # A key may hold a slash.
    paths = {name: "/".join(part.replace("/", "\0") for part in _parts(name)) for name in names}
    folded = _steps_of(zip(folds(list(paths.values())), paths.values(), strict=True))
    return {
        name: [step.replace("\0", "/") for step in folded[path]] for name, path in paths.items()
    }


def _steps_of(folded_paths: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The steps of each path as they are shown, by path: those of a fold are the same."""
    pairs = list(folded_paths)
    shown = folded_steps(pairs)
    return {path: shown[fold, path] for fold, path in pairs}


def folded_steps(folded_paths: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """The steps of paths as `owners` shows them; given are pairs of a fold and its path.

    >>> pairs = [("net/block_{}/mlp", "net/block_0/mlp"), ("net/block_{}/mlp", "net/block_3/mlp")]
    >>> folded_steps(pairs)["net/block_{}/mlp", "net/block_3/mlp"] == [
    ...     "net", "block_{0..3} \N{MULTIPLICATION SIGN}2", "mlp"]
    True
    """
    split = {pair: tuple(text.split("/") for text in pair) for pair in folded_paths}
    layers: dict[str, set[str]] = defaultdict(set)
    layer_of: dict[tuple[str, str], str] = {}
    for pair, (steps, path) in split.items():
        depth = next((place for place, step in enumerate(steps) if "{}" in step), None)
        if depth is not None:
            before, _, after = steps[depth].partition("{}")
            around = layer_of[pair] = "/".join(steps[: depth + 1])
            layers[around].add(path[depth][len(before) : len(path[depth]) - len(after)])
    return {
        pair: _shown(steps, path, layers[layer_of[pair]]) if pair in layer_of else path
        for pair, (steps, path) in split.items()
    }


def _shown(fold: list[str], path: list[str], layers: set[str]) -> list[str]:
    if len(layers) == 1:
        return path
    numbers = sorted(layers, key=lambda number: (len(number), number))
    span = f"{{{numbers[0]}..{numbers[-1]}}}"
    shown = [step.replace("{}", span) for step in fold]
    first = next(place for place, step in enumerate(fold) if "{}" in step)
    shown[first] += f" \N{MULTIPLICATION SIGN}{len(layers)}"
    return shown


# What other programs draw flame graphs from.


def collapsed(stacks: Stacks) -> list[str]:
    """A line a stack: its steps, apart by `;`, a blank, and its bytes."""
    return [
        f"{';'.join(one_line(frame.text).replace(';', ',') for frame in stack)} {size}"
        for stack, size in stacks.items()
    ]


def speedscope(stacks: Stacks, title: str) -> dict[str, Any]:
    """The stacks as a file of speedscope's own format: a profile whose weights are bytes."""
    frames = list(dict.fromkeys(frame for stack in stacks for frame in stack))
    numbers = {frame: number for number, frame in enumerate(frames)}
    return {
        "$schema": _SCHEMA,
        "name": title,
        "exporter": "memhouse",
        "shared": {"frames": list(starmap(_as_frame, frames))},
        "profiles": [
            {
                "type": "sampled",
                "name": title,
                "unit": "bytes",
                "startValue": 0,
                "endValue": sum(stacks.values()),
                "samples": [[numbers[frame] for frame in stack] for stack in stacks],
                "weights": list(stacks.values()),
            }
        ],
    }


def _as_frame(name: str, kind: str, file: str, line: int | None) -> dict[str, Any]:
    place = {"file": file, "line": line}
    return {"name": name, **{key: value for key, value in place.items() if value}}
