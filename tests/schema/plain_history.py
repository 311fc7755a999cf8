"""The chains, worked out a second time: plain Python, slow, a line for each rule.

An independent oracle of `history`, `gone` and `lineages`. It shares nothing with the engine and
takes no shortcut: every run is held against every chain of its lineage.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

Lineage = tuple[str, str]
Group = tuple[str, str, str | None]


GRADES = {"dumped": 0, "derived": 0, "estimated": 1, "unscheduled": 2}


@dataclass(frozen=True)
class Run:
    """A run; run_seq is the order in which runs first entered."""

    run_id: str
    run_at: datetime
    run_seq: int
    branch: str = ""
    suite: str = ""

    @property
    def lineage(self) -> Lineage:
        return self.branch, self.suite


@dataclass(frozen=True)
class Dump:
    """A dump; place is its order among the dumps of its name in the run.

    The ids are None where nothing was readable, and so are total_bytes and origin, which is one
    of GRADES: unscheduled ones are estimated as well.
    """

    dump_id: int
    run_id: str
    workload: str
    module_name: str
    platform: str | None
    place: int
    program: int | None = None
    signature: str | None = None
    skeleton: int | None = None
    total_bytes: int | None = None
    is_tiny: bool = False
    origin: str | None = None

    @property
    def group(self) -> Group:
        return self.workload, self.module_name, self.platform


@dataclass(eq=False)
class Chain:
    """The dumps of one series, a run each; `number` is its number of birth in its group."""

    lineage: Lineage
    born: Group
    number: int
    dumps: list[Dump] = field(default_factory=list)
    last_run: int = 0

    @property
    def last(self) -> Dump:
        return self.dumps[-1]

    @property
    def series(self) -> tuple[Any, ...]:
        return (*self.lineage, *self.born, self.number)


@dataclass(frozen=True)
class Link:
    """What is told of a dump: a row of `history`."""

    series: tuple[Any, ...]
    chain_index: int
    previous: int | None
    compared: int | None
    matched_by: str | None
    missed_runs: int | None
    is_new: bool
    is_last: bool


@dataclass(frozen=True)
class Histories:
    """The links by dump, the (run, series, last dump) that are gone, each run's lineage."""

    links: dict[int, Link]
    gone: set[tuple[str, tuple[Any, ...], int]]
    lineages: dict[str, tuple[str, str, int, str | None]]


def plain_history(
    runs: Iterable[Run], dumps: Iterable[Dump], stored: Histories | None = None
) -> Histories:
    """The history of all lineages; with `stored`, of the series that dumps have there.

    A series stays what it is when runs are deleted or change their branch or time.
    """
    dumps_of = defaultdict(list)
    for dump in dumps:
        dumps_of[dump.run_id].append(dump)
    found = Histories({}, set(), {})
    by_lineage = defaultdict(list)
    for run in sorted(runs, key=in_order):
        by_lineage[run.lineage].append(run)
    for lineage, members in by_lineage.items():
        _one_lineage(lineage, members, dumps_of, found, stored)
    return found


def in_order(run: Run) -> tuple[datetime, int]:
    """Sorts runs; names tell nothing."""
    return run.run_at, run.run_seq


def _one_lineage(
    lineage: Lineage,
    runs: list[Run],
    dumps_of: dict[str, list[Dump]],
    found: Histories,
    stored: Histories | None,
) -> None:
    chains: list[Chain] = []
    matched_by: dict[int, str | None] = {}
    run_number: dict[str, int] = {}
    for number, run in enumerate(runs, start=1):
        run_number[run.run_id] = number
        found.lineages[run.run_id] = (
            *lineage,
            number,
            runs[number - 2].run_id if number > 1 else None,
        )
        alive = [chain for chain in chains if chain.last_run == number - 1]
        if stored is None:
            linked = _matches(dumps_of[run.run_id], chains, alive)
        else:
            linked = _stored_matches(dumps_of[run.run_id], chains, stored)
        found.gone.update(
            (run.run_id, chain.series, chain.last.dump_id)
            for chain in alive
            if chain not in {chain for chain, _ in linked.values()}
        )
        for dump in sorted(dumps_of[run.run_id], key=_by_place):
            if dump in linked:
                chain, matched_by[dump.dump_id] = linked[dump]
            else:
                earlier = sum(chain.born == dump.group for chain in chains)
                birth = stored.links[dump.dump_id].series[-1] if stored else earlier + 1
                chain = Chain(lineage, dump.group, birth)
                chains.append(chain)
            chain.dumps.append(dump)
            chain.last_run = number
    for chain in chains:
        for index, dump in enumerate(chain.dumps):
            before = chain.dumps[index - 1] if index else None
            here = run_number[dump.run_id]
            found.links[dump.dump_id] = Link(
                chain.series,
                index + 1,
                before.dump_id if before else None,
                _compared(dump, chain.dumps[:index]),
                matched_by.get(dump.dump_id),
                here - run_number[before.run_id] - 1 if before else None,
                is_new=before is None and here > 1,
                is_last=index + 1 == len(chain.dumps),
            )


