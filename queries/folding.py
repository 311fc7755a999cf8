"""Folds rows of equal programs on many hosts to one row: `host0 … host7 (8 the same)`."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_Row = TypeVar("_Row")

# A name's only number, or that of the host `host7/decode-v5e`: it tells one host from another.
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*|[^/\d]*/.*)")
# More names, or ranges of names, than these are counted.
_MOST_NAMES = 3


def folded(
    rows: Iterable[_Row], key: Callable[[_Row], Hashable], name: Callable[[_Row], str]
) -> list[tuple[_Row, str]]:
    """The first row of each key in the rows' order, with the names of all rows of this key.

    A key of None is equal to no other.
    """
    groups: dict[Hashable, list[_Row]] = {}
    for row in rows:
        found = key(row)
        groups.setdefault(object() if found is None else found, []).append(row)
    return [(group[0], folded_name([name(row) for row in group])) for group in groups.values()]


def folded_name(names: Sequence[str]) -> str:
    """One name for many: `host0 … host7 (8 the same)`, or `a, b and 6 more (8 the same)`."""
    if len(names) == 1:
        return names[0]
    return f"{listed(names)} ({len(names)} the same)"


def listed(names: Iterable[str]) -> str:
    """Many names in a few words: `host0 … host7`, or `a, b and 6 more`."""
    names = set(names)
    shown = _ranges(sorted(names, key=_by_number))
    if len(shown) > _MOST_NAMES:
        most = _MOST_NAMES - 1
        left = len(names) - sum(count for _, count in shown[:most])
        shown = [*shown[:most], (f"{left} more", left)]
    texts = [text for text, _ in shown]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _ranges(names: Sequence[str]) -> list[tuple[str, int]]:
    """Names and ranges of names that differ in consecutive numbers, with their counts."""
    ranges: list[list[str]] = []
    for name in names:
        if ranges and _follows(ranges[-1][-1], name):
            ranges[-1].append(name)
        else:
            ranges.append([name])
    found: list[tuple[str, int]] = []
    for group in ranges:
        # A range of two is no shorter than its names.
        found += (
            [(f"{group[0]} … {group[-1]}", len(group))]
            if len(group) > 2
            else [(name, 1) for name in group]
        )
    return found


def _follows(name: str, next_name: str) -> bool:
    here, there = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(next_name)
    if here is None or there is None:
        return False
    return (here[1], here[3]) == (there[1], there[3]) and int(there[2]) == int(here[2]) + 1


def _by_number(name: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2]), match[3]) if match else (name, -1, "")
