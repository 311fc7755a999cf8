"""Chains of dumps: which dump follows which from run to run of a lineage.

A group is the dumps of one workload, module name and platform. In most groups each run has one
dump, and the dump follows the group's one chain. If there are several, a dump follows the chain
of the same program, else of the same signature, the same skeleton, or, with as many chains as
dumps, of the same place; chains of the previous run go before older ones. What is left over may
have been renamed. Otherwise a dump begins a chain, and a chain of the previous run is gone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from . import pairing
from .pairing import Dump, Group, Key

_STAGES = (
    ("program", pairing.by_program),
    ("signature", pairing.by_signature),
    ("skeleton", pairing.by_skeleton),
    ("order", pairing.in_order),
)


@dataclass(slots=True)
class Compared:
    """The last dump of a chain with figures of one origin, and since when it is unchanged."""

    dump: Dump
    level_index: int


@dataclass(slots=True)
class Chain:
    """A chain so far. born, number: its series, the group of its first dump and its number there.

    length: its dumps so far; compared: by whether the figures are estimates.
    """

    born: Group
    number: int
    last: Dump
    length: int = 1
    compared: dict[bool, Compared] = field(default_factory=dict)


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

    by_group: the chains by the group of their last dumps; alive: those with a dump in the last
    run.
    """

    chains: list[Chain]
    links: list[Link] = field(default_factory=list)
    gone: list[tuple[int, Chain, Dump]] = field(default_factory=list)
    by_group: dict[Group, list[Chain]] = field(default_factory=dict)
    alive: list[Chain] = field(default_factory=list)


def follow(
    dumps: Iterable[Dump],
    runs: Sequence[int],
    chains: Iterable[Chain] = (),
    births: Counter[Group] | None = None,
) -> Followed:
    """Follow the dumps of these runs, which come after what `chains` has.

    dumps: in order of run, group and place in the group; runs: the numbers of the runs in order;
    births: how many chains each group has begun.
    """
    followed = Followed(list(chains))
    for chain in followed.chains:
        followed.by_group.setdefault(chain.last.group, []).append(chain)
        if runs and chain.last.run_number == runs[0] - 1:
            followed.alive.append(chain)
    births = Counter() if births is None else births
    by_run = {run: list(found) for run, found in groupby(dumps, key=lambda dump: dump.run_number)}
    for run in runs:
        _follow_run(followed, by_run.get(run, []), run, births)
    return followed


def _follow_run(
    followed: Followed, dumps: Sequence[Dump], run: int, births: Counter[Group]
) -> None:
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
            births[dump.group] += 1
            chain = Chain(dump.group, births[dump.group], dump)
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
    found: list[tuple[Chain, Dump, str]] = []
    for how, pair in _STAGES:
        for candidates in (alive, asleep):
            if candidates and dumps:
                pairs = pair([chain.last for chain in candidates], dumps)
                found += _take(candidates, dumps, pairs, how)
    waiting += dumps
    return found


def _match_renamed(leaving: list[Chain], waiting: list[Dump]) -> list[tuple[Chain, Dump, str]]:
    """The chains that go on under another name; both lists lose what is matched."""
    found: list[tuple[Chain, Dump, str]] = []
    leaving.sort(key=lambda chain: chain.last.place)
    for how, key in _RENAMES:
        if leaving and waiting:
            pairs = pairing.of_equal_count([chain.last for chain in leaving], waiting, key)
            found += _take(leaving, waiting, pairs, how)
    return found


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


def _take(
    chains: list[Chain], dumps: list[Dump], pairs: pairing.Pairs, how: str
) -> list[tuple[Chain, Dump, str]]:
    """The pairs of chains and dumps at these places, which leave their lists."""
    found = [(chains[i], dumps[k], how) for i, k in pairs]
    for place in sorted((i for i, _ in pairs), reverse=True):
        del chains[place]
    for place in sorted((k for _, k in pairs), reverse=True):
        del dumps[place]
    return found


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

    An estimate is compared with estimates only, and a dump without figures with nothing.
    """
    if dump.is_estimated is None:
        return None, None
    before = chain.compared.get(dump.is_estimated)
    unchanged = before is not None and _is_same(before.dump, dump)
    level_index = before.level_index if before is not None and unchanged else chain.length
    chain.compared[dump.is_estimated] = Compared(dump, level_index)
    return (None if before is None else before.dump), level_index


def _is_same(a: Dump, b: Dump) -> bool:
    """The same program: of one content, or equal but for names and source lines."""
    return a.module_id == b.module_id or (a.program_id is not None and a.program_id == b.program_id)


def _differs(a: Dump, b: Dump) -> bool:
    """Whether there is something to tell: another program, name, health, or reader of it."""
    is_read_otherwise = a.reader_version != b.reader_version
    return not _is_same(a, b) or is_read_otherwise or a.group != b.group or a.health != b.health
