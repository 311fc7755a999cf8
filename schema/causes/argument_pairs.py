"""Which argument of one program is which of the other, and what arguments are called."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from .sides import Leaf

# `m['layers'][0].w` has the steps m, ['layers'], [0], .w.
_STEP = re.compile(r"\[[^]]*\]|[.]?[^.[]+")
_MOST_NAMES = 3


@dataclass(frozen=True)
class Matched:
    """The arguments of both sides: pairs of one argument, and what only one side has."""

    both: Sequence[tuple[Leaf, Leaf]]
    gone: Sequence[Leaf]
    new: Sequence[Leaf]


def match(a: Sequence[Leaf], b: Sequence[Leaf]) -> Matched:
    """Match arguments by name, else by number.

    Without names, and with unequal numbers, the shapes in order tell which are new.
    """
    if all(leaf.name for leaf in (*a, *b)):
        keys = [_keys((leaf.name, leaf.index) for leaf in side) for side in (a, b)]
    elif len(a) == len(b):
        keys = [_keys((leaf.number, leaf.index) for leaf in side) for side in (a, b)]
    else:
        keys = _by_shape(a, b)
    of_a, of_b = dict(zip(keys[0], a, strict=True)), dict(zip(keys[1], b, strict=True))
    return Matched(
        [(of_a[key], of_b[key]) for key in of_a if key in of_b],
        [of_a[key] for key in of_a if key not in of_b],
        [of_b[key] for key in of_b if key not in of_a],
    )


def _keys(names: Iterable[object]) -> list[tuple[object, int]]:
    """The names, with a number for those that occur more than once."""
    seen: dict[object, int] = {}
    keys = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        keys.append((name, seen[name]))
    return keys


def _by_shape(a: Sequence[Leaf], b: Sequence[Leaf]) -> list[list[tuple[object, int]]]:
    of_a, of_b = ([leaf.shape for leaf in side] for side in (a, b))
    keys: list[list[tuple[object, int]]] = [
        [("a", number) for number in range(len(a))],
        [("b", number) for number in range(len(b))],
    ]
    matcher = SequenceMatcher(None, of_a, of_b, autojunk=False)
    for kind, a_first, a_stop, b_first, b_stop in matcher.get_opcodes():
        if kind == "equal" or a_stop - a_first == b_stop - b_first:
            keys[1][b_first:b_stop] = keys[0][a_first:a_stop]
    return keys


def called(leaf: Leaf) -> str:
    """An argument's name, else its number."""
    return f"{leaf.name or f'argument {leaf.number}'}{leaf.index}"


def roots(leaves: Iterable[Leaf]) -> str:
    """What the arguments' names begin with, the most bytes first: m, v, p.

    If that is one name for several arguments, as much of it as they share.
    """
    paths, sizes = [], dict[str, int]()
    for leaf in leaves:
        paths.append(_STEP.findall(called(leaf)))
        sizes[paths[-1][0]] = sizes.get(paths[-1][0], 0) + leaf.size
    if len(sizes) == 1:
        shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False))
        return "".join(steps[0] for steps in shared)
    names = sorted(sizes, key=lambda name: -sizes[name])
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES])
    return listed if more <= 0 else f"{listed} and {more} more"
