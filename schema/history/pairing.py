"""Which dump of a run follows which chain: pairs by one property, each a pure function.

The dumps and the chains' last dumps are in order of their runs, and of their places in a run.
A property that is null is never equal to another.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, pairwise
from math import inf, log
from typing import NamedTuple


class Dump(NamedTuple):
    """A dump as the chains see it.

    run_number: of its run in the lineage; occurrence: its place in its group; signature_id:
    equal for equal entry signatures; is_tiny: so small that programs are equal by chance;
    is_estimated: of its figures, None without figures; health: status, and whether XLA ran out
    of memory.
    """

    run_number: int
    dump_id: int
    workload: str
    module_name: str
    platform: str | None
    occurrence: int
    module_id: int | None
    program_id: int | None
    reader_version: int | None
    signature_id: int | None
    skeleton_id: int | None
    total_bytes: int | None
    is_tiny: bool
    is_estimated: bool | None
    health: str

    @property
    def group(self) -> "Group":
        """Dumps of one group are of one program, unless a run has several of its name."""
        return self.workload, self.module_name, self.platform

    @property
    def place(self) -> tuple[object, ...]:
        """Its place in the order of runs, groups and dumps of one group."""
        group = self.workload, self.module_name, self.platform or ""
        return self.run_number, *group, self.occurrence, self.dump_id


Group = tuple[str, str, str | None]
Key = Callable[[Dump], Hashable]
# Pairs of places: in the sequence of chains' last dumps, and in that of dumps.
Pairs = list[tuple[int, int]]
# More than |ln(factor)| of any two 64-bit sizes.
_UNKNOWN = 64.0


def by_program(before: Sequence[Dump], now: Sequence[Dump]) -> Pairs:
    """Pair the k-th of a program with the k-th: equal programs cannot be told apart."""
    places = _of_equal_key(before, now, lambda dump: dump.program_id)
    return [pair for a, b in places for pair in zip(a, b, strict=False)]


def by_signature(before: Sequence[Dump], now: Sequence[Dump]) -> Pairs:
    """Pair those of equal shapes of arguments and results, aligned by size."""
    return _aligned_by(before, now, lambda dump: dump.signature_id)


def by_skeleton(before: Sequence[Dump], now: Sequence[Dump]) -> Pairs:
    """Pair those of equal names and ranks of arguments, aligned by size."""
    return _aligned_by(before, now, lambda dump: dump.skeleton_id)


def in_order(before: Sequence[Dump], now: Sequence[Dump]) -> Pairs:
    """Pair all in order if there are as many; otherwise no pair is certain."""
    return [(place, place) for place in range(len(now))] if len(before) == len(now) else []


def of_equal_count(before: Sequence[Dump], now: Sequence[Dump], key: Key) -> Pairs:
    """Pair those of a key in order, if as many went as came: other renames are not certain."""
    return [
        pair
        for a, b in _of_equal_key(before, now, key)
        if len(a) == len(b)
        for pair in zip(a, b, strict=True)
    ]


def _aligned_by(before: Sequence[Dump], now: Sequence[Dump], key: Key) -> Pairs:
    found: Pairs = []
    for a, b in _of_equal_key(before, now, key):
        if len(a) == len(b):
            found += zip(a, b, strict=True)
        else:
            pairs = aligned([before[i].total_bytes for i in a], [now[i].total_bytes for i in b])
            found += [(a[i], b[k]) for i, k in pairs]
    return found


def _of_equal_key(
    before: Sequence[Dump], now: Sequence[Dump], key: Key
) -> list[tuple[list[int], list[int]]]:
    """The places of each key that is on both sides."""
    places: dict[Hashable, tuple[list[int], list[int]]] = {}
    for side, dumps in enumerate((before, now)):
        for place, dump in enumerate(dumps):
            value = key(dump)
            if value is not None:
                places.setdefault(value, ([], []))[side].append(place)
    return [(a, b) for a, b in places.values() if a and b]


def aligned(before: Sequence[int | None], now: Sequence[int | None]) -> Pairs:
    """Pair all of the shorter side in order, so that sizes change by the smallest factors."""
    if len(before) > len(now):
        return [(i, k) for k, i in aligned(now, before)]
    # least[k]: the least sum of |ln(factor)| if the items so far pair with items before k.
    least = [0.0] * (len(now) + 1)
    choices: list[list[bool]] = []
    for size in before:
        paired = [cost + _factor(size, other) for cost, other in zip(least, now, strict=False)]
        least = list(accumulate(paired, min, initial=inf))
        choices.append([later < earlier for earlier, later in pairwise(least)])
    pairs: Pairs = []
    end = len(now)
    for i in reversed(range(len(before))):
        while not choices[i][end - 1]:
            end -= 1
        end -= 1
        pairs.append((i, end))
    return pairs[::-1]


def _factor(a: int | None, b: int | None) -> float:
    """How far apart two sizes are; one that is not known is further away than any that is."""
    return abs(log(a / b)) if a and b else _UNKNOWN
