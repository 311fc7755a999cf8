"""The ledger of a change: which bytes of the peak came, went, grew and shrank, and with what."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...xla.opcodes import unnumbered
from .sides import Pair, Part

# A line, or another owner, whose change is smaller than this share of what changes most is part
# of the remainder.
_LEAST_SHARE = 0.02
# Other sizes scale with a dimension if they do so up to this share: compilers pad.
_ABOUT = 0.01
# What came and went at another moment is one exchange, if the sizes differ up to this share.
_EXCHANGED = 0.1
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_ROLES = {
    "activation": "saved for backward",
    "gradient": "gradients",
    "optimizer state": "optimizer state",
    "gathered weight": "gathered weights",
    "weight": "weights",
    "workspace": "workspace",
}
_CATEGORIES = {"argument": "arguments", "output": "outputs", "constant": "constants"}


@dataclass(frozen=True)
class Difference:
    """What one owner holds at the peak of both sides, in one shape or another; None: nothing."""

    a: Part | None
    b: Part | None

    @property
    def change(self) -> int:
        """By how many bytes the peak changes with it."""
        return (self.b.counted_bytes if self.b else 0) - (self.a.counted_bytes if self.a else 0)

    @property
    def parts(self) -> list[Part]:
        """Both sides, the second first, without None."""
        return [part for part in (self.b, self.a) if part is not None]

    @property
    def category(self) -> str:
        """The category, which both sides share."""
        return self.parts[0].category

    @property
    def sizes(self) -> set[tuple[int, int]]:
        """The dimensions that differ, if both sides are arrays of one type and rank."""
        if self.a is None or self.b is None:
            return set()
        (a_type, a), (b_type, b) = (_array(part.shape) for part in (self.a, self.b))
        if a_type != b_type or len(a) != len(b):
            return set()
        return {(one, other) for one, other in zip(a, b, strict=True) if one != other}

    @property
    def ratio(self) -> float:
        """How many times as many elements the second side's buffers have; 0 if that says nothing.

        Where several dimensions grew alike, how much one of them did.
        """
        if self.a is None or self.b is None:
            return 0
        (a_type, a), (b_type, b) = (_array(part.shape) for part in (self.a, self.b))
        if a_type != b_type or not (prod(a) and prod(b)):
            return 0
        ratios = {other / one for one, other in self.sizes}
        return ratios.pop() if len(ratios) == 1 else prod(b) / prod(a)


Explains = Callable[[Difference], bool]


def _array(shape: str | None) -> tuple[str, list[int]]:
    match = _ARRAY.fullmatch(shape or "")
    if match is None:
        return "", []
    return match[1], [int(size) for size in match[2].split(",") if size]


def differences(pair: Pair) -> list[Difference]:
    """What differs at the peaks; the changes add up to the change of the peak.

    Parts of one owner, operation and shape are one. What is left of an owner is matched by the
    number of its elements or by its rank, the largest first; then what is left of a line. What
    is left of as many elements in one role is another instruction's at another moment.
    """
    a, b = (_summed(side.parts) for side in (pair.a, pair.b))
    matched = [Difference(a[key], b[key]) for key in a if key in b]
    a_left, b_left = (
        [side[key] for key in side if key not in other] for side, other in ((a, b), (b, a))
    )
    for likeness, measure in (
        (_same_owner, _elements),
        (_same_owner, _rank),
        (_same_line, _elements),
        (_same_role, _elements),
        (_same_line, _rank),
    ):
        pairs, a_left, b_left = _paired(a_left, b_left, likeness, measure)
        matched += pairs
    matched += [Difference(part, None) for part in a_left]
    matched += [Difference(None, part) for part in b_left]
    return [difference for difference in matched if difference.change]


def _summed(parts: Iterable[Part]) -> dict[tuple[object, ...], Part]:
    """The parts by owner and shape; of several, the largest describes the sum."""
    sums: dict[tuple[object, ...], Part] = {}
    for part in parts:
        key = (*_same_owner(part), part.shape)
        if key in sums:
            largest = max(sums[key], part, key=lambda part: part.counted_bytes)
            total = sums[key].counted_bytes + part.counted_bytes
            part = replace(largest, counted_bytes=total, buffers=sums[key].buffers + part.buffers)
        sums[key] = part
    return sums


def _same_owner(part: Part) -> tuple[object, ...]:
    return (part.category, part.owner or part.role, part.operation)


def _same_line(part: Part) -> tuple[object, ...]:
    return (part.category, part.source or part.owner)


def _same_role(part: Part) -> tuple[object, ...]:
    return (part.category, part.role, part.pass_ == "argument", _array(part.shape)[0])


def _paired(
    a: Sequence[Part],
    b: Sequence[Part],
    likeness: Callable[[Part], object],
    measure: Callable[[Part], int | None],
) -> tuple[list[Difference], list[Part], list[Part]]:
    """The parts that are alike, and what is left of both sides."""
    places: dict[object, list[Part]] = {}
    for part in sorted(b, key=_size):
        places.setdefault((likeness(part), measure(part)), []).append(part)
    pairs, left = [], []
    for part in sorted(a, key=_size, reverse=True):
        others = places.get((likeness(part), measure(part)))
        if others and measure(part) is not None:
            pairs.append(Difference(part, others.pop()))
        else:
            left.append(part)
    return pairs, left, [part for parts in places.values() for part in parts]


def _size(part: Part) -> int:
    return part.counted_bytes


def _elements(part: Part) -> int | None:
    return prod(_array(part.shape)[1]) if part.shape else None


def _rank(part: Part) -> int | None:
    return len(_array(part.shape)[1]) if part.shape else None


# Which differences a fact explains.


def of_owners(names: Iterable[str]) -> Explains:
    """What holds these arguments, wherever it is."""
    owners = {unnumbered(name) for name in names}
    return lambda difference: any(
        part.pass_ == "argument" and part.owner in owners for part in difference.parts
    )


def resized(sizes: Iterable[tuple[int, int]]) -> Explains:
    """What differs in these sizes of dimensions alone."""
    known = set(sizes)
    return lambda difference: bool(difference.sizes) and difference.sizes <= known


def scaled(ratio: float) -> Explains:
    """What is so many times larger."""
    return lambda difference: is_scaled(difference, [ratio])


def is_scaled(difference: Difference, ratios: Iterable[float]) -> bool:
    """Whether the second side is about so many times larger."""
    return difference.ratio not in (0, 1) and any(
        abs(difference.ratio - ratio) <= _ABOUT * ratio for ratio in ratios
    )


def of_step(step: str, sign: int) -> Explains:
    """What stands in scopes with this step, and changes in the direction of `sign`."""

    def explains(difference: Difference) -> bool:
        return difference.change * sign > 0 and any(
            part.owner is not None and step in re.split(r"[/']", part.owner)
            for part in difference.parts
        )

    return explains


def of_category(category: str, sign: int) -> Explains:
    """What is of this category, and changes in the direction of `sign`."""
    return lambda difference: difference.category == category and difference.change * sign > 0


def of_residuals(difference: Difference) -> bool:
    """What a side keeps for the backward pass, or computes again there."""
    return difference.category == "temp" and any(
        part.role == "activation" or part.pass_ == "rematerialised" for part in difference.parts
    )


def of_temps(difference: Difference) -> bool:
    """What lies in temps, and does not only hold an argument."""
    return all(part.category == "temp" and part.pass_ != "argument" for part in difference.parts)


def of_lines(lines: Iterable[str]) -> Explains:
    """What these lines compute."""
    known = frozenset(lines)
    return lambda difference: (
        of_temps(difference) and any(part.source in known for part in difference.parts)
    )


def of_type(new: str | None, gone: str | None) -> Explains:
    """What is computed in the new type, or no longer in another one."""

    def explains(difference: Difference) -> bool:
        types = {_array(part.shape)[0] for part in difference.parts}
        if not of_temps(difference) or not all("f" in type_ for type_ in types):
            return False
        if len(types) > 1:
            return True
        is_wanted = types == {new} if new is not None else gone not in types
        return is_wanted == (difference.change > 0)

    return explains


def any_of(*rules: Explains) -> Explains:
    """What one of the rules explains."""
    return lambda difference: any(rule(difference) for rule in rules)


# Terms: the differences of a fact together, and of a line where no fact explains them.


@dataclass(frozen=True)
class Entry:
    """Bytes of the ledger, and the line and role of most of them."""

    change: int
    source: str | None
    role: str | None


def entry(differences: Sequence[Difference]) -> Entry:
    """The sum of the differences."""
    change = sum(difference.change for difference in differences)
    return Entry(change, *(_most(differences, name, change) for name in ("source", "role")))


def _most(differences: Sequence[Difference], name: str, change: int) -> str | None:
    """The line or role of most bytes, in the direction of the change."""
    sums: dict[str | None, int] = {}
    for difference in differences:
        key = next((found for part in difference.parts if (found := getattr(part, name))), None)
        sums[key] = sums.get(key, 0) + difference.change
    sign = -1 if change < 0 else 1
    largest = max(sums, key=lambda key: (sums[key] * sign, key or ""), default=None)
    return largest if largest is not None and 2 * sums[largest] * sign >= change * sign else None


def by_owner(differences: Sequence[Difference]) -> Iterator[tuple[str, str, Entry]]:
    """What no fact explains, by line: in words, in few, and the bytes; small changes as a last row.

    Without a line the scope owns, or the argument.
    """
    groups: dict[object, list[Difference]] = {}
    for difference in differences:
        groups.setdefault(_owner(difference), []).append(difference)
    gross = max((abs(entry(group).change) for group in groups.values()), default=0)
    rest = groups.pop(None, [])
    worded = []
    for group in groups.values():
        found = entry(group)
        if abs(found.change) > _LEAST_SHARE * gross:
            worded.append((*_words(group), found))
        else:
            rest += group
    yield from sorted(worded, key=lambda row: -abs(row[2].change))
    if sum(difference.change for difference in rest):
        yield "", "", entry(rest)


def exchanged(
    differences: Sequence[Difference], ratio: float = 1
) -> tuple[list[Difference], list[Difference]]:
    """The workspace that came and went as the peak moved; and the rest.

    What came is about `ratio` times as large as what went for it.
    """
    came, went = (
        sorted((d for d in differences if of_temps(d) and d.change * sign > 0), key=_change)
        for sign in (1, -1)
    )
    pairs: list[Difference] = []
    for gone in went:
        size = -gone.change * ratio
        partner = next((d for d in reversed(came) if _is_exchange(d.change, size)), None)
        if partner is not None:
            came.remove(partner)
            pairs += [partner, gone]
    return pairs, [difference for difference in differences if difference not in pairs]


def _change(difference: Difference) -> int:
    return difference.change


def _is_exchange(came: float, went: float) -> bool:
    return abs(came - went) <= _EXCHANGED * max(came, went)


def _owner(difference: Difference) -> object:
    """Whose the bytes are; None if nothing tells."""
    part = max(difference.parts, key=_size)
    if part.pass_ == "argument" and part.category == "temp":
        return part.pass_
    owner = part.source or part.owner or part.operation
    return None if owner is None else (part.category, owner.split("[")[0])


def _words(group: Sequence[Difference]) -> tuple[str, str]:
    """What the bytes are, in words and in few: the largest's role, operation and shape."""
    sign = -1 if entry(group).change < 0 else 1
    largest = max(group, key=lambda difference: difference.change * sign)
    part = max(largest.parts, key=_size)
    if part.category != "temp":
        what = _CATEGORIES.get(part.category, "other allocations")
        return f"{what}: {part.owner or part.operation or part.shape}".replace("#", "*"), what
    if part.pass_ == "argument":
        return "copies of arguments", ""
    what, name = _ROLES.get(part.role or "", "temps"), part.operation or part.owner or "not named"
    return f"{what}: {name} {part.shape}" if part.shape else f"{what}: {name}", name
