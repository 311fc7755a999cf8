"""What `check` must say of a run, in plain Python: docs/check.md with its default limits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from ..schema.plain_history import Dump, Histories, Run, in_order, plain_history, plain_pairs

_GROWTH, _DRIFT = 1.01, 1.03
_DEFAULTS = ("main", "master", "")


@dataclass(frozen=True)
class Said:
    """What is said of a program: pass, warn, fail or not judged; `dump` is None if it is gone.

    is_judged: a rule could judge its figures; is_lost: it was judged before, and now it cannot be;
    grown: what fails could be accepted.
    """

    outcome: str
    dump: Dump | None
    is_judged: bool = False
    is_lost: bool = False
    grown: bool = False


@dataclass(frozen=True)
class Facts:
    """What is known of dumps: their peaks, those that were accepted, and the hosts of runs' parts.

    host_of: of each dump the host that ingested it, if one is named.
    """

    peaks: Mapping[int, int | None]
    accepted: Mapping[int, int]
    host_of: Mapping[int, str | None]
    hosts: Set[str]


def judge(
    run: Run, runs: Sequence[Run], dumps: Sequence[Dump], facts: Facts, stored: Histories
) -> list[Said]:
    """The verdicts of a run's programs, and of those that it lacks; the facts' hosts are its.

    stored: has the series of the dumps.
    """
    history = plain_history(runs, dumps, stored)
    return _Judging(run, list(runs), list(dumps), facts, history).verdicts()


def status(said: Sequence[Said]) -> int:
    """The exit status: 1 if a program fails, 3 if nothing is judged, or not what was before."""
    if any(each.outcome == "fail" for each in said):
        return 1
    is_whole = any(each.is_judged for each in said) and not any(each.is_lost for each in said)
    return 0 if is_whole else 3


@dataclass
class _Judging:
    run: Run
    runs: list[Run]
    dumps: list[Dump]
    facts: Facts
    history: Histories

    def verdicts(self) -> list[Said]:
        own = [dump for dump in self.dumps if dump.run_id == self.run.run_id]
        suite = [run for run in self.runs if run.suite == self.run.suite]
        branches = {run.branch for run in suite}
        default = next((name for name in _DEFAULTS if name in branches), self.run.branch)
        # A run without programs is nobody's baseline.
        compiled = {dump.run_id for dump in self.dumps}
        before = [
            run
            for run in suite
            if run.branch == default
            and run.run_id in compiled
            and in_order(run) < in_order(self.run)
        ]
        if not before:
            return [Said("not judged", dump) for dump in own]
        base = max(before, key=in_order)
        if self.run.branch == default:
            links = self.history.links
            held = {dump.dump_id: links[dump.dump_id].previous for dump in own}
            followed = {links[dump.dump_id].series for dump in own}
            last = [dump for dump in self.dumps if dump.run_id == base.run_id]
            gone = [dump for dump in last if links[dump.dump_id].series not in followed]
        else:
            held = self._of_base(base, own)
            pairs = plain_pairs(self.dumps, base.run_id, self.run.run_id)
            alone = {a for a, b, _ in pairs if b is None}
            gone = [dump for dump in self.dumps if dump.dump_id in alone]
        of_base = self.run.branch != default
        said = [self._said(dump, held[dump.dump_id], of_base=of_base) for dump in own]
        return said + [self._gone(dump, bool(own), of_base=of_base) for dump in gone]

    def _gone(self, dump: Dump, has_programs: bool, *, of_base: bool) -> Said:
        """What is said of a program that the run lacks: only what could be there can be gone."""
        host = self.facts.host_of[dump.dump_id]
        if not has_programs or (host is not None and host not in self.facts.hosts):
            return Said("not judged", None, is_lost=True)
        return Said("warn" if of_base else "fail", None)

    def _of_base(self, base: Run, own: Sequence[Dump]) -> dict[int, int | None]:
        """What each dump follows: of the base, or what its lineage had before."""
        pairs = plain_pairs(self.dumps, base.run_id, self.run.run_id)
        held = {b: a for a, b, _ in pairs if b is not None}
        taken = set(held.values())
        asleep = defaultdict(list)
        by_id = {dump.dump_id: dump for dump in self.dumps}
        upto = [r for r in self.runs if r.lineage == base.lineage and in_order(r) <= in_order(base)]
        names = {r.run_id: in_order(r) for r in upto}
        last: dict[tuple[object, ...], tuple[object, int]] = {}
        for dump_id, link in self.history.links.items():
            run_id = by_id[dump_id].run_id
            if run_id in names:
                last[link.series] = max(
                    last.get(link.series, (names[run_id], dump_id)), (names[run_id], dump_id)
                )
        for _, dump_id in last.values():
            if dump_id not in taken:
                asleep[by_id[dump_id].group].append(dump_id)
        new = defaultdict(list)
        for dump in own:
            if held[dump.dump_id] is None:
                new[dump.group].append(dump.dump_id)
        for group, ids in new.items():
            if len(ids) == 1 and len(asleep[group]) == 1:
                held[ids[0]] = asleep[group][0]
        return held

    def _said(self, dump: Dump, held: int | None, *, of_base: bool = False) -> Said:
        now = self.facts.peaks[dump.dump_id]
        before = None if held is None else self.facts.peaks[held]
        if held is None or before is None or now is None:
            return Said("not judged", dump, is_lost=before is not None)
        floor = self._floor(dump, held)
        if now > max(before, floor or 0) * _GROWTH:
            return Said("fail", dump, is_judged=True, grown=True)
        lowest = self._lowest(held) if floor is None else floor
        if now <= lowest * _DRIFT:
            return Said("pass", dump, is_judged=True)
        if of_base and before > lowest * _DRIFT:
            return Said("warn", dump, is_judged=True)
        return Said("fail", dump, is_judged=True, grown=True)

    def _floor(self, dump: Dump, held: int) -> int | None:
        """What was accepted last in the dump's series, after the run that it is held against."""
        places = {run.run_id: in_order(run) for run in self.runs}
        of = {each.dump_id: places[each.run_id] for each in self.dumps}
        series = self.history.links[dump.dump_id].series
        found = [
            (of[each], value)
            for each, value in self.facts.accepted.items()
            if self.history.links[each].series == series
            and of[each] <= in_order(self.run)
            and (self.history.links[held].series != series or of[each] > of[held])
        ]
        return max(found)[1] if found else None

    def _lowest(self, held: int) -> int:
        """The lowest peak of a series up to a dump, since the last value that was accepted."""
        links = self.history.links
        chain = sorted(
            (link.chain_index, dump_id)
            for dump_id, link in links.items()
            if link.series == links[held].series and link.chain_index <= links[held].chain_index
        )
        first = max(
            (index for index, dump_id in chain if dump_id in self.facts.accepted), default=0
        )
        return min(
            peak
            for index, dump_id in chain
            if index >= first and (peak := self.facts.peaks[dump_id]) is not None
        )