def _compared(dump: Dump, earlier: Sequence[Dump]) -> int | None:
    """The last earlier dump with figures of the same grade."""
    if dump.origin is None:
        return None
    alike = [e for e in earlier if e.origin and GRADES[e.origin] == GRADES[dump.origin]]
    return alike[-1].dump_id if alike else None


def _matches(
    dumps: Sequence[Dump], chains: Sequence[Chain], alive: Sequence[Chain]
) -> dict[Dump, tuple[Chain, str]]:
    """The chain of each of a run's dumps, and the rule that found it."""
    linked: dict[Dump, tuple[Chain, str]] = {}
    for group in {dump.group for dump in dumps}:
        here = [dump for dump in dumps if dump.group == group]
        there = [chain for chain in chains if chain.last.group == group]
        linked |= _within_group(
            sorted(here, key=_by_place), sorted(there, key=_by_last_place), alive
        )
    _follow_renames(dumps, alive, linked)
    return linked


def _stored_matches(
    dumps: Sequence[Dump], chains: Sequence[Chain], stored: Histories
) -> dict[Dump, tuple[Chain, str | None]]:
    """The chain of each dump that goes on with one, by the stored series."""
    by_series = {chain.series: chain for chain in chains}
    links = {dump: stored.links[dump.dump_id] for dump in dumps if dump.dump_id in stored.links}
    return {
        dump: (by_series[link.series], link.matched_by)
        for dump, link in links.items()
        if link.series in by_series
    }


def _by_place(dump: Dump) -> tuple[Any, ...]:
    return dump.workload, dump.module_name, dump.platform or "", dump.place


def _by_last_place(chain: Chain) -> tuple[Any, ...]:
    """Chains in the order of their last dumps, for buckets keep the order of their sizes."""
    return chain.last_run, *_by_place(chain.last)


def _within_group(
    dumps: list[Dump], chains: list[Chain], alive: Sequence[Chain]
) -> dict[Dump, tuple[Chain, str]]:
    if len(dumps) == len(chains) == 1:
        return {dumps[0]: (chains[0], "only")}
    linked: dict[Dump, tuple[Chain, str]] = {}
    for stage in ("program", "signature", "skeleton", "order"):
        for is_alive in (True, False):
            dumps_left = [dump for dump in dumps if dump not in linked]
            taken = {chain for chain, _ in linked.values()}
            chains_left = [c for c in chains if c not in taken and (c in alive) == is_alive]
            for dump, chain in _stage(stage, dumps_left, chains_left):
                linked[dump] = (chain, stage)
    return linked


def _stage(stage: str, dumps: list[Dump], chains: list[Chain]) -> Iterable[tuple[Dump, Chain]]:
    if stage == "order":
        return zip(dumps, chains, strict=True) if len(dumps) == len(chains) else ()
    pairs: list[tuple[Dump, Chain]] = []
    for key in {getattr(dump, stage) for dump in dumps} - {None}:
        these = [dump for dump in dumps if getattr(dump, stage) == key]
        those = [chain for chain in chains if getattr(chain.last, stage) == key]
        if stage == "program" or len(these) == len(those):
            pairs += zip(these, those, strict=False)
        else:
            pairs += _aligned(these, those)
    return pairs


