"""Which dump of a run goes on with which series: rules on two lists of dumps, without SQL.

A series is a program that is followed through the runs of one branch and suite, with at most one
dump a run. Dumps and series of one workload, module name and platform are a group. In most groups
a run has one dump, and there is one series. If there are several, a dump goes on with the series of
the same program, then of the same entry signature, then of the same skeleton, then, with as many
series as dumps, of the same rank; series of the previous run come before older ones. What remains
may be renamed. Any other dump begins a series.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import inf, log
from typing import NamedTuple

Group = tuple[str, str, str | None]


class Dump(NamedTuple):
    """A dump as it is paired; an identity that is None is never equal to another.

    Attributes:
        occurrence: its rank in its group and run.
        signature_id: equal for equal shapes of arguments and results.
        skeleton_id: equal for equal names and ranks of arguments.
        is_tiny: so small that two programs may be equal by chance.
    """

    dump_id: int
    workload: str
    module_name: str
    platform: str | None
    occurrence: int
    program_id: int | None
    signature_id: int | None
    skeleton_id: int | None
    total_bytes: int | None
    is_tiny: bool

    @property
    def group(self) -> Group:
        """Its workload, module name and platform."""
        return self.workload, self.module_name, self.platform

    @property
    def rank(self) -> tuple[str, str, str, int, int]:
        """Sorts the dumps of a run."""
        return self.workload, self.module_name, self.platform or "", self.occurrence, self.dump_id


@dataclass(slots=True)
class Series:
    """A series so far: its id, its last dump and the number of that dump's run.

    Attributes:
        number: its rank among the series that began in its group.
    """

    series_id: int
    number: int
    last: Dump
    run_number: int


class Match(NamedTuple):
    """A dump that goes on with a series; `matched_by` is the rule, one of MATCHES."""

    series: Series
    dump: Dump
    matched_by: str


_Key = Callable[[Dump], Hashable]
# Pairs of indexes into a list of earlier dumps and a list of later ones.
_Pairs = list[tuple[int, int]]
# More than |ln(factor)| of any two 64-bit sizes.
_UNKNOWN_DISTANCE = 64.0


def match_dumps(series: Iterable[Series], dumps: Sequence[Dump], run_number: int) -> list[Match]:
    """The dumps of a run that go on with one of the series.

    Args:
        dumps: all dumps of the run, sorted by `rank`.
        run_number: of the run; series of the run before it were not missing.
    """
    by_group: dict[Group, list[Series]] = {}
    for one in sorted(series, key=lambda one: (one.run_number, one.last.rank)):
        by_group.setdefault(one.last.group, []).append(one)
    matches: list[Match] = []
    unmatched: list[Dump] = []
    for group, in_group in groupby(dumps, key=lambda dump: dump.group):
        matches += _match_group(by_group.get(group, []), list(in_group), run_number, unmatched)
    matched_ids = {match.series.series_id for match in matches}
    leaving = [
        one
        for one in series
        if one.run_number == run_number - 1 and one.series_id not in matched_ids
    ]
    return matches + _match_renamed(leaving, unmatched)


def _match_group(
    series: list[Series], dumps: list[Dump], run_number: int, unmatched: list[Dump]
) -> list[Match]:
    """The matches within a group; dumps without one are appended to `unmatched`."""
    if len(series) == len(dumps) == 1:
        return [Match(series[0], dumps[0], "only")]
    previous = [one for one in series if one.run_number == run_number - 1]
    older = [one for one in series if one.run_number < run_number - 1]
    matches: list[Match] = []
    for name, pair in _RULES:
        for candidates in (previous, older):
            if candidates and dumps:
                pairs = pair([one.last for one in candidates], dumps)
                matches += _take(candidates, dumps, pairs, name)
    unmatched += dumps
    return matches


def _match_renamed(leaving: list[Series], dumps: list[Dump]) -> list[Match]:
    """The series of the previous run that go on under another name."""
    leaving.sort(key=lambda one: one.last.rank)
    matches: list[Match] = []
    for name, key in _RENAMES:
        if leaving and dumps:
            pairs = _pair_equal_counts([one.last for one in leaving], dumps, key)
            matches += _take(leaving, dumps, pairs, name)
    return matches


def _take(series: list[Series], dumps: list[Dump], pairs: _Pairs, rule: str) -> list[Match]:
    """The matches at these pairs of indexes, which are removed from both lists."""
    matches = [Match(series[i], dumps[k], rule) for i, k in pairs]
    for index in sorted((i for i, _ in pairs), reverse=True):
        del series[index]
    for index in sorted((k for _, k in pairs), reverse=True):
        del dumps[index]
    return matches


def _pair_programs(before: Sequence[Dump], after: Sequence[Dump]) -> _Pairs:
    """Pair equal programs in order: those of one program cannot be distinguished."""
    groups = _group_by_key(before, after, lambda dump: dump.program_id)
    return [pair for a, b in groups for pair in zip(a, b, strict=False)]


def _pair_signatures(before: Sequence[Dump], after: Sequence[Dump]) -> _Pairs:
    return _pair_by_size(before, after, lambda dump: dump.signature_id)


def _pair_skeletons(before: Sequence[Dump], after: Sequence[Dump]) -> _Pairs:
    return _pair_by_size(before, after, lambda dump: dump.skeleton_id)


def _pair_all_in_order(before: Sequence[Dump], after: Sequence[Dump]) -> _Pairs:
    """Pair all in order if there are equally many; otherwise no pair is certain."""
    return [(index, index) for index in range(len(after))] if len(before) == len(after) else []


def _pair_equal_counts(before: Sequence[Dump], after: Sequence[Dump], key: _Key) -> _Pairs:
    """Pair the dumps of each key in order where both sides have equally many."""
    return [
        pair
        for a, b in _group_by_key(before, after, key)
        if len(a) == len(b)
        for pair in zip(a, b, strict=True)
    ]


def _pair_by_size(before: Sequence[Dump], after: Sequence[Dump], key: _Key) -> _Pairs:
    """Pair the dumps of each key in order; where one side has more, by the nearest sizes."""
    pairs: _Pairs = []
    for a, b in _group_by_key(before, after, key):
        if len(a) == len(b):
            pairs += zip(a, b, strict=True)
        else:
            aligned = _align([before[i].total_bytes for i in a], [after[k].total_bytes for k in b])
            pairs += [(a[i], b[k]) for i, k in aligned]
    return pairs


def _group_by_key(
    before: Sequence[Dump], after: Sequence[Dump], key: _Key
) -> list[tuple[list[int], list[int]]]:
    """The indexes in both lists of each key that is in both."""
    indexes: dict[Hashable, tuple[list[int], list[int]]] = {}
    for side, dumps in enumerate((before, after)):
        for index, dump in enumerate(dumps):
            value = key(dump)
            if value is not None:
                indexes.setdefault(value, ([], []))[side].append(index)
    return [(a, b) for a, b in indexes.values() if a and b]


def _align(before: Sequence[int | None], after: Sequence[int | None]) -> _Pairs:
    """Pair all of the shorter list in order, so that sizes change by the smallest factors.

    Dynamic programming: minimal sum of |ln(factor)| over all alignments that keep the order.
    """
    if len(before) > len(after):
        return [(i, k) for k, i in _align(after, before)]
    # costs[k]: the minimal sum if the sizes so far are paired with the first k of `after`.
    costs = [0.0] * (len(after) + 1)
    is_paired: list[list[bool]] = []
    for size in before:
        paired = [cost + _distance(size, other) for cost, other in zip(costs, after, strict=False)]
        costs = list(accumulate(paired, min, initial=inf))
        is_paired.append([later < earlier for earlier, later in pairwise(costs)])
    pairs: _Pairs = []
    end = len(after)
    for i in reversed(range(len(before))):
        while not is_paired[i][end - 1]:
            end -= 1
        end -= 1
        pairs.append((i, end))
    return pairs[::-1]


def _distance(a: int | None, b: int | None) -> float:
    """|ln(a / b)| of two sizes; an unknown size is further away than any known one."""
    return abs(log(a / b)) if a and b else _UNKNOWN_DISTANCE


def _identity(name: str, *others: str, skips_tiny: bool = False) -> _Key:
    """A key of the identity `name` with other columns; None without the identity."""

    def key(dump: Dump) -> Hashable:
        value = getattr(dump, name)
        if value is None or (skips_tiny and dump.is_tiny):
            return None
        return value, *(getattr(dump, other) for other in others)

    return key


# In this order, first for series of the previous run, then for older ones.
_RULES = (
    ("program", _pair_programs),
    ("signature", _pair_signatures),
    ("skeleton", _pair_skeletons),
    ("order", _pair_all_in_order),
)
_RENAMES = (
    ("workload renamed", _identity("program_id", "module_name", "platform")),
    ("module renamed", _identity("program_id", "workload", "platform")),
    ("renamed", _identity("program_id", "platform", skips_tiny=True)),
    ("module renamed", _identity("signature_id", "workload", "platform")),
    ("module renamed", _identity("skeleton_id", "workload", "platform")),
)
MATCHES = tuple(
    dict.fromkeys(["only", *(name for name, _ in _RULES), *(name for name, _ in _RENAMES)])
)
