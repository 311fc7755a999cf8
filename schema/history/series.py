"""The tables `dump_series` and `causes`: the series of each dump, and why it changed.

The rest of the history is derived by `views.sql` when it is read. A run that enters last is paired
with the series as they are; a late one is paired again with all runs after it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa

from .. import arrow
from ..ids import series_id
from ..table_rows import insert
from .pairing import Dump, Series, match_dumps

_SQL = resources.files(__package__)
# Creates the views that derive the history, of which some serve here as well.
VIEWS = (_SQL / "views.sql").read_text(encoding="utf-8")
# The rows of `find_causes` for pairs of an earlier and a later dump.
Causes = Callable[[Sequence[tuple[int, int]]], pa.Table]

_FIRST_CHANGED = """SELECT branch, suite, MIN(run_number) FROM internal.lineages
    WHERE list_contains($1, run_id) GROUP BY branch, suite ORDER BY branch, suite"""
# All dumps from run number $3 on, and before it the last of each series.
_LINEAGE_DUMPS = """WITH placed AS (
        SELECT lineages.run_number, dumps.dump_id, dump_series.* EXCLUDE (dump_id, matched_by)
        FROM dumps
        INNER JOIN internal.lineages ON lineages.run_id = dumps.run_id
        LEFT JOIN dump_series ON dump_series.dump_id = dumps.dump_id
        WHERE lineages.branch = $1 AND lineages.suite = $2
        QUALIFY lineages.run_number >= $3 OR lineages.run_number
            = MAX(lineages.run_number) FILTER (lineages.run_number < $3) OVER (
                PARTITION BY dump_series.series_id
            )
    )
    SELECT placed.* EXCLUDE (dump_id), identities.*
    FROM placed INNER JOIN internal.identities ON identities.dump_id = placed.dump_id
    ORDER BY placed.run_number"""
_RUN_DUMPS = """SELECT identities.* FROM internal.identities
    INNER JOIN dumps ON dumps.dump_id = identities.dump_id WHERE dumps.run_id = $1"""
# Of the dumps of these runs, and of those that are compared with them.
_FORGET_CAUSES = """UPDATE dump_series SET explained_dump_id = NULL, cause = NULL
    WHERE explained_dump_id IS NOT NULL AND (
        dump_id IN (SELECT dump_id FROM dumps WHERE list_contains($1, run_id))
        OR explained_dump_id IN (SELECT dump_id FROM dumps WHERE list_contains($1, run_id))
    )"""
_FORGET_TERMS = """DELETE FROM causes WHERE dump_id NOT IN (
        SELECT dump_id FROM dump_series WHERE explained_dump_id IS NOT NULL
    )"""
_STORE_CAUSES = """UPDATE dump_series
    SET explained_dump_id = explained.before_dump_id, cause = explained.cause
    FROM (
        SELECT
            UNNEST(CAST($1 AS BIGINT[])) AS dump_id,
            UNNEST(CAST($2 AS BIGINT[])) AS before_dump_id,
            UNNEST(CAST($3 AS VARCHAR[])) AS cause
    ) AS explained
    WHERE dump_series.dump_id = explained.dump_id"""


def refresh(
    connection: duckdb.DuckDBPyConnection,
    moved_runs: Collection[str],
    changed_runs: Collection[str],
    causes: Causes,
) -> None:
    """Pair the dumps of runs that moved, and explain what changed, within a transaction.

    Args:
        moved_runs: runs that are new, or whose dumps, branch, suite or time changed.
        changed_runs: runs whose dumps, modules or versions of the compiler changed.
    """
    connection.execute("DELETE FROM dump_series WHERE dump_id NOT IN (SELECT dump_id FROM dumps)")
    assign_series(connection, moved_runs)
    connection.execute(_FORGET_CAUSES, [list(changed_runs)])
    explain_changes(connection, causes)


def assign_series(connection: duckdb.DuckDBPyConnection, runs: Collection[str]) -> None:
    """Pair these runs, and all later ones of their branches and suites, with the series before."""
    rows: list[Mapping[str, Any]] = []
    for branch, suite, first in connection.execute(_FIRST_CHANGED, [list(runs)]).fetchall():
        rows += _paired_lineage(connection, branch, suite, first)
    if rows:
        query = "DELETE FROM dump_series WHERE dump_id IN (SELECT UNNEST($1))"
        connection.execute(query, [[row["dump_id"] for row in rows]])
        insert(connection, "dump_series", arrow.rows("dump_series", rows))


def _paired_lineage(
    connection: duckdb.DuckDBPyConnection, branch: str, suite: str, first: int
) -> list[Mapping[str, Any]]:
    """The rows of `dump_series` for the runs from number `first` on."""
    series: dict[int, Series] = {}
    by_run: dict[int, list[Dump]] = {}
    explained: dict[int, tuple[int | None, str | None]] = {}
    for row in connection.execute(_LINEAGE_DUMPS, [branch, suite, first]).fetchall():
        run_number, id_, number, explained_dump_id, cause, *columns = row
        dump = Dump(*columns)
        if run_number < first:
            series[id_] = Series(id_, number, dump, run_number)
        else:
            by_run.setdefault(run_number, []).append(dump)
            explained[dump.dump_id] = explained_dump_id, cause
    rows: list[Mapping[str, Any]] = []
    for run_number, unsorted in by_run.items():
        dumps = sorted(unsorted, key=lambda dump: dump.rank)
        matches = match_dumps(list(series.values()), dumps, run_number)
        by_dump = {match.dump.dump_id: match for match in matches}
        for dump in dumps:
            match = by_dump.get(dump.dump_id)
            if match is not None:
                one = match.series
                one.last, one.run_number = dump, run_number
            else:
                one = _new_series(branch, suite, dump, run_number, series)
                series[one.series_id] = one
            explained_dump_id, cause = explained[dump.dump_id]
            rows.append(
                {
                    "dump_id": dump.dump_id,
                    "series_id": one.series_id,
                    "series_number": one.number,
                    "matched_by": match and match.matched_by,
                    "explained_dump_id": explained_dump_id,
                    "cause": cause,
                }
            )
    return rows


def _new_series(
    branch: str, suite: str, dump: Dump, run_number: int, series: Collection[int]
) -> Series:
    """A series that begins with the dump, with the first number that is free in its group."""
    number = 1
    while (id_ := series_id(branch, suite, *dump.group, number)) in series:
        number += 1
    return Series(id_, number, dump, run_number)


def explain_changes(connection: duckdb.DuckDBPyConnection, causes: Causes) -> None:
    """Store the cause of each change that has none, or one against another dump before it."""
    connection.execute(_FORGET_TERMS)
    pairs = connection.execute((_SQL / "unexplained.sql").read_text(encoding="utf-8")).fetchall()
    if not pairs:
        return
    answers = causes([pair for pair in pairs if pair[0] is not None]).to_pylist()
    lines = {row["b_dump_id"]: row["cause"] for row in answers}
    terms = [
        {"dump_id": row["b_dump_id"], "rank": rank, **term}
        for row in answers
        for rank, term in enumerate(row["terms"] or (), 1)
    ]
    dump_ids = [dump_id for _, dump_id in pairs]
    before_ids = [before_id for before_id, _ in pairs]
    connection.execute("DELETE FROM causes WHERE dump_id IN (SELECT UNNEST($1))", [dump_ids])
    insert(connection, "causes", arrow.rows("causes", terms))
    stored = [lines.get(dump_id) for dump_id in dump_ids]
    connection.execute(_STORE_CAUSES, [dump_ids, before_ids, stored])


def pair_runs(connection: duckdb.DuckDBPyConnection, a_run_id: str, b_run_id: str) -> pa.Table:
    """Which dump of run B goes on with which dump of run A, as if B came next after A.

    Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
    """
    a, b = _run_dumps(connection, a_run_id), _run_dumps(connection, b_run_id)
    series = [Series(dump.dump_id, 1, dump, 1) for dump in a]
    matches = match_dumps(series, b, 2)
    rows: list[tuple[int | None, int | None, str | None]] = [
        (match.series.series_id, match.dump.dump_id, match.matched_by) for match in matches
    ]
    a_matched, b_matched = {row[0] for row in rows}, {row[1] for row in rows}
    rows += [(dump.dump_id, None, None) for dump in a if dump.dump_id not in a_matched]
    rows += [(None, dump.dump_id, None) for dump in b if dump.dump_id not in b_matched]
    schema = pa.schema(
        [("a_dump_id", pa.int64()), ("b_dump_id", pa.int64()), ("matched_by", pa.string())]
    )
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _run_dumps(connection: duckdb.DuckDBPyConnection, run_id: str) -> list[Dump]:
    """The dumps of a run in order."""
    rows = connection.execute(_RUN_DUMPS, [run_id]).fetchall()
    return sorted((Dump(*row) for row in rows), key=lambda dump: dump.rank)
