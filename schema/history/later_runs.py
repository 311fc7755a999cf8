"""Whether the stored links after the runs that were followed anew are still true.

Which dump follows which depends on the chains of a lineage alone: their last dumps, and how many
each group has begun. Where these are what they were, all later links are, and only places change.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ids import series_id
from .chains import Chain, Dump, Followed, Group


@dataclass(frozen=True)
class Moved:
    """The links of a chain after the runs that were followed anew, by how much they move.

    length: of the chain before them, as it was; shift: by how much it is longer now; missed_runs:
    the runs between its last dump there and its next; levels: by grade of the figures, since which
    place they are unchanged.
    """

    series_id: int
    length: int
    shift: int
    missed_runs: int
    levels: list[int | None]


def moved_chains(
    lineage: tuple[str, str],
    until: int,
    new_runs: Collection[int],
    followed: Followed,
    stored: Iterable[Mapping[str, Any]],
    later_groups: Collection[Group],
) -> dict[int, Moved] | None:
    """The chains that go on after the run `until`, by series_id; None if links may be others.

    new_runs: the numbers of the runs that changed or came: a dump of theirs may be another one than
    it was. stored: the rows of later_links.sql; later_groups: those that have dumps after the run.
    """
    if any("renamed" in (link.matched_by or "") for link in followed.links):
        return None

    def is_as_it_was(dump: Dump, dump_id: int | None) -> bool:
        return dump.dump_id == dump_id and dump.run_number not in new_runs

    def is_compared_alike(chain: Chain, compared: Sequence[Sequence[int | None] | None]) -> bool:
        """Whether its next dumps of each grade of figures are compared with what they were."""
        for grade, ids in enumerate(compared):
            now = chain.compared.get(grade)
            if ids is not None and not (
                ids == [None] if now is None else is_as_it_was(now.dump, ids[0])
            ):
                return False
        return True

    def may_matter(chain: Chain) -> bool:
        return chain.last.run_number == until or chain.last.group in later_groups

    branch, suite = lineage
    chains = {
        series_id(branch, suite, *chain.born, chain.number): chain for chain in followed.chains
    }
    moved: dict[int, Moved] = {}
    begun_later: dict[Group, int] = {}
    for row in stored:
        chain = chains.pop(row["series_id"], None)
        goes_on = row["next_run_number"] is not None
        if row["length"] is None:
            group = row["workload"], row["module_name"], row["platform"]
            number = min(row["number"], begun_later.get(group, row["number"]))
            begun_later[group] = number
            still_true = chain is None
        elif chain is not None and is_as_it_was(chain.last, row["last_dump_id"]):
            still_true = not goes_on or is_compared_alike(chain, row["compared"])
            if goes_on:
                moved[row["series_id"]] = _moved(chain, row)
        elif goes_on or row["was_renamed"]:
            still_true = False
        elif chain is not None:
            still_true = not may_matter(chain)
        else:
            # A chain all of whose dumps are gone may be of any group, and of any lineage.
            still_true = row["lineage"] is None and row["series_id"] not in (
                series_id(branch, suite, *group, row["number"]) for group in later_groups
            )
        if not still_true:
            return None
    counts_on = all(n == followed.births[group] + 1 for group, n in begun_later.items())
    return moved if counts_on and not any(map(may_matter, chains.values())) else None


def _moved(chain: Chain, row: Mapping[str, Any]) -> Moved:
    compared = [chain.compared.get(grade) for grade in range(len(row["compared"]))]
    return Moved(
        series_id=row["series_id"],
        length=row["length"],
        shift=chain.length - row["length"],
        missed_runs=row["next_run_number"] - chain.last.run_number - 1,
        levels=[None if last is None else last.level_index for last in compared],
    )