def _aligned(dumps: list[Dump], chains: list[Chain]) -> list[tuple[Dump, Chain]]:
    """All of the shorter side, order kept: the choice with the least sum of |ln ratio|.

    Tries every choice; of equal ones the one that ends first.
    """
    count = min(len(dumps), len(chains))
    choices = [
        (these, those)
        for these in combinations(range(len(dumps)), count)
        for those in combinations(range(len(chains)), count)
    ]

    def cost(choice: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[Any, ...]:
        distances = [_distance(dumps[i], chains[k]) for i, k in zip(*choice, strict=True)]
        return round(sum(distances), 9), choice[0][::-1], choice[1][::-1]

    return [(dumps[i], chains[k]) for i, k in zip(*min(choices, key=cost), strict=True)]


def _distance(dump: Dump, chain: Chain) -> float:
    """Sizes that are not known are further apart than any that are."""
    ours, theirs = dump.total_bytes, chain.last.total_bytes
    return abs(math.log(ours / theirs)) if ours and theirs else 64.0


def _follow_renames(
    dumps: Sequence[Dump], alive: Sequence[Chain], linked: dict[Dump, tuple[Chain, str]]
) -> None:
    """Dumps that would be new against chains that would be gone, over the whole run."""
    for rule, key in _RENAMES:
        taken = {chain for chain, _ in linked.values()}
        new: dict[Hashable, list[Dump]] = defaultdict(list)
        old: dict[Hashable, list[Chain]] = defaultdict(list)
        for dump in sorted(dumps, key=_by_place):
            if dump not in linked:
                new[key(dump)].append(dump)
        for chain in sorted(alive, key=_by_last_place):
            if chain not in taken:
                old[key(chain.last)].append(chain)
        for found in new.keys() - {None}:
            if len(new[found]) == len(old[found]):
                for dump, chain in zip(new[found], old[found], strict=True):
                    linked[dump] = (chain, rule)


def _same(of: str, *others: str) -> Callable[[Dump], Hashable]:
    """The key of a rename: None if what must be equal is not known."""
    return lambda dump: (
        None
        if getattr(dump, of) is None
        else (getattr(dump, of), *(getattr(dump, other) for other in others))
    )


def _same_and_large(dump: Dump) -> Hashable:
    return None if dump.is_tiny else _same("program", "platform")(dump)


_RENAMES: list[tuple[str, Callable[[Dump], Hashable]]] = [
    ("workload renamed", _same("program", "module_name", "platform")),
    ("module renamed", _same("program", "workload", "platform")),
    ("renamed", _same_and_large),
    ("module renamed", _same("signature", "workload", "platform")),
    ("module renamed", _same("skeleton", "workload", "platform")),
]


def plain_pairs(
    dumps: Iterable[Dump], a_run_id: str, b_run_id: str
) -> set[tuple[int | None, int | None, str | None]]:
    """What of run a goes with what of run b, as if the lineage had only these two runs."""
    zero = datetime(2000, 1, 1)
    runs = [Run(a_run_id, zero, 1), Run(b_run_id, zero, 2)]
    members = [dump for dump in dumps if dump.run_id in (a_run_id, b_run_id)]
    links = plain_history(runs, members).links
    b = [dump.dump_id for dump in members if dump.run_id == b_run_id]
    pairs = {(links[dump_id].previous, dump_id, links[dump_id].matched_by) for dump_id in b}
    followed = {links[dump_id].previous for dump_id in b}
    alone = {d.dump_id for d in members if d.run_id == a_run_id} - followed
    return pairs | {(dump_id, None, None) for dump_id in alone}


def plain_bases(runs: Sequence[Run], default: str | None = None) -> dict[str, str]:
    """The base of each run outside the default lineage: the newest run of it before."""
    branches = {run.branch for run in runs}
    default = default or next((name for name in ("main", "master") if name in branches), "")
    bases = {}
    for run in runs:
        earlier = [
            other
            for other in runs
            if (other.branch, other.suite) == (default, run.suite)
            and in_order(other) < in_order(run)
        ]
        if run.branch != default and earlier:
            bases[run.run_id] = max(earlier, key=in_order).run_id
    return bases
