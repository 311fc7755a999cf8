"""The rows of `history` and `gone` for lineages that were followed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .. import arrow
from ..ids import series_id
from .chains import Followed, Link
from .pairing import Group

# Tells why the second dump of each pair differs from the first: a line, or null.
Causes = Callable[[Sequence[tuple[int, int]]], Sequence[str | None]]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Lineage:
    """The runs of a branch and suite by number, and the first that must be followed anew."""

    branch: str
    suite: str
    runs: Mapping[int, str]
    first: int
    followed: Followed

    @property
    def changed_runs(self) -> list[str]:
        """The runs that were followed."""
        return [run_id for number, run_id in self.runs.items() if number >= self.first]


def history_rows(
    lineages: Sequence[Lineage], causes: Causes, told: Mapping[Pair, str | None]
) -> pa.Table:
    """The rows of `history`; `told` are causes that need not be worked out again."""
    links = [(lineage, link) for lineage in lineages for link in lineage.followed.links]
    pairs = [_pair(link) for _, link in links]
    untold = [pair for pair in pairs if pair is not None and pair not in told]
    all_told = {**told, **dict(zip(untold, causes(untold), strict=True))}
    ids = _series_ids(lineages)
    last = _lasts(lineages)
    rows = [
        {
            "dump_id": link.dump.dump_id,
            "series_id": ids[lineage.branch, lineage.suite, link.born, link.number],
            "series_number": link.number,
            "chain_index": link.chain_index,
            "previous_dump_id": link.previous and link.previous.dump_id,
            "compared_dump_id": link.compared and link.compared.dump_id,
            "level_index": link.level_index,
            "matched_by": link.matched_by,
            "missed_runs": link.missed_runs,
            "is_new": link.is_new,
            "is_last": link.dump.dump_id in last,
            "cause": all_told.get(pair) if pair is not None else None,
        }
        for (lineage, link), pair in zip(links, pairs, strict=True)
    ]
    return arrow.rows("history", rows)


def gone_rows(lineages: Sequence[Lineage]) -> pa.Table:
    """The rows of `gone`."""
    ids = _series_ids(lineages)
    rows = [
        {
            "run_id": lineage.runs[number],
            "series_id": ids[lineage.branch, lineage.suite, chain.born, chain.number],
            "last_dump_id": last.dump_id,
        }
        for lineage in lineages
        for number, chain, last in lineage.followed.gone
    ]
    return arrow.rows("gone", rows)


def _pair(link: Link) -> Pair | None:
    return None if link.before is None else (link.before.dump_id, link.dump.dump_id)


def _series_ids(lineages: Sequence[Lineage]) -> dict[tuple[str, str, Group, int], int]:
    return {
        (lineage.branch, lineage.suite, chain.born, chain.number): series_id(
            lineage.branch, lineage.suite, *chain.born, chain.number
        )
        for lineage in lineages
        for chain in lineage.followed.chains
    }


def _lasts(lineages: Sequence[Lineage]) -> set[int]:
    return {chain.last.dump_id for lineage in lineages for chain in lineage.followed.chains}


def whether_last(lineages: Sequence[Lineage]) -> dict[bool, list[int]]:
    """The dumps before those that were followed: whether they are the last of their chains."""
    continued = [
        link.previous.dump_id
        for lineage in lineages
        for link in lineage.followed.links
        if link.previous is not None and link.previous.run_number < lineage.first
    ]
    ended = [
        chain.last.dump_id
        for lineage in lineages
        for chain in lineage.followed.chains
        if chain.last.run_number < lineage.first
    ]
    return {True: ended, False: continued}
