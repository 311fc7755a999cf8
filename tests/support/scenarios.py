"""The scenarios of `data/scenarios.json` as runs and dumps, with what is expected of each."""

import json
import random
import shutil
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..schema.plain_history import Dump, Histories, Run
from .dumps import DATA

Expected = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A case: its runs in the order of the file, their dumps, and what is expected.

    `contents` has the content of each dump; `names` its name in the file, RUN/place in the run.
    """

    name: str
    runs: list[Run]
    dumps: list[Dump]
    expected: Expected
    contents: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    @property
    def is_real(self) -> bool:
        """Whether each content is a dump of the nights."""
        return all("/" in content for content in self.contents.values())

    def dumps_of(self, run: Run) -> list[Dump]:
        return [dump for dump in self.dumps if dump.run_id == run.run_id]

    def told(self, found: Histories) -> Expected:
        """A history in the words of the file."""
        links = {self.names[dump_id]: link for dump_id, link in found.links.items()}
        return {
            "previous": {
                name: [self.names[link.previous], link.matched_by, link.missed_runs]
                for name, link in links.items()
                if link.previous is not None
            },
            "new": sorted(name for name, link in links.items() if link.is_new),
            "gone": {
                run_id: sum(row[0] == run_id for row in found.gone)
                for run_id in {row[0] for row in found.gone}
            },
        }

    def ingested_in(self, order: list[Run]) -> list[Run]:
        """The runs as they are after they were ingested in this order."""
        return [replace(run, run_seq=seq) for seq, run in enumerate(order, start=1)]

    def orders(self, count: int = 10) -> list[list[Run]]:
        """Random orders of ingestion; few runs have fewer than `count`.

        Runs of equal time keep their order, for nothing else tells.
        """
        found = []
        for seed in range(count):
            order = list(self.runs)
            random.Random(seed).shuffle(order)
            in_turn = {
                run_at: iter([run for run in self.runs if run.run_at == run_at])
                for run_at in {run.run_at for run in order}
            }
            order = [next(in_turn[run.run_at]) for run in order]
            if order not in found:
                found.append(order)
        return found


def laid_out(scenario: Scenario, run: Run, nights: Path, folder: Path) -> Path:
    """The run's dumps as a dump folder: files renamed to the module's name of the scenario."""
    for dump in scenario.dumps_of(run):
        for file in (nights / scenario.contents[dump.dump_id]).glob("module_*"):
            number, _, *rest = file.name.split(".")
            to = folder / dump.workload / ".".join([number, dump.module_name, *rest])
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
    return folder


def _scenario(case: dict[str, Any], contents: dict[str, dict[str, Any]]) -> Scenario:
    found = Scenario(
        case["name"],
        [
            Run(run["id"], _time(run["at"]), seq, run["branch"] or "")
            for seq, run in enumerate(case["runs"], start=1)
        ],
        [],
        {key: case[key] for key in ("previous", "new", "gone")} | {"base": case.get("base", {})},
    )
    for run in case["runs"]:
        places: dict[tuple[str, ...], int] = {}
        for index, (*group, content) in enumerate(run["dumps"]):
            workload, module_name, platform = group
            place = places[tuple(group)] = places.get(tuple(group), 0) + 1
            keys = contents[content]
            dump = Dump(
                len(found.dumps) + 1,
                run["id"],
                workload,
                module_name,
                platform,
                place,
                keys["program"],
                keys["signature"],
                keys["skeleton"],
                # Of real dumps the sizes do not matter here, but that they are not tiny.
                keys.get("bytes", 1 << 28),
                is_tiny="bytes" in keys,
                origin="dumped",
            )
            found.dumps.append(dump)
            found.contents[dump.dump_id] = content
            found.names[dump.dump_id] = f"{run['id']}/{index}"
    return found


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at).replace(tzinfo=UTC)


_file = json.loads((DATA / "scenarios.json").read_text())
SCENARIOS = [_scenario(case, _file["contents"]) for case in _file["scenarios"]]
