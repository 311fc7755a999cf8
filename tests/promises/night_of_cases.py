"""Many cases as workloads of one night: what is said of each, and what is stored of it."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memhouse.schema.arrow import schema, sql_name, tables

from ..support.command import run_memhouse
from ..support.dumps import copy_dump
from ..support.warehouse import reading, rows


@dataclass(frozen=True)
class Night:
    """A night that was ingested: its folder, the warehouse, the exit status, all that was said."""

    folder: Path
    db: Path
    status: int
    said: list[str]

    def named(self, case: str) -> list[str]:
        """The files, and what else, that errors name in the folder of a case; sorted."""
        start = f"error: {self.folder}/{case}/"
        of_case = [line.removeprefix(start) for line in self.said if line.startswith(start)]
        return sorted(line.partition(": ")[0] for line in of_case)

    @cached_property
    def _dumps(self) -> list[tuple[Any, ...]]:
        return rows(self.db, "SELECT workload, module_name, status FROM dumps ORDER BY ALL")

    def dumps(self, case: str) -> list[tuple[str, str]]:
        """The name of the module and the status of each dump of a case, sorted."""
        return [row[1:] for row in self._dumps if f"{row[0]}/".startswith(f"{case}/")]

    def statuses(self, case: str) -> list[str]:
        """The same without the names."""
        return sorted(status for _, status in self.dumps(case))


def ingest_cases(folder: Path, cases: Mapping[str, tuple[str, Callable[[Path], object]]]) -> Night:
    """Ingest a night with a workload for each case: a copy of a sample, to which it does harm."""
    for name, (sample, do) in cases.items():
        do(copy_dump(sample, folder / "night" / name))
    run = run_memhouse("ingest", "--db", folder / "db", folder / "night")
    assert run.stdout == ""
    return Night(folder / "night", folder / "db", run.returncode, run.stderr.splitlines())


def module_rows(db: Path) -> dict[str, dict[str, list[Any]]]:
    """Every row of the modules of each workload, by table, without the ids of the modules."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(dict)
    with reading(db) as store:
        duck = store.connection
        of_modules = {name for name in tables() if "module_id" in schema(name).names}
        for table in sorted(of_modules - {"dumps"}):
            query = f"""SELECT workload, t.* EXCLUDE (module_id) FROM {sql_name(table)} t
                INNER JOIN (SELECT DISTINCT workload, module_id FROM dumps) d
                    ON t.module_id = d.module_id ORDER BY ALL"""
            for workload, *row in duck.sql(query).fetchall():
                found[workload].setdefault(table, []).append(tuple(row))
    return found
