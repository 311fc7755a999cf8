"""Chains of dumps: which dump follows which from run to run of a lineage."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import inf, log
from typing import NamedTuple

# Which dump of a run follows which chain: pairs by one property, each a pure function.
#
# The dumps and the chains' last dumps are in order of their runs, and of their places in a run.
# A property that is null is never equal to another.


class Dump(NamedTuple):
    """A dump as the chains see it.

    run_number: of its run in the lineage; occurrence: its place in its group; signature_id:
    equal for equal entry signatures; is_tiny: so small that programs are equal by chance;
    grade: of its figures, as in the table modules, None without figures; health: status, and
    whether XLA ran out of memory.
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
    grade: int | None
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
    places: Pairs = []
    for a, b in _of_equal_key(before, now, key):
        if len(a) == len(b):
            places += zip(a, b, strict=True)
        else:
            pairs = aligned([before[i].total_bytes for i in a], [now[i].total_bytes for i in b])
            places += [(a[i], b[k]) for i, k in pairs]
    return places


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


# Chains of dumps: which dump follows which from run to run of a lineage.
#
# A group is the dumps of one workload, module name and platform. In most groups each run has one
# dump, and the dump follows the group's one chain. If there are several, a dump follows the
# chain of the same program, else of the same signature, the same skeleton, or, with as many
# chains as dumps, of the same place; chains of the previous run go before older ones. What is
# left over may have been renamed. Otherwise a dump begins a chain, and a chain of the previous
# run is gone.

_STAGES = (
    ("program", by_program),
    ("signature", by_signature),
    ("skeleton", by_skeleton),
    ("order", in_order),
)


@dataclass(slots=True)
class Compared:
    """The last dump of a chain with figures of one grade, and since when it is unchanged."""

    dump: Dump
    level_index: int


