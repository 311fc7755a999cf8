"""The views of a year of runs: the history of all series, and all views of one module."""

from contextlib import closing
from functools import partial
from time import perf_counter, process_time
from typing import NamedTuple

from bench import Bench, measure
from figures import Figure
from many_runs import warehouse_of_runs
from process import in_turn, memhouse

from memhouse.queries.catalogue import public_views
from memhouse.schema.stores.duckdb import DuckDBStore, open_file

# What is measured of the year: its name, view, condition and limit in milliseconds.
_HISTORY = (
    ("`trends` of the year", "trends", "WHERE metric = 'peak_bytes'", 60.0),
    ("`trends` of the year, all metrics", "trends", "", 500.0),
    ("`regressions` of the year", "regressions", "", 100.0),
    ("`runs_summary` of the year", "runs_summary", "", 100.0),
    ("`latest` of the year", "latest", "", 50.0),
)
_SERIES_MS = 20.0
# The limits of the views of one module, in milliseconds.
_MODULE_MS = 25.0
_OTHER_MODULE_MS = {"long_lived": 30.0, "trends": 20.0}


class _Asked(NamedTuple):
    """A query, what it is called, and its limit in milliseconds."""

    what: str
    query: str
    limit: float


class _Answered(NamedTuple):
    """How long a query took, in milliseconds, and its number of rows."""

    wall: float
    cpu: float
    rows: int


def views(bench: Bench) -> list[Figure]:
    """Check the year with `memhouse verify`, and time its views."""
    path = warehouse_of_runs(bench, bench.options.nights)
    verified = memhouse("verify", "--db", path)
    with closing(open_file(str(path), read_only=True)) as store:
        described = store.rows(_DESCRIBED).to_pylist()[0]
        asked = _asked(store)
        answers = in_turn(bench.rounds, *(partial(_ask, store, query.query) for query in asked))
    year = (
        "the year: {runs} runs, {dumps:,} dumps of {workloads} workloads, {modules} modules, "
        "{series} series".format(**described)
    )
    return [
        Figure(year, [path.stat().st_size], "bytes", parts=f"verified in {verified.seconds:.0f} s"),
        *(
            Figure(
                query.what,
                [answer.wall for answer in found],
                "ms",
                query.limit,
                parts=f"{found[0].rows:,} rows, CPU {min(answer.cpu for answer in found):.1f} ms",
            )
            for query, found in zip(asked, answers, strict=True)
        ),
    ]


def _asked(store: DuckDBStore) -> list[_Asked]:
    where = f"WHERE metric = 'peak_bytes' AND series_id = {store.rows(_LONGEST)['id'][0]}"
    modules = store.rows(_CHOSEN).to_pylist()[0]
    return [
        *(_Asked(what, f"FROM {view} {where}", limit) for what, view, where, limit in _HISTORY),
        _Asked("`trends` of one series", f"FROM trends {where}", _SERIES_MS),
        *(
            _Asked(
                f"`{view.name}`, {name} module",
                f"FROM {view.name} WHERE module_id = {module_id}",
                _OTHER_MODULE_MS.get(view.name, _MODULE_MS),
            )
            for name, module_id in modules.items()
            for view in public_views().values()
            if "module_id" in view.columns
        ),
    ]


def _ask(store: DuckDBStore, query: str) -> _Answered:
    start, cpu = perf_counter(), process_time()
    rows = store.rows(query)
    return _Answered(1000 * (perf_counter() - start), 1000 * (process_time() - cpu), rows.num_rows)


_DESCRIBED = """
SELECT
    (SELECT COUNT(*) FROM runs) AS runs,
    COUNT(*) AS dumps,
    COUNT(DISTINCT module_id) AS modules,
    COUNT(DISTINCT workload) AS workloads,
    (
        SELECT COUNT(DISTINCT (workload, memory_space))
        FROM dumps INNER JOIN module_memory ON module_memory.module_id = dumps.module_id
    ) AS series
FROM dumps
"""
_LONGEST = """
SELECT series_id AS id FROM history GROUP BY series_id ORDER BY COUNT(*) DESC, series_id LIMIT 1
"""
_CHOSEN = """
WITH sized AS (
    SELECT module_id, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, module_id) AS rank
    FROM "values"
    GROUP BY module_id
)
SELECT
    ANY_VALUE(module_id) FILTER (rank = 1) AS largest,
    ANY_VALUE(module_id) FILTER (rank = (SELECT (COUNT(*) + 1) // 2 FROM sized)) AS median
FROM sized
"""


if __name__ == "__main__":
    measure([views])
