"""Makes lakes of many nights from real modules: copies with new ids, one commit a night."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import duckdb
import pyarrow as pa

from memhouse.schema import arrow
from memhouse.schema.lake.data_files import relations
from memhouse.schema.lake.snapshot import Lake
from memhouse.schema.stores.base import Batch
from memhouse.schema.stores.delta import DeltaStore

PROGRAMS = 100
# So many programs have another module than the night before.
CHANGED = 10
# Larger modules would make a lake of many nights take hours.
_MOST_INSTRUCTIONS = 4000
_FIRST = datetime(2026, 1, 1, 5, tzinfo=UTC)


class ManyNights:
    """A lake that grows by nights of 100 programs, of which 10 changed.

    `commits` and `histories` are the seconds that storing a night took, and its history after
    that; the store stays open as that of a long command does.
    """

    def __init__(self, warehouse: Path, lake: Path) -> None:
        self.lake = lake
        self.nights = 0
        self.commits: list[float] = []
        self.histories: list[float] = []
        self._real = duckdb.connect()
        self._real.execute(f"ATTACH '{warehouse}' AS stored (READ_ONLY)")
        self._templates = self._real.execute(_TEMPLATES, [_MOST_INSTRUCTIONS]).fetchall()
        for name in _owned():
            columns = ", ".join(f'"{column}"' for column in arrow.schema(name).names)
            self._real.execute(
                f"""CREATE TABLE "{name}" AS SELECT {columns} FROM stored."{name}"
                WHERE module_id IN (SELECT UNNEST($1))""",
                [[row[0] for row in self._templates]],
            )
        for name in ("dumps", "file_sets"):
            self._real.execute(f"CREATE TABLE {name} AS FROM stored.{name}")
        Lake(str(lake), create=True)

    def grow(self, nights: int) -> None:
        """Store nights until there are so many."""
        with closing(DeltaStore(str(self.lake))) as store:
            for night in range(self.nights, nights):
                batch = self._batch(night)
                start = perf_counter()
                store.write(batch)
                stored = perf_counter()
                store.tidy()
                self.commits.append(stored - start)
                self.histories.append(perf_counter() - stored)
        self.nights = nights

    def module(self) -> int:
        """The id of a module of the last night."""
        return _id("module", 0, _version(0, self.nights - 1))

    def _batch(self, night: int) -> Batch:
        time = _FIRST + timedelta(days=night)
        run_id = f"{time:%Y-%m-%d}"
        planned = [self._program(number, night) for number in range(PROGRAMS)]
        self._real.register("planned", pa.Table.from_pylist(planned))
        run = {
            "run_id": run_id,
            "run_at": time,
            "run_seq": night + 1,
            "ingested_at": time,
            "source": f"dumps/{run_id}",
            "tool_version": "benchmark",
        }
        tables = {"runs": arrow.rows("runs", [run]), **dict(self._copied(run_id))}
        if night == 0:
            flags = "SELECT * FROM stored.compiler_flags"
            tables["compiler_flags"] = self._rows(flags)
        return Batch(tables)

    def _program(self, number: int, night: int) -> dict[str, object]:
        module_id, dump_id = self._templates[number % len(self._templates)]
        version = _version(number, night)
        return {
            "real_module_id": module_id,
            "real_dump_id": dump_id,
            "module_id": _id("module", number, version),
            "dump_id": _id("dump", number, night),
            "files_id": _id("files", number, version),
            "is_new": night == 0 or version != _version(number, night - 1),
            "number": number,
        }

    def _copied(self, run_id: str) -> Iterator[tuple[str, pa.Table]]:
        yield "dumps", self._rows(_DUMPS, run_id)
        yield "file_sets", self._rows(_FILE_SETS)
        for name in _owned():
            yield name, self._rows(_OWNED.format(name))

    def _rows(self, query: str, *parameters: str) -> pa.Table:
        return arrow.plain(self._real.sql(query, params=list(parameters)).to_arrow_table())


def _owned() -> list[str]:
    return [n for n in relations() if n != "dumps" and arrow.schema(n).names[0] == "module_id"]


def _version(number: int, night: int) -> int:
    """Which version of its module a program has in a night: in turn each gets another."""
    return (night * CHANGED + number) // PROGRAMS


def _id(*parts: object) -> int:
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


_TEMPLATES = """
SELECT dumps.module_id, MIN(dumps.dump_id) AS dump_id
FROM stored.dumps
INNER JOIN (
    SELECT module_id, COUNT(*) AS size FROM stored.instructions GROUP BY module_id
) AS sized USING (module_id)
WHERE dumps.status = 'ok' AND size <= $1
GROUP BY dumps.module_id
ORDER BY MAX(size) DESC, dumps.module_id
"""
_DUMPS = """
SELECT dumps.* REPLACE (
    planned.dump_id AS dump_id, $1 AS run_id, planned.module_id AS module_id, 1 AS occurrence,
    planned.files_id AS files_id,
    format('{}-{:02}', workload, number) AS workload
)
FROM planned
INNER JOIN dumps ON dumps.dump_id = planned.real_dump_id
ORDER BY number
"""
_FILE_SETS = """
SELECT file_sets.* REPLACE (
    planned.files_id AS files_id, sha256(sha256 || planned.module_id) AS sha256
)
FROM planned
INNER JOIN dumps ON dumps.dump_id = planned.real_dump_id
INNER JOIN file_sets ON file_sets.files_id = dumps.files_id
WHERE planned.is_new
ORDER BY number
"""
_OWNED = """
SELECT owned.* REPLACE (planned.module_id AS module_id)
FROM planned
INNER JOIN "{}" AS owned ON owned.module_id = planned.real_module_id
WHERE planned.is_new
"""
