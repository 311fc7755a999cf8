"""A year of runs: the history views of the whole year, and other views of one module."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import Bench, Row, measure, verdict
from process import memhouse

from memhouse.queries.catalogue import public_views, use_views
from memhouse.schema.stores.duckdb import DuckDBStore, open_store

# What is measured of the year: its name, view, condition and limit in milliseconds.
_HISTORY = (
    ("`trends` of the year", "trends", "WHERE metric = 'peak_bytes'", 60.0),
    ("`trends` of the year, all metrics", "trends", "", 500.0),
    ("`regressions` of the year", "regressions", "", 100.0),
    ("`runs_summary` of the year", "runs_summary", "", 100.0),
    ("`latest` of the year", "latest", "", 50.0),
)
_SERIES_MS = 20.0
_MODULE_MS = 50.0
# The number of real programs to use, the largest first; most other programs are tiny.
_FAMILIES = 25
_HERE = Path(__file__).parent


def year(bench: Bench) -> list[Row]:
    """Make the year, check it with `memhouse verify`, and time the views."""
    path = bench.new_path("year.duckdb")
    _make(bench, path)
    verified = memhouse("verify", "--db", path)
    with closing(open_store(str(path), read_only=True)) as store:
        described = store.rows(_DESCRIBED).to_pylist()[0]
        rows = [
            Row(
                "the year: {runs} runs, {dumps:,} dumps of {workloads} workloads, {modules} "
                "modules, {series} series".format(**described),
                f"{path.stat().st_size / 1e6:.0f} MB, verified in {verified.seconds:.0f} s",
            ),
            *(
                _row(bench, store, view, what, where, limit)
                for what, view, where, limit in _HISTORY
            ),
        ]
        where = f"WHERE metric = 'peak_bytes' AND series_id = {store.rows(_LONGEST)['id'][0]}"
        rows.append(_row(bench, store, "trends", "`trends` of one series", where, _SERIES_MS))
        for name, module_id in store.rows(_CHOSEN).to_pylist()[0].items():
            where = f"WHERE module_id = {module_id}"
            rows += [
                _row(bench, store, view.name, f"`{view.name}`, {name} module", where, _MODULE_MS)
                for view in public_views().values()
                if "module_id" in view.columns
            ]
    return rows


def _make(bench: Bench, path: Path) -> None:
    with closing(open_store(str(path), create=True)) as store:
        use_views(store, read_only=False)
        connection = store.connection
        for name, value in (
            ("nights", bench.nights),
            ("series", bench.series),
            ("families", _FAMILIES),
        ):
            connection.execute(f"SET VARIABLE {name} = {value}")
        connection.execute(f"ATTACH '{bench.dumps.warehouse}' AS real (READ_ONLY)")
        connection.execute((_HERE / "year.sql").read_text())
        template = (_HERE / "copy_module.sql").read_text()
        for table, sizes, has_shape in connection.execute(_OWNED).fetchall():
            scaled = "".join(f", owned.{size} * factor AS {size}" for size in sizes or ())
            connection.execute(
                template.format(
                    table=table,
                    scaled=scaled,
                    # A generated column, which cannot be inserted.
                    left_out="EXCLUDE (shape)" if has_shape else "",
                )
            )
        store.work_out_history()


def _row(bench: Bench, store: DuckDBStore, view: str, what: str, where: str, limit: float) -> Row:
    query = f"SELECT * FROM {view} {where}"
    count = store.rows(query).num_rows
    took = _milliseconds(bench.rounds, lambda: store.rows(query))
    return Row(what, f"{took:.1f} ms, {count:,} rows", verdict(took, limit, f"{limit:g} ms"))


def _milliseconds(rounds: int, work: Callable[[], object]) -> float:
    """The median time of several runs of `work`."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        times.append(1000 * (perf_counter() - start))
    return median(times)


# The tables whose rows belong to a module, and their columns of sizes and offsets.
_OWNED = """
SELECT
    table_name,
    LIST(column_name) FILTER (column_name LIKE '%\\_bytes' ESCAPE '\\'),
    BOOL_OR(column_name = '_long_shape')
FROM duckdb_columns()
WHERE database_name = 'real' AND NOT internal AND table_name <> 'dumps'
    AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = 'real')
GROUP BY table_name
HAVING BOOL_OR(column_name = 'module_id')
"""
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
    measure([year])