@dataclass(slots=True)
class Chain:
    """A chain so far. born, number: its series, the group of its first dump and its number there.

    length: its dumps so far; compared: by the grade of the figures.
    """

    born: Group
    number: int
    last: Dump
    length: int = 1
    compared: dict[int, Compared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """A dump and what it follows; the columns are those of `history`.

    before: what the cause of its change is told against, None if there is no change to explain.
    """

    dump: Dump
    born: Group
    number: int
    chain_index: int
    previous: Dump | None
    compared: Dump | None
    level_index: int | None
    matched_by: str | None
    missed_runs: int | None
    is_new: bool
    before: Dump | None


@dataclass
class Followed:
    """A lineage that was followed: its new links, and each run's chains that are gone.

    births: how many chains each group has begun; by_group: the chains by the group of their last
    dumps; alive: those with a dump in the last run.
    """

    chains: list[Chain]
    births: Counter[Group] = field(default_factory=Counter)
    links: list[Link] = field(default_factory=list)
    gone: list[tuple[int, Chain, Dump]] = field(default_factory=list)
    by_group: dict[Group, list[Chain]] = field(default_factory=dict)
    alive: list[Chain] = field(default_factory=list)


def follow(dumps: Iterable[Dump], runs: Sequence[int], chains: Iterable[Chain] = ()) -> Followed:
    """Follow the dumps of these runs, which come after what `chains` has.

    dumps: in order of run, group and place in the group; runs: the numbers of the runs in order.
    """
    followed = Followed(list(chains))
    followed.births.update(chain.born for chain in followed.chains)
    for chain in followed.chains:
        followed.by_group.setdefault(chain.last.group, []).append(chain)
        if runs and chain.last.run_number == runs[0] - 1:
            followed.alive.append(chain)
    by_run = {run: list(found) for run, found in groupby(dumps, key=lambda dump: dump.run_number)}
    for run in runs:
        _follow_run(followed, by_run.get(run, []), run)
    return followed


def _follow_run(followed: Followed, dumps: Sequence[Dump], run: int) -> None:
    matched: list[tuple[Chain, Dump, str]] = []
    waiting: list[Dump] = []
    for group, found in groupby(dumps, key=lambda dump: dump.group):
        matched += _match_group(followed.by_group.get(group, []), list(found), run, waiting)
    taken = {id(chain) for chain, _, _ in matched}
    leaving = [chain for chain in followed.alive if id(chain) not in taken]
    matched += _match_renamed(leaving, waiting)
    followed.gone += [(run, chain, chain.last) for chain in leaving]
    followed.alive = []
    by_dump = {dump.dump_id: (chain, how) for chain, dump, how in matched}
    for dump in dumps:
        if dump.dump_id in by_dump:
            chain, how = by_dump[dump.dump_id]
            if chain.last.group != dump.group:
                followed.by_group[chain.last.group].remove(chain)
                followed.by_group.setdefault(dump.group, []).append(chain)
            followed.links.append(_linked(chain, dump, how))
        else:
            followed.births[dump.group] += 1
            chain = Chain(dump.group, followed.births[dump.group], dump)
            followed.chains.append(chain)
            followed.by_group.setdefault(dump.group, []).append(chain)
            followed.links.append(_begun(chain, is_new=run > 1))
        followed.alive.append(chain)


def _match_group(
    chains: list[Chain], dumps: list[Dump], run: int, waiting: list[Dump]
) -> list[tuple[Chain, Dump, str]]:
    """The chains that the dumps of a group follow; dumps without one are added to `waiting`."""
    if len(chains) == len(dumps) == 1:
        return [(chains[0], dumps[0], "only")]
    chains = sorted(chains, key=lambda chain: chain.last.place)
    alive = [chain for chain in chains if chain.last.run_number == run - 1]
    asleep = [chain for chain in chains if chain.last.run_number < run - 1]
    matches: list[tuple[Chain, Dump, str]] = []
    for how, pair in _STAGES:
        for candidates in (alive, asleep):
            if candidates and dumps:
                pairs = pair([chain.last for chain in candidates], dumps)
                matches += _take(candidates, dumps, pairs, how)
    waiting += dumps
    return matches


def _match_renamed(leaving: list[Chain], waiting: list[Dump]) -> list[tuple[Chain, Dump, str]]:
    """The chains that go on under another name; both lists lose what is matched."""
    matches: list[tuple[Chain, Dump, str]] = []
    leaving.sort(key=lambda chain: chain.last.place)
    for how, key in _RENAMES:
        if leaving and waiting:
            pairs = of_equal_count([chain.last for chain in leaving], waiting, key)
            matches += _take(leaving, waiting, pairs, how)
    return matches


def _keyed(identity: str, *names: str, but_tiny: bool = False) -> Key:
    def key(dump: Dump) -> tuple[object, ...] | None:
        value = getattr(dump, identity)
        if value is None or (but_tiny and dump.is_tiny):
            return None
        return value, *(getattr(dump, name) for name in names)

    return key


_RENAMES = (
    ("workload renamed", _keyed("program_id", "module_name", "platform")),
    ("module renamed", _keyed("program_id", "workload", "platform")),
    ("renamed", _keyed("program_id", "platform", but_tiny=True)),
    ("module renamed", _keyed("signature_id", "workload", "platform")),
    ("module renamed", _keyed("skeleton_id", "workload", "platform")),
)
# How a previous dump can be found.
MATCHES = tuple(
    dict.fromkeys(["only", *(name for name, _ in _STAGES), *(name for name, _ in _RENAMES)])
)


def _take(
    chains: list[Chain], dumps: list[Dump], pairs: Pairs, how: str
) -> list[tuple[Chain, Dump, str]]:
    """The pairs of chains and dumps at these places, which leave their lists."""
    matches = [(chains[i], dumps[k], how) for i, k in pairs]
    for place in sorted((i for i, _ in pairs), reverse=True):
        del chains[place]
    for place in sorted((k for _, k in pairs), reverse=True):
        del dumps[place]
    return matches


def _linked(chain: Chain, dump: Dump, how: str) -> Link:
    """The chain goes on with the dump."""
    previous = chain.last
    chain.last = dump
    chain.length += 1
    compared, level_index = _compare(chain, dump)
    before = compared or previous
    return Link(
        dump,
        chain.born,
        chain.number,
        chain.length,
        previous,
        compared,
        level_index,
        how,
        dump.run_number - previous.run_number - 1,
        is_new=False,
        before=before if _differs(before, dump) else None,
    )


def _begun(chain: Chain, *, is_new: bool) -> Link:
    """The chain begins."""
    _, level_index = _compare(chain, chain.last)
    return Link(
        chain.last, chain.born, chain.number, 1, None, None, level_index, None, None, is_new, None
    )


def _compare(chain: Chain, dump: Dump) -> tuple[Dump | None, int | None]:
    """What a dump is compared with, and since which place in the chain nothing has changed.

    Figures of one grade are compared with each other only, and a dump without figures with nothing.
    """
    if dump.grade is None:
        return None, None
    before = chain.compared.get(dump.grade)
    unchanged = before is not None and _is_same(before.dump, dump)
    level_index = before.level_index if before is not None and unchanged else chain.length
    chain.compared[dump.grade] = Compared(dump, level_index)
    return (None if before is None else before.dump), level_index


def _is_same(a: Dump, b: Dump) -> bool:
    """The same program: of one content, or equal but for names and source lines."""
    return a.module_id == b.module_id or (a.program_id is not None and a.program_id == b.program_id)


def _differs(a: Dump, b: Dump) -> bool:
    """Whether there is something to tell: another program, name, health, or reader of it."""
    is_read_otherwise = a.reader_version != b.reader_version
    return not _is_same(a, b) or is_read_otherwise or a.group != b.group or a.health != b.health
